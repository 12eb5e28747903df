# SPDX-License-Identifier: GPL-2.0-or-later
"""The bisection itself: git asks about a commit, its kernel is built and judged, git is told, until git knows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from kpatch_ci.kernel.gitbisect import Done, GitBisect, Next
from kpatch_ci.model.bisect import Bisection, Class, Commit, Ending, Ends, Find, How, Proof, Step
from kpatch_ci.model.build import BuildResult
from kpatch_ci.model.status import Status
from kpatch_ci.pipeline.bisect import rule
from kpatch_ci.pipeline.bisect.bench import Bench, Question
from kpatch_ci.pipeline.bisect.judges import build_trouble, by_build, ends_by_build, judge_of
from kpatch_ci.pipeline.bisect.memory import Memory

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Job:
    """A bisection to do. ``told``: classes of commits that a log gave (--replay)."""

    question: Question
    good: Commit
    bad: Commit
    commits: int
    tree: str
    told: Mapping[str, Class] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    """Commits of a series' patches, the first patch's first; empty where it is no series."""
    first_parent: bool = False
    """Other parents of a merge are not looked at."""
    notes: tuple[str, ...] = ()
    command: str = ""


def bisect(job: Job, git: GitBisect, bench: Bench, memory: Memory, say: Say) -> Bisection:
    """Do it, or go on with it. Raises InfrastructureError; what the kernels are like is in the result."""
    return _Driver(job, git, bench, memory, say).run()


class _Driver:
    def __init__(self, job: Job, git: GitBisect, bench: Bench, memory: Memory, say: Say) -> None:
        self._job, self._git, self._bench, self._memory, self._say = job, git, bench, memory, say
        self._judge = judge_of(job.question, bench, job.good)
        self._began = time.monotonic()

    def run(self) -> Bisection:
        ends = self._memory.ends or self._ends()
        self._say(ends.why)
        if not ends.usable:
            return self._end(ends.ending, ends.why, ends)
        if self._job.question.find is not Find.BUILD:
            self._say(f"a step takes {ends.boots} boots, {ends.most} at most")
        asked = self._git.start(self._job.good.hash, self._job.bad.hash)
        for step in self._memory.steps:
            asked = self._git.mark(step.commit.hash, step.cls)
        if self._memory.resumed:
            self._say(f"going on after {self._memory.resumed} steps that were done before")
        while isinstance(asked, Next):
            step = self._step(asked, ends)
            self._memory.keep(step)
            asked = self._git.mark(step.commit.hash, step.cls)
        return self._conclude(asked, ends)

    def _ends(self) -> Ends:
        """Build and measure both ends."""
        job = self._job
        self._say(f"measuring both ends: {job.good.short} (good) and {job.bad.short} (bad)")
        good, bad = (self._bench.build(one) for one in (job.good, job.bad))
        ends = self._judged_ends(good, bad)
        ends = replace(ends, good_kernel=good.kernel_digest, bad_kernel=bad.kernel_digest)
        if ends.usable or ends.ending is Ending.NO_DIFFERENCE:
            self._memory.keep_ends(ends)
        return ends

    def _judged_ends(self, good: BuildResult, bad: BuildResult) -> Ends:
        if self._job.question.find is Find.BUILD:
            return ends_by_build(good, bad)
        for name, one in (("good", good), ("bad", bad)):
            if one.status is not Status.PASSED:
                return Ends(False, f"{name} does not build: {build_trouble(one)}", ending=Ending.UNUSABLE)
        if good.kernel_digest == bad.kernel_digest:
            why = "good and bad are the same kernel, byte for byte: nothing between them is part of this configuration"
            return Ends(False, why, ending=Ending.NO_DIFFERENCE)
        return self._judge.ends(self._job.good, self._job.bad)

    def _step(self, asked: Next, ends: Ends) -> Step:
        began = time.monotonic()
        commit = self._git.commit(asked.hash)
        number = len(self._memory.steps) + 1
        left = "a merge base" if asked.merge_base else f"{asked.left} commits, about {asked.steps} steps after it"
        self._say(f"step {number} ({left}): {commit.short} {commit.subject}")
        step = self._told(commit) or self._tried(commit, ends)
        step = replace(step, seconds=round(time.monotonic() - began, 2))
        self._say(f"step {number}: {commit.short} is {step.cls} ({step.how}): {step.why}")
        return step

    def _told(self, commit: Commit) -> Step | None:
        cls = self._job.told.get(commit.hash)
        return Step(commit, cls, How.TOLD, f"{cls} in the log that was given") if cls else None

    def _tried(self, commit: Commit, ends: Ends) -> Step:
        build = self._bench.build(commit)
        verdict = by_build(build, self._job.question.find)
        digest = build.kernel_digest if build.status is Status.PASSED else ""
        known = self._known(ends).get(digest) if digest and verdict is None else None
        if known:
            cls, like = known
            why = f"its kernel is that of {like[:12]}, byte for byte"
            step = Step(commit, cls, How.SAME_KERNEL, why, digest, like)
        else:
            cls, how, why, change, tally = verdict or self._judge.judge(commit, ends)
            step = Step(commit, cls, how, why, digest, change=change, tally=tally)
        if build.cached:
            return step
        return replace(step, objects=build.objects, build_seconds=build.seconds)

    def _known(self, ends: Ends) -> dict[str, tuple[Class, str]]:
        """Kernels that have a class, and of which commit they are."""
        known = {s.kernel: (s.cls, s.commit.hash) for s in reversed(self._memory.steps) if s.kernel}
        job = self._job
        return known | {
            ends.good_kernel: (Class.GOOD, job.good.hash),
            ends.bad_kernel: (Class.BAD, job.bad.hash),
        }

    def _conclude(self, done: Done, ends: Ends) -> Bisection:
        if done.candidates:
            count = len(done.candidates)
            why = f"the first bad commit is one of {count}: what lies among them could not be classified"
            return self._end(Ending.SKIPPED, why, ends, candidates=self._commits(done.candidates))
        if not done.first_bad:
            return self._end(Ending.MERGE_BASE_BAD, " ".join(done.said.split()), ends)
        first = self._git.commit(done.first_bad)
        proofs = tuple(self._proofs(first, ends))
        wrong = next((p for p in proofs if p.cls is Class.BAD), None)
        if wrong:
            why = f"{first.short} is bad, but its parent {wrong.parent.short} is bad too: {wrong.why}"
            return self._end(Ending.CONTRADICTED, why, ends, first_bad=first, proofs=proofs)
        return self._end(Ending.FOUND, f"{first.short} is the first bad commit", ends, first_bad=first, proofs=proofs)

    def _proofs(self, first: Commit, ends: Ends) -> Iterator[Proof]:
        """Each parent judged for itself, also where git inferred it, and compared with the commit."""
        steps = {step.commit.hash: step for step in self._memory.steps}
        for name in first.parents[: 1 if self._job.first_parent else None]:
            parent = self._git.commit(name)
            if name == self._job.good.hash:
                cls, why = Class.GOOD, "the good end"
            else:
                self._say(f"comparing {first.short} with its parent {parent.short}")
                step = steps.get(name) or self._tried(parent, ends)
                cls, why = step.cls, step.why
            if cls is Class.SKIP or self._job.question.find is Find.BUILD:
                yield Proof(parent, cls, why)
            else:
                yield self._judge.proof(parent, first, ends, cls, why)

    def _commits(self, names: tuple[str, ...]) -> tuple[Commit, ...]:
        return tuple(self._git.commit(name) for name in names)

    def _end(
        self,
        ending: Ending,
        why: str,
        ends: Ends | None,
        *,
        first_bad: Commit | None = None,
        candidates: tuple[Commit, ...] = (),
        proofs: tuple[Proof, ...] = (),
    ) -> Bisection:
        job, question, memory = self._job, self._job.question, self._memory
        measured = question.find is Find.METRIC and any(s.how is How.MEASURED for s in memory.steps)
        spent = replace(
            self._bench.spent, seconds=round(time.monotonic() - self._began, 1), resumed=self._memory.resumed
        )
        return Bisection(
            ending=ending,
            why=why,
            question=question.words,
            find=question.find,
            arch=question.machine.arch,
            machine=question.machine.name,
            tree=job.tree,
            good=job.good,
            bad=job.bad,
            commits=job.commits,
            ends=ends,
            steps=memory.steps,
            first_bad=first_bad,
            files=self._git.files(first_bad) if first_bad else (),
            candidates=candidates,
            proofs=proofs,
            notes=job.notes,
            log=self._git.log() if ends and ends.usable else "",
            patch=_patch(job.order, first_bad),
            error=rule.ERROR if measured else None,
            spent=spent,
            command=job.command,
        )


def _patch(order: tuple[str, ...], first_bad: Commit | None) -> tuple[int, int] | None:
    if first_bad is None or first_bad.hash not in order:
        return None
    return order.index(first_bad.hash) + 1, len(order)
