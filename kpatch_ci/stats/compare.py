# SPDX-License-Identifier: GPL-2.0-or-later
"""Replicates of two arms -> comparisons with verdicts.

Each workload has one primary figure: its first metric, over all its cases. Primaries are adjusted together (Holm), over
every workload and architecture of a series; cases and counters explain, and are adjusted within their workload.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kpatch_ci.model.comparison import Comparison
from kpatch_ci.model.status import REAL_TIME, Mode, Status, Verdict
from kpatch_ci.model.workload import CONTEXT_SWITCHES, COUNTERS, MIGRATIONS, Metric, Seed, WorkloadPlan
from kpatch_ci.stats import unpaired
from kpatch_ci.stats.detect import mde_percent
from kpatch_ci.stats.floor import Floor, migration_floor
from kpatch_ci.stats.groups import Groups, make_groups, over_cases
from kpatch_ci.stats.holm import holm
from kpatch_ci.stats.paired import Estimate, estimate, from_log_ratios
from kpatch_ci.stats.pairs import PATCHED, Dropped, Pairs, Replicates, describe, make_pairs, seeds_of
from kpatch_ci.stats.signedrank import Floats
from kpatch_ci.stats.variance import Components, components
from kpatch_ci.stats.verdict import Thresholds, decide

ALL_CASES = "all"
UNPAIRED = REAL_TIME
"""Modes in which a seed does not repeat a run: pairing gains nothing there."""
Arms = tuple[Replicates, Replicates]
"""Baseline, patched."""


@dataclass(frozen=True, slots=True)
class _Draft:
    """A comparison before its adjustment; ``estimate`` is None where there is nothing to decide."""

    comparison: Comparison
    estimate: Estimate | None
    threshold_percent: float
    family: tuple[str, ...]
    dropped: str
    floor: Floor | None = None


def compare_arch(
    baseline: Replicates,
    patched: Replicates,
    plans: Sequence[WorkloadPlan],
    metrics: Mapping[str, Sequence[Metric]],
    thresholds: Thresholds,
) -> list[Comparison]:
    """Every comparison of one series on one architecture, as if it were the only one (see compare_series).

    ``metrics``: workload kind -> its own metrics, the primary one first. For each plan, in this order: the primary
    figure, then case by case the workload's own metrics and the counters. Never raises for what is in the replicates.
    """
    return compare_series({"": (baseline, patched)}, plans, metrics, thresholds)[""]


def compare_series(
    arms: Mapping[str, Arms],
    plans: Sequence[WorkloadPlan],
    metrics: Mapping[str, Sequence[Metric]],
    thresholds: Thresholds,
) -> dict[str, list[Comparison]]:
    """Architecture -> its comparisons, the primaries of all architectures adjusted together."""
    drafts = [
        (arch, draft)
        for arch, both in arms.items()
        for plan in plans
        for draft in _plan_drafts(arch, both, plan, metrics[plan.kind], thresholds)
    ]
    result: dict[str, list[Comparison]] = {arch: [] for arch in arms}
    finished = _finish([draft for _, draft in drafts], thresholds)
    for (arch, _), comparison in zip(drafts, finished, strict=True):
        result[arch].append(comparison)
    return result


def _plan_drafts(
    arch: str, arms: Arms, plan: WorkloadPlan, own: Sequence[Metric], thresholds: Thresholds
) -> list[_Draft]:
    seeds = seeds_of(plan.name, arms)
    modes = {r.mode for arm in arms for key, r in arm.items() if key[0] == plan.name}
    mode = next(iter(modes - {Mode.DETERMINISTIC}), Mode.DETERMINISTIC)
    table = _Table(arch, arms, plan, seeds, mode, thresholds)
    primary, of_case = (table.whole, table.groups) if modes and modes <= UNPAIRED else (table.all_pairs, table.pairs)
    metrics = [(case.label, metric) for case in plan.cases for metric in (*own, *COUNTERS)]
    return [primary(own[0]), *(of_case(case, metric) for case, metric in metrics)]


@dataclass(frozen=True, slots=True)
class _Table:
    """One workload's drafts on one architecture, paired (``all_pairs``, ``pairs``) or not (``whole``, ``groups``)."""

    arch: str
    arms: Arms
    plan: WorkloadPlan
    seeds: tuple[Seed, ...]
    mode: Mode
    thresholds: Thresholds

    def all_pairs(self, metric: Metric) -> _Draft:
        """The primary figure."""
        each = [make_pairs(self.plan.name, case.label, metric, self.seeds, self.arms) for case in self.plan.cases]
        together, effects = _over_cases(each, metric, self.seeds)
        boots = [seed.boot for seed in together.values]
        confidence = self.thresholds.confidence
        return self._draft(together, metric, lambda: from_log_ratios(effects, metric.better, confidence, boots))

    def pairs(self, case: str, metric: Metric) -> _Draft:
        """One metric of one case."""
        pairs = make_pairs(self.plan.name, case, metric, self.seeds, self.arms)
        baseline, patched = ([v[i] for v in pairs.values.values()] for i in (0, 1))
        boots = [seed.boot for seed in pairs.values]
        confidence = self.thresholds.confidence
        made = self._draft(pairs, metric, lambda: estimate(baseline, patched, metric.better, confidence, boots))
        return self._floored(made, metric, pairs.values)

    def whole(self, metric: Metric) -> _Draft:
        """The primary figure, unpaired."""
        each = [make_groups(self.plan.name, case.label, metric, self.seeds, self.arms) for case in self.plan.cases]
        together, logs = over_cases(ALL_CASES, each, self.seeds)
        return self._draft(
            together, metric, lambda: unpaired.from_logs(*logs, metric.better, self.thresholds.confidence)
        )

    def groups(self, case: str, metric: Metric) -> _Draft:
        """One metric of one case, unpaired."""
        groups = make_groups(self.plan.name, case, metric, self.seeds, self.arms)
        confidence = self.thresholds.confidence
        made = self._draft(groups, metric, lambda: unpaired.estimate(*groups.arms, metric.better, confidence))
        return self._floored(made, metric, groups.complete)

    def _draft(self, found: Pairs | Groups, metric: Metric, guess: Callable[[], Estimate]) -> _Draft:
        primary = found.case == ALL_CASES
        family = ("primary",) if primary else (self.arch, self.plan.name)
        blank = replace(_blank(self.plan, metric, self.mode), case=found.case, primary=primary)
        return _draft(blank, found, guess, self.plan.threshold_percent, family)

    def _floored(self, made: _Draft, metric: Metric, values: Mapping[Seed, tuple[float, float]]) -> _Draft:
        if metric != MIGRATIONS or made.estimate is None or not values:
            return made
        switches = make_pairs(self.plan.name, made.comparison.case, CONTEXT_SWITCHES, self.seeds, self.arms)
        return replace(made, floor=migration_floor(made.estimate, values, switches.values))


