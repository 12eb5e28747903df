# SPDX-License-Identifier: GPL-2.0-or-later
"""The bench that is real: builds, boots and replicates through the same engine, cache and guests as a run's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from kpatch_ci.kernel.build import Builder, BuildRequest
from kpatch_ci.kernel.walk import Walk
from kpatch_ci.model.bisect import Commit, Find, Spent
from kpatch_ci.model.boot import BootResult
from kpatch_ci.model.build import BuildResult
from kpatch_ci.model.series import Arm
from kpatch_ci.model.status import Status
from kpatch_ci.model.workload import Replicate, Seed
from kpatch_ci.pipeline.bisect.bench import Key, Question, Runs
from kpatch_ci.pipeline.engine import Node, Observer, Values
from kpatch_ci.pipeline.session import Session
from kpatch_ci.pipeline.slots import Slots
from kpatch_ci.pipeline.stagenames import PRIORITY, boot_name, build_name
from kpatch_ci.pipeline.stages import Stages

RUN_SEED = 1
"""One run a boot: each sample is a boot of its own, so samples are independent."""

TIMED_OUT = re.compile(r"was not done after|said nothing for")
"""In the reason of a guest that was ended by the host's clock."""


@dataclass
class _Patient(Stages):
    """Runs a case under every seed, however many have failed: how often it fails is what is counted."""

    def note_failure(self, key: str) -> None:
        """Not counted, so never given up."""


def new_stages(session: Session, builder: Builder, question: Question) -> Stages:
    """Stages that know of no failure yet."""
    kind = Stages if question.find is Find.METRIC else _Patient
    return kind(session, builder, session.guests())


@dataclass
class RealBench:
    """Kernels of one machine's architecture. What was found stays in memory too: not every mode's samples are kept on disk."""

    session: Session
    question: Question
    stages: Stages
    slots: Slots
    walk: Walk
    observer: Observer
    spent: Spent = field(default_factory=Spent)
    _builds: dict[str, BuildResult] = field(default_factory=dict)
    _boots: dict[tuple[str, int], BootResult] = field(default_factory=dict)
    _runs: dict[tuple[str, int], dict[Key, Replicate]] = field(default_factory=dict)

    def build(self, commit: Commit) -> BuildResult:
        """The commit's kernel."""
        if commit.hash not in self._builds:
            values = self._engine([self._build_node(commit)])
            self._builds[commit.hash] = values[self._build_name(commit)]
        return self._builds[commit.hash]

    def run(self, commit: Commit, boots: int) -> Runs:
        """Boots, and what is run in them."""
        self.build(commit)
        wanted = [seed for seed in range(1, boots + 1) if (commit.hash, seed) not in self._boots]
        if wanted:
            self._measure(commit, wanted)
        seeds = range(1, boots + 1)
        replicates = {k: r for seed in seeds for k, r in self._runs.get((commit.hash, seed), {}).items()}
        return Runs(tuple(self._boots[commit.hash, seed] for seed in seeds), replicates)

    def _measure(self, commit: Commit, seeds: Sequence[int]) -> None:
        self._take(commit, seeds, self.stages)
        for seed in seeds:
            if self._timed_out(commit, seed):
                # A busy host looks like a guest that hangs: once more, with nothing beside it, before it is believed.
                self._take(commit, [seed], new_stages(self.session, self.stages.builder, self.question))

    def _take(self, commit: Commit, seeds: Sequence[int], stages: Stages) -> None:
        machine, plan, arm = self.question.machine, self.question.plan, Arm(commit.short)
        nodes = [self._build_node(commit), stages.image(machine.arch)]
        nodes += [stages.boot(machine, commit.short, seed) for seed in seeds]
        runs = [Seed(boot, RUN_SEED) for boot in seeds] if plan and self._is_run else []
        nodes += stages.replicates(machine, arm, plan, runs) if plan else []
        values = self._engine(nodes)
        for seed in seeds:
            self._boots[commit.hash, seed] = values[boot_name(machine.arch, commit.short, seed)]
            found = [v for v in values.values() if isinstance(v, Replicate) and v.seed.boot == seed]
            self._runs[commit.hash, seed] = {(r.workload, r.case, r.seed): r for r in found}

    def _timed_out(self, commit: Commit, seed: int) -> bool:
        ended: list[BootResult | Replicate] = [self._boots[commit.hash, seed], *self._runs[commit.hash, seed].values()]
        return any(one.status is not Status.PASSED and TIMED_OUT.search(one.reason) for one in ended)

    @property
    def _is_run(self) -> bool:
        return self.question.find in (Find.METRIC, Find.CRASH, Find.WORKLOAD)

    def _build_name(self, commit: Commit) -> str:
        return build_name(self.question.machine.arch, commit.short)

    def _request(self, commit: Commit) -> BuildRequest:
        return self.stages.request(self.question.machine.arch, commit.short, commit.tree_id)

    def _build_node(self, commit: Commit) -> Node:
        def look(_: Values) -> BuildResult | None:
            return self._builds.get(commit.hash) or self.walk.find(self._request(commit))

        def work(_: Values) -> BuildResult:
            return self.walk.build(self._request(commit), self.session.logs)

        return Node(self._build_name(commit), "build", work, priority=PRIORITY["build"], lookup=look)

    def _engine(self, nodes: Sequence[Node]) -> dict[str, Any]:
        counted = _Counted(self.observer)
        values = self.stages.session.engine(self.slots, counted).run(nodes)
        spent = self.spent
        self.spent = replace(
            spent,
            builds=spent.builds + counted.builds,
            build_seconds=round(spent.build_seconds + counted.build_seconds, 1),
            boots=spent.boots + counted.boots,
            replicates=spent.replicates + counted.replicates,
        )
        return values


@dataclass
class _Counted:
    """Passes the engine's events on, and counts what was really done."""

    observer: Observer
    builds: int = 0
    build_seconds: float = 0.0
    boots: int = 0
    replicates: int = 0

    def planned(self, nodes: Sequence[Node]) -> None:
        self.observer.planned(nodes)

    def started(self, node: Node) -> None:
        self.observer.started(node)

    def finished(self, node: Node, value: Any, seconds: float, known: bool) -> None:
        if not known and isinstance(value, BuildResult) and not value.cached:
            self.builds += 1
            self.build_seconds += seconds
        self.boots += not known and isinstance(value, BootResult) and not value.cached
        self.replicates += not known and isinstance(value, Replicate)
        self.observer.finished(node, value, seconds, known)

    def note(self, text: str) -> None:
        self.observer.note(text)

    def tick(self) -> None:
        self.observer.tick()


@contextmanager
def open_bench(session: Session, question: Question, name: str, observer: Observer) -> Iterator[RealBench]:
    """A bench whose first builds begin with the objects of the session's tree. ``name`` tells its working tree from others'."""
    with Slots(session.jobs) as slots:
        builder = session.builder(slots.path)
        stages = new_stages(session, builder, question)
        baseline = stages.request(question.machine.arch, "baseline", session.tree.tree_id)
        with Walk(builder, baseline, name) as walk:
            yield RealBench(session, question, stages, slots, walk, observer)
