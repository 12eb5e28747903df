# SPDX-License-Identifier: GPL-2.0-or-later
"""Which class a commit has, by a metric or by a failure. A judge is one class here and one line in ``judge_of``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Protocol

from kpatch_ci.kernel.diagnostics import errors
from kpatch_ci.model.bisect import Change, Class, Commit, Ending, Ends, Find, How, Proof, Tally
from kpatch_ci.model.boot import BootResult
from kpatch_ci.model.build import BuildResult
from kpatch_ci.model.comparison import Comparison
from kpatch_ci.model.status import Status
from kpatch_ci.pipeline.bisect import rule
from kpatch_ci.pipeline.bisect.bench import Bench, Question, Runs, symbols_of
from kpatch_ci.stats import Thresholds, compare_arch
from kpatch_ci.workloads.table import WORKLOADS

PRIMARY = "all"
"""What a comparison calls the case of a primary figure."""
CRASHED = re.compile(r"crashed|panicked")
"""In the reason of a guest that was lost."""
Verdict = tuple[Class, How, str, Change | None, Tally | None]


class Judge(Protocol):
    """Judges commits of one question. ``good`` and ``bad`` are the ends, both built and different kernels."""

    def ends(self, good: Commit, bad: Commit) -> Ends:
        """Measure both ends. Their kernels are filled in by the caller."""

    def judge(self, commit: Commit, ends: Ends) -> Verdict:
        """The class of a commit whose kernel was built, and is none that is known."""

    def proof(self, parent: Commit, commit: Commit, /, ends: Ends, cls: Class, why: str) -> Proof:
        """The first bad commit against a parent that has class ``cls``."""


def judge_of(question: Question, bench: Bench, good: Commit) -> Judge:
    """The judge for what is searched for. Not for builds: those are judged without booting anything."""
    if question.find is Find.METRIC:
        return MetricJudge(question, bench, good)
    return FailureJudge(question, bench)


class MetricJudge:
    """By a metric: paired comparisons with the good end, and the threshold half-way to the bad one."""

    def __init__(self, question: Question, bench: Bench, good: Commit) -> None:
        assert question.plan is not None, question  # noqa: S101
        assert question.metric is not None, question  # noqa: S101
        self._question, self._bench, self._good = question, bench, good
        self._plan, self._metric = question.plan, question.metric

    def ends(self, good: Commit, bad: Commit) -> Ends:
        """Compare them, with more boots while their interval holds 0."""
        boots: int | None = self._question.boots
        ends = Ends(False, "never measured")
        while boots is not None:
            found = self._against(good, bad, boots)
            if not isinstance(found, Change):
                return Ends(False, found[1], ending=Ending.UNUSABLE)
            ends = self._ends(found)
            if ends.usable:
                return ends
            boots = rule.next_look(boots, self._question.most)
        return ends

    def _ends(self, change: Change) -> Ends:
        better, most = self._metric.better, self._question.most
        if min(*change.before, *change.after) <= 0:
            why = f"{self._metric.name} is 0 under some seeds: there is no half-way between ratios of that; take another metric"
            return Ends(False, why, ending=Ending.UNUSABLE, change=change)
        values = rule.effects(change.before, change.after, better)
        sd, known = rule.spread(values), len(values)
        mde = rule.detectable_percent(sd, known)
        told = f"{change.change_percent:+.2f} %, {_span(change)}, over {known} boots of each"
        found = f"; a change of {mde:.2f} % would have been found in four of five" if mde is not None else ""
        why = f"good and bad do not differ: {told}{found}"
        ends = Ends(False, why, ending=Ending.NO_DIFFERENCE, change=change, most=most)
        ends = replace(ends, spread_percent=100 * sd, mde_percent=mde)
        if not rule.separated(change):
            return ends
        boots = rule.boots_needed(rule.to_log(change.change_percent, better), sd, known, most)
        half = rule.half_way(change.change_percent, better)
        word = "better" if change.change_percent > 0 else "worse"
        why = f"bad is {word} than good: {told}; the threshold is half-way, {half:+.2f} %"
        return replace(ends, usable=True, why=why, ending=Ending.FOUND, half_percent=half, boots=boots)

    def judge(self, commit: Commit, ends: Ends) -> Verdict:
        """Look with more and more boots until the interval is on one side of the threshold."""
        assert ends.half_percent is not None  # noqa: S101
        boots: int | None = ends.boots
        verdict: Verdict = (Class.SKIP, How.UNDECIDED, "never looked at", None, None)
        for _ in range(rule.LOOKS):
            assert boots is not None  # noqa: S101
            found = self._against(self._good, commit, boots)
            if not isinstance(found, Change):
                return Class.SKIP, found[0], found[1], None, None
            cls = rule.side(found, ends.half_percent)
            told = f"{found.change_percent:+.2f} % against good, {_span(found)}, {boots} boots"
            if cls:
                return cls, How.MEASURED, told, found, None
            why = f"{told}: the threshold {ends.half_percent:+.2f} % lies in it"
            verdict = (Class.SKIP, How.UNDECIDED, why, found, None)
            boots = rule.next_look(boots, ends.most)
            if boots is None:
                break
        return verdict

    def proof(self, parent: Commit, commit: Commit, ends: Ends, cls: Class, why: str) -> Proof:
        """Compare them directly, with as many boots as the ends' steps have."""
        found = self._against(parent, commit, ends.boots)
        if not isinstance(found, Change) or ends.change is None:
            return Proof(parent, cls, found[1] if isinstance(found, tuple) else why)
        better = self._metric.better
        whole = rule.to_log(ends.change.change_percent, better)
        share = 100 * rule.to_log(found.change_percent, better) / whole
        return Proof(parent, cls, why, found, share)

    def _against(self, first: Commit, second: Commit, boots: int) -> Change | tuple[How, str]:
        """Second against first; or why there is no such comparison."""
        runs = [self._bench.run(one, boots) for one in (first, second)]
        for one, ran in zip((first, second), runs, strict=True):
            if trouble := _trouble(one, ran):
                return trouble
        arms = [ran.replicates for ran in runs]
        kind = self._plan.kind
        thresholds = Thresholds(confidence=rule.CONFIDENCE)
        compared = compare_arch(arms[0], arms[1], (self._plan,), {kind: WORKLOADS[kind].metrics}, thresholds)
        wanted = (self._question.case or PRIMARY, self._metric.name)
        return _change(next(c for c in compared if (c.case, c.metric) == wanted), boots)


