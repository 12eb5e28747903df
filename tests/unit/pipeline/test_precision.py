# SPDX-License-Identifier: GPL-2.0-or-later
"""Rounds of measuring, with an engine that makes figures instead of guests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kpatch_ci.config.load import Config
from kpatch_ci.model.machine import Cluster, Machine
from kpatch_ci.model.series import Series
from kpatch_ci.model.status import Mode, Status
from kpatch_ci.model.workload import Case, Replicate, Seed, WorkloadPlan
from kpatch_ci.pipeline.engine import Node
from kpatch_ci.pipeline.plan import FULL, plan
from kpatch_ci.pipeline.precision import Rounds, more_seeds
from kpatch_ci.pipeline.session import Session
from kpatch_ci.pipeline.stages import Stages
from kpatch_ci.stats.precision import Precision
from kpatch_ci.stats.verdict import Thresholds
from tests.fakes.results import boot, build

CASE = Case(
    (("groups", 1),),
    (("timeout_s", 9), ("iterations", 1), ("mode", "process"), ("transport", "pipe"), ("loops", 1), ("datasize", 9)),
)
PLANS = tuple(WorkloadPlan(name, "hackbench", (CASE,), 1.0) for name in ("hackbench", "hackbench-steady"))
MACHINE = Machine("m", "d", "x86_64", "q35", "qemu64", 256, (Cluster("p", (0, 1)),), 0)
SERIES = Series("one", "t", "o", ())
Time = Callable[[str, str, Seed], float | None]


def wild(arm: str, workload: str, seed: Seed) -> float | None:
    """Steady in one workload; in the other boots differ by up to 2 %."""
    if workload == "hackbench-steady" or arm == "baseline":
        return 1.0
    return 1.0 + 0.01 * (seed.boot % 3 - 1)


class Engine:
    """As the real one: what it had before is known. Times come from ``time``; None is a failure."""

    def __init__(self, time: Time) -> None:
        self.time, self.values, self.rounds = time, cast("dict[str, Any]", {}), cast("list[list[str]]", [])

    def run(self, nodes: Sequence[Node]) -> dict[str, Any]:
        self.rounds.append([node.name for node in nodes])
        assert not self.values.keys() & set(self.rounds[-1]), "nothing is measured twice"
        self.values |= {node.name: self._value(node) for node in nodes}
        return self.values

    def _value(self, node: Node) -> Any:
        words = node.name.split(" ")
        if node.kind == "build":
            return replace(build(words[2]), kernel_digest=words[2])
        if node.kind == "boot":
            return boot(int(words[-1]), words[2])
        if node.kind != "run":
            return None
        seed = Seed(*map(int, words[-1].split(".")))
        found = self.time(words[2], words[3], seed)
        samples = {} if found is None else {"time": found, "context_switches": 9.0, "migrations": 1.0, "wakeups": 9.0}
        status = Status.PASSED if samples else Status.FAILED
        return Replicate(words[3], CASE.label, seed, status, Mode.DETERMINISTIC, samples)


def rounds(time: Time, asked: Precision, boots: int = 6) -> tuple[Engine, Config, int, list[str]]:
    seeds = tuple(Seed(boot, 1) for boot in range(1, boots + 1))
    config = Config(
        path=cast("Any", None),
        root=cast("Any", None),
        profile="",
        tree="",
        series=(),
        machines=(MACHINE,),
        kconfig=(),
        tools="",
        archives=None,
        workloads=PLANS,
        seeds=seeds,
        thresholds=Thresholds(),
        timeouts=cast("Any", None),
        precision=asked,
    )
    tree = SimpleNamespace(release="6.1.192", tree_id="t")
    none = cast("Any", None)
    session = Session(config, none, none, none, none, cast("Any", tree), 1, none)
    stages = Stages(session, none, none)
    stages._config["x86_64"] = {}
    engine, notes = Engine(time), cast("list[str]", [])
    values = engine.run(plan(stages, (SERIES,)))
    made = Rounds(stages, (SERIES,), FULL, cast("Any", engine), notes.append)
    _, count = made.run(values, asked)
    return engine, stages.session.config, count, notes


def test_boots_are_added_for_what_is_too_wide_until_it_is_not() -> None:
    engine, config, count, notes = rounds(wild, Precision(0.6))
    assert count == len(engine.rounds) == len(notes) + 1 > 1
    assert len(config.seeds) > 6
    assert config.seeds[:6] == tuple(Seed(boot, 1) for boot in range(1, 7))
    later = [name for names in engine.rounds[1:] for name in names]
    assert {name.split(" ")[3] for name in later if name.startswith("run ")} == {"hackbench"}
    assert "boot x86_64 baseline seed 7" in later
    assert notes[0].startswith("round 2: ")
    assert "boots an arm for hackbench x86_64: ±1 % so far, ±0.6 % asked for" in notes[0]


def test_what_is_narrow_enough_at_once_has_one_round() -> None:
    assert rounds(wild, Precision(1.5))[2] == 1


def test_the_cap_ends_it() -> None:
    _, config, count, _ = rounds(wild, Precision(0.01, most=13))
    assert len(config.seeds) == 13
    assert count == 3  # 6, 12, 13


def test_boots_that_give_nothing_are_not_added_for_ever() -> None:
    engine, config, count, _ = rounds(lambda a, w, s: wild(a, w, s) if s.boot <= 6 else None, Precision(0.1))
    assert (count, len(config.seeds)) == (2, 12)
    assert len(engine.rounds) == 2


def test_more_boots_have_the_runs_that_the_first_have() -> None:
    assert more_seeds((Seed(1, 1), Seed(1, 2)), 2) == (Seed(1, 1), Seed(1, 2), Seed(2, 1), Seed(2, 2))


@pytest.mark.parametrize("boots", [3, 1])
def test_few_boots_to_start_with_grow_too(boots: int) -> None:
    assert len(rounds(wild, Precision(0.9), boots)[1].seeds) > boots