def _over_cases(cases: Sequence[Pairs], metric: Metric, seeds: Sequence[Seed]) -> tuple[Pairs, Floats]:
    """Geometric means over cases, for the seeds that every case has, and the mean signed log ratios behind them."""
    together = Pairs(ALL_CASES, modes=set().union(*(c.modes for c in cases)))
    together.dropped = [d for c in cases for d in c.dropped]
    sign = 1.0 if metric.better == "higher" else -1.0
    effects = []
    for seed in seeds:
        if not cases or any(seed not in c.values for c in cases):
            continue
        logs = np.log([c.values[seed] for c in cases])
        baseline, patched = np.exp(logs.mean(axis=0))
        together.values[seed] = (float(baseline), float(patched))
        effects.append(sign * float((logs[:, 1] - logs[:, 0]).mean()))
    return together, np.array(effects)


def _blank(plan: WorkloadPlan, metric: Metric, mode: Mode) -> Comparison:
    return Comparison(
        workload=plan.name,
        case="",
        metric=metric.name,
        unit=metric.unit,
        better=metric.better,
        mode=mode,
        seeds=(),
        baseline=(),
        patched=(),
        change_percent=None,
        ci_percent=None,
        ci_method="none",
        p_value=None,
        p_adjusted=None,
        verdict=Verdict.ERROR,
    )


def _draft(
    blank: Comparison, pairs: Pairs | Groups, guess: Callable[[], Estimate], threshold: float, family: tuple[str, ...]
) -> _Draft:
    dropped = describe(pairs.dropped)
    if len(pairs.modes) > 1:
        reason = f"samples of unlike modes are not compared: {', '.join(sorted(pairs.modes))}"
        return _Draft(replace(blank, reason=reason), None, threshold, family, dropped)
    if not pairs.enough:
        verdict, reason = _nothing(pairs.dropped)
        return _Draft(replace(blank, verdict=verdict, reason=reason), None, threshold, family, dropped)
    found = guess()
    seeds = tuple(pairs.values)
    spread = Components() if found.arms else components(found.pairs, [s.boot for s in seeds])
    comparison = replace(
        blank,
        mode=next(iter(pairs.modes)),
        seeds=seeds,
        baseline=tuple(b for b, _ in pairs.values.values()),
        patched=tuple(p for _, p in pairs.values.values()),
        change_percent=found.change_percent,
        ci_percent=found.ci_percent,
        ci_method=found.ci_method,
        p_value=found.p_value,
        units=None if found.arms else found.n,
        boot_variance_share=spread.share,
        spread_between_percent=spread.spreads_percent[0],
        spread_within_percent=spread.spreads_percent[1],
    )
    return _Draft(comparison, found, threshold, family, dropped)


def _nothing(dropped: Sequence[Dropped]) -> tuple[Verdict, str]:
    """No pair at all. ``failed`` (the patch's fault) only where some patched run failed and its baseline passed."""
    if not dropped:
        return Verdict.ERROR, "no runs to compare"
    patched = {d.status for d in dropped if d.arm == PATCHED}
    if Status.FAILED in patched:
        verdict = Verdict.FAILED
    else:
        verdict = Verdict.SKIPPED if all(d.status is Status.SKIPPED for d in dropped) else Verdict.ERROR
    return verdict, f"no pair of runs to compare: {describe(dropped)}"


def _finish(drafts: Sequence[_Draft], thresholds: Thresholds) -> list[Comparison]:
    """Adjusts each family's p-values together, and decides."""
    families: dict[tuple[str, ...], list[int]] = {}
    for i, draft in enumerate(drafts):
        if draft.estimate:
            families.setdefault(draft.family, []).append(i)
    done = [d.comparison for d in drafts]
    for members in families.values():
        adjusted = holm([e.p_value for i in members if (e := drafts[i].estimate)])
        for i, p in zip(members, adjusted, strict=True):
            done[i] = _decided(drafts[i], p, thresholds, len(members))
    return done


def _decided(draft: _Draft, p_adjusted: float, thresholds: Thresholds, tests: int) -> Comparison:
    found, floor, limit = draft.estimate, draft.floor, draft.threshold_percent
    assert found is not None  # noqa: S101 - _finish takes only those
    mde = mde_percent(found, thresholds.alpha / tests, max(limit, floor.percent) if floor else limit)
    verdict, why = decide(found, p_adjusted, thresholds, limit, tests, floor=floor, mde=mde)
    reason = "; ".join(part for part in (why, *found.notes, draft.dropped) if part)
    return replace(draft.comparison, p_adjusted=p_adjusted, verdict=verdict, reason=reason, mde_percent=mde)