def _change(found: Comparison, boots: int) -> Change | tuple[How, str]:
    if found.change_percent is None:
        return How.UNDECIDED, found.reason
    before = tuple(v for v in found.baseline if v is not None)
    after = tuple(v for v in found.patched if v is not None)
    return Change(found.change_percent, found.ci_percent, boots, rule.CONFIDENCE, found.ci_method, before, after)


def _trouble(commit: Commit, ran: Runs) -> tuple[How, str] | None:
    lost, broken = ran.lost, ran.broken
    if lost is not None:
        return How.NOT_BOOTED, f"{commit.short} does not boot (boot seed {lost.boot_seed}): {lost.reason}"
    if broken is not None:
        return How.NOT_RUN, f"{commit.short}: {broken.workload} {broken.case} (seed {broken.seed}): {broken.reason}"
    return None


def _span(change: Change) -> str:
    ci = change.ci_percent
    return f"{100 * change.confidence:.2f} % interval {ci[0]:+.2f} to {ci[1]:+.2f} %" if ci else "no interval"


class FailureJudge:
    """By something that is seen or not: a boot that fails, a crash, a symbol, words on the console."""

    def __init__(self, question: Question, bench: Bench) -> None:
        self._question, self._bench = question, bench

    def ends(self, good: Commit, bad: Commit) -> Ends:
        """The bad end must show it, with more boots until it does; the good one must not, in as many boots as a step has."""
        boots: int | None = self._first()
        most = self._question.most
        tally = Tally(0, 0)
        while boots is not None and not tally.seen:
            tally = self._tally(bad, boots)
            if not tally.of:
                return Ends(False, f"bad cannot be judged: {tally.first}", ending=Ending.UNUSABLE)
            boots = rule.next_look(boots, most) if self._boots_matter else None
        if not tally.seen:
            why = f"bad does not show it in {tally.of} tries"
            return Ends(False, why, ending=Ending.NO_DIFFERENCE, tally=tally)
        needed = rule.boots_to_see(tally.seen, tally.of, most) if self._boots_matter else 1
        clean = self._tally(good, max(needed, self._first()))
        if clean.seen or not clean.of:
            why = f"good shows it too ({clean.seen} of {clean.of})" if clean.seen else "good cannot be judged"
            return Ends(False, f"{why}: {clean.first}", ending=Ending.UNUSABLE, tally=tally)
        why = f"bad shows it in {tally.seen} of {tally.of} tries ({tally.first}), good in none of {clean.of}"
        return Ends(True, why, tally=tally, boots=needed, most=most)

    def judge(self, commit: Commit, ends: Ends) -> Verdict:
        """Bad where it is seen once."""
        tally = self._tally(commit, ends.boots)
        if tally.seen:
            return Class.BAD, How.TRIED, f"seen in {tally.seen} of {tally.of}: {tally.first}", None, tally
        if not tally.of:  # only where something is run: a boot alone always tells
            how, why = _trouble(commit, self._bench.run(commit, ends.boots)) or (How.NOT_RUN, tally.first)
            return Class.SKIP, how, why, None, None
        return Class.GOOD, How.TRIED, f"not seen in {tally.of} tries", None, tally

    def proof(self, parent: Commit, _: Commit, ends: Ends, cls: Class, why: str) -> Proof:
        """Nothing more to compare than their classes."""
        return Proof(parent, cls, why, tally=self._tally(parent, ends.boots) if cls is not Class.SKIP else None)

    @property
    def _boots_matter(self) -> bool:
        return self._question.find is not Find.SYMBOL

    def _first(self) -> int:
        return self._question.boots if self._boots_matter else 1

    def _tally(self, commit: Commit, boots: int) -> Tally:
        """``of`` 0: it cannot be judged, and ``first`` says why."""
        if self._question.find is Find.SYMBOL:
            build = self._bench.build(commit)
            assert build.artifact is not None  # noqa: S101
            has = self._question.symbol in symbols_of(build.artifact)
            return Tally(int(has), 1, f"{self._question.symbol} is in System.map" if has else "")
        ran = self._bench.run(commit, boots)
        if self._question.find in (Find.CRASH, Find.WORKLOAD):
            return self._of_runs(commit, ran)
        seen = [why for boot in ran.boots if (why := _LOOKS[self._question.find](boot, self._question))]
        return Tally(len(seen), len(ran.boots), seen[0] if seen else "")

    def _of_runs(self, commit: Commit, ran: Runs) -> Tally:
        crash = self._question.find is Find.CRASH
        reasons = [*_reasons(ran, boots=crash)]
        seen = [why for why in reasons if not crash or CRASHED.search(why)]
        whole = sum(r.status is Status.PASSED for r in ran.replicates.values())
        if seen:
            return Tally(len(seen), len(seen) + whole, seen[0])
        trouble = _trouble(commit, ran)
        return Tally(0, 0, trouble[1]) if trouble else Tally(0, whole)


