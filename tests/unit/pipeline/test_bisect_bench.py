# SPDX-License-Identifier: GPL-2.0-or-later
"""The real bench, with stages that boot nothing: what is asked of the engine, and how often."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest

from kpatch_ci.model.bisect import Commit, Find
from kpatch_ci.model.boot import BootResult
from kpatch_ci.model.build import BuildResult
from kpatch_ci.model.machine import Machine
from kpatch_ci.model.series import Arm
from kpatch_ci.model.status import Mode, Status
from kpatch_ci.model.workload import Replicate, Seed, WorkloadPlan
from kpatch_ci.pipeline.bisect import real
from kpatch_ci.pipeline.bisect.bench import Question
from kpatch_ci.pipeline.bisect.real import RealBench
from kpatch_ci.pipeline.engine import Engine, Node, Observer
from kpatch_ci.pipeline.slots import Slots
from kpatch_ci.pipeline.stagenames import boot_name, build_name, image_name, run_name
from tests.unit.pipeline.test_bisect import MACHINE, PLAN, QUESTION

COMMIT = Commit("c" * 40, "t" * 40, (), "A", "a@b", "2023-11-14", "c1")
HANGS = "the guest was not done after 180 s"


def engine(_: Any, slots: Slots, observer: Observer) -> Engine:
    """A session's, which has no other machines."""
    return Engine(slots, observer)


class Silent:
    def planned(self, nodes: Sequence[Node]) -> None: ...
    def started(self, node: Node) -> None: ...
    def finished(self, node: Node, value: Any, seconds: float, known: bool) -> None: ...
    def tick(self) -> None: ...
    def note(self, text: str) -> None: ...


@dataclass
class FakeStages:
    """Nodes that note what they do. ``boots``: boot seed -> why it is lost, for each time."""

    asked: list[str]
    lost: dict[int, list[str]]
    session: Any = None
    builder: Any = None

    def request(self, arch: str, arm: str, tree_id: str) -> str:
        return arm

    def image(self, arch: str) -> Node:
        return Node(image_name(arch), "image", lambda _: "image")

    def boot(self, machine: Machine, kernel: str, seed: int) -> Node:
        def work(_: Any) -> BootResult:
            self.asked.append(f"boot {seed}")
            reasons = self.lost.get(seed, [])
            why = reasons.pop(0) if reasons else ""
            status = Status.FAILED if why else Status.PASSED
            return BootResult(status, kernel, machine.arch, machine.name, seed, "k", 1.0, cached=False, reason=why)

        return Node(boot_name(machine.arch, kernel, seed), "boot", work, (build_name(machine.arch, kernel),))

    def replicates(self, machine: Machine, arm: Arm, plan: WorkloadPlan, seeds: Sequence[Seed]) -> list[Node]:
        def node(seed: Seed) -> Node:
            def work(values: Any) -> Replicate:
                up = values[boot_name(machine.arch, arm.kernel, seed.boot)].status is Status.PASSED
                status = Status.PASSED if up else Status.SKIPPED
                return Replicate(plan.name, "groups=8", seed, status, Mode.DETERMINISTIC, {"time": 1.0 + seed.boot})

            name = run_name(machine.arch, arm, plan.name, "groups=8", seed)
            return Node(name, "run", work, (boot_name(machine.arch, arm.kernel, seed.boot),))

        return [node(seed) for seed in seeds]


@dataclass
class FakeWalk:
    built: list[str] = field(default_factory=list)

    def find(self, request: str) -> None:
        return None

    def build(self, request: str, logs: Path) -> BuildResult:
        self.built.append(request)
        return BuildResult(Status.PASSED, request, "x86_64", "t", "k", 2.0, 5, cached=False, kernel_digest="d")


Make = Callable[..., tuple[RealBench, list[str]]]


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Make]:
    asked: list[str] = []
    session = cast(Any, type("S", (), {"logs": tmp_path, "guests": lambda _: None, "engine": engine})())
    with Slots(2) as slots:

        def bench(
            question: Question = QUESTION, lost: dict[int, list[str]] | None = None
        ) -> tuple[RealBench, list[str]]:
            stages = FakeStages(asked, lost or {}, session)
            monkeypatch.setattr(real, "new_stages", lambda *_: stages)
            return RealBench(session, question, cast(Any, stages), slots, cast(Any, FakeWalk()), Silent()), asked

        yield bench


def test_only_boots_that_are_not_known_are_made(make: Make) -> None:
    bench, asked = make()
    assert [r.seed for r in bench.run(COMMIT, 3).replicates.values()] == [Seed(n, 1) for n in (1, 2, 3)]
    assert sorted(asked) == ["boot 1", "boot 2", "boot 3"]
    more = bench.run(COMMIT, 5)
    assert sorted(asked) == [f"boot {n}" for n in range(1, 6)]
    assert [b.boot_seed for b in more.boots] == [1, 2, 3, 4, 5]
    assert bench.run(COMMIT, 2).replicates.keys() == {("hackbench", "groups=8", Seed(n, 1)) for n in (1, 2)}
    spent = bench.spent
    assert (spent.builds, spent.boots, spent.replicates) == (1, 5, 5)
    assert bench.build(COMMIT).objects == 5


def test_nothing_is_run_where_only_boots_count(make: Make) -> None:
    bench, _ = make(replace(QUESTION, find=Find.BOOT, plan=PLAN))
    assert bench.run(COMMIT, 2).replicates == {}
    assert Question(Find.BOOT, MACHINE).plan is None


def test_a_guest_that_the_clock_ended_is_tried_once_more(make: Make) -> None:
    bench, asked = make(lost={2: [HANGS]})
    ran = bench.run(COMMIT, 3)
    assert ran.lost is None
    assert ran.broken is None
    assert asked.count("boot 2") == 2
    assert asked.count("boot 1") == asked.count("boot 3") == 1


def test_one_that_hangs_again_is_believed_and_a_crash_at_once(make: Make) -> None:
    bench, asked = make(lost={2: [HANGS, HANGS, HANGS], 3: ["the guest crashed: Kernel panic"] * 2})
    ran = bench.run(COMMIT, 3)
    assert ran.lost
    assert (ran.lost.boot_seed, ran.lost.reason) == (2, HANGS)
    assert asked.count("boot 2") == 2
    assert asked.count("boot 3") == 1


def test_a_failure_that_is_counted_is_never_given_up_on() -> None:
    session = cast(Any, type("S", (), {"guests": lambda _: None})())
    counting = real.new_stages(session, cast(Any, None), replace(QUESTION, find=Find.CRASH))
    measuring = real.new_stages(session, cast(Any, None), QUESTION)
    for stages in (counting, measuring):
        stages.note_failure("case")
        stages.note_failure("case")
    assert counting.failed("case") == 0
    assert measuring.failed("case") == 2