def _reasons(ran: Runs, *, boots: bool) -> Iterator[str]:
    for boot in ran.boots if boots else ():
        if boot.status is Status.FAILED:
            yield boot.reason
    for one in ran.replicates.values():
        if one.status is Status.FAILED:
            yield f"{one.workload} {one.case} (seed {one.seed}): {one.reason}"


def _not_booted(boot: BootResult, _: Question) -> str:
    return boot.reason if boot.status is Status.FAILED else ""


def _said(boot: BootResult, question: Question) -> str:
    text = boot.console.read_text(errors="replace") if boot.console and boot.console.is_file() else boot.log_tail
    return next((line.strip() for line in text.splitlines() if re.search(question.pattern, line)), "")


_LOOKS: dict[Find, Callable[[BootResult, Question], str]] = {Find.BOOT: _not_booted, Find.LOG: _said}


def by_build(build: BuildResult, find: Find) -> Verdict | None:
    """The class that a build alone gives; None where there is a kernel to look at."""
    whole = build.status is Status.PASSED
    if find is Find.BUILD and not build.misses:  # a symbol that is not there yet is no compiler's complaint
        cls = Class.GOOD if whole else Class.BAD
        why = "builds" if whole else build_trouble(build)
        return cls, How.TRIED, why, None, Tally(int(not whole), 1, "" if whole else why)
    return None if whole else (Class.SKIP, How.NOT_BUILT, build_trouble(build), None, None)


def build_trouble(build: BuildResult) -> str:
    """Why a build failed, with the first of the compiler's errors: one break is told from another by it."""
    first = next(iter(errors(build.log_tail)), None)
    where = f"{first.path}:{first.line}: " if first and first.path else ""
    return f"{build.reason}: {where}{first.text}" if first else build.reason


def ends_by_build(good: BuildResult, bad: BuildResult) -> Ends:
    """Of a search for what broke the build."""
    if good.status is not Status.PASSED:
        return Ends(False, f"good does not build either: {build_trouble(good)}", ending=Ending.UNUSABLE)
    if bad.misses:
        return Ends(False, f"bad cannot be configured: {bad.reason}", ending=Ending.UNUSABLE)
    if bad.status is Status.PASSED:
        return Ends(False, "bad builds", good.kernel_digest, bad.kernel_digest, Ending.NO_DIFFERENCE)
    return replace(
        Ends(True, f"bad does not build: {build_trouble(bad)}"), good_kernel=good.kernel_digest, tally=Tally(1, 1)
    )
