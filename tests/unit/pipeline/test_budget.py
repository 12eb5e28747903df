# SPDX-License-Identifier: GPL-2.0-or-later
"""What a time-boxed run gives up, in which order, and what it says of that."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kpatch_ci.config.load import Config
from kpatch_ci.model.machine import Accel, Cluster, Machine
from kpatch_ci.model.result import ArmResult
from kpatch_ci.model.series import BASELINE, Arm, Series
from kpatch_ci.model.status import Mode, Status
from kpatch_ci.model.workload import Case, Replicate, Seed, WorkloadPlan
from kpatch_ci.pipeline.assemble import _no_time
from kpatch_ci.pipeline.budget import LAST, Costs, already_known, fit, missed
from kpatch_ci.pipeline.engine import Node
from kpatch_ci.pipeline.plan import plan
from kpatch_ci.pipeline.stagenames import OVER, run_name
from kpatch_ci.pipeline.stages import Stages
from tests.fakes.results import boot, build

MACHINE = Machine("m", "d", "x86_64", "q35", "qemu64", 256, (Cluster("p", (0, 1)),), 0)
PARAMS = (
    ("timeout_s", 9),
    ("iterations", 1),
    ("mode", "process"),
    ("transport", "pipe"),
    ("loops", 1),
    ("datasize", 9),
)
CASES = tuple(Case((("groups", n),), PARAMS) for n in (1, 2, 4))
HACKBENCH = WorkloadPlan("hackbench", "hackbench", CASES, 1.0)
SHORT = WorkloadPlan("hackbench-short", "hackbench", CASES[:1], 1.0)
BOTH = {Arm(BASELINE): (HACKBENCH, SHORT), Arm("one"): (HACKBENCH, SHORT)}
CONFIG = cast(
    "Config",
    SimpleNamespace(machines=(MACHINE,), workloads=(HACKBENCH, SHORT), seeds=tuple(Seed(b, 1) for b in range(1, 13))),
)


@pytest.fixture
def costs(tmp_path: Path) -> Costs:
    path = tmp_path / "costs.json"
    path.write_text(json.dumps({f"x86_64 {p.name} {c.label}": 1.0 for p in (HACKBENCH, SHORT) for c in p.cases}))
    return Costs(path)


def cases(found: tuple[WorkloadPlan, ...]) -> dict[str, list[str]]:
    return {one.name: [case.label for case in one.cases] for one in found}


def test_all_cases_stay_where_six_boots_of_them_fit(costs: Costs) -> None:
    # 4 cases x 2 arms x 6 boots x 1 s on 2 CPUs: 24 s
    found = fit(CONFIG, BOTH, (), costs, seconds=LAST + 24, jobs=2)
    assert found.left_out == ()
    assert cases(found.workloads) == {
        "hackbench": ["groups=1", "groups=2", "groups=4"],
        "hackbench-short": ["groups=1"],
    }


def test_the_last_cases_of_the_longest_list_go_first(costs: Costs) -> None:
    found = fit(CONFIG, BOTH, (), costs, seconds=LAST + 23, jobs=2)
    assert found.left_out == ("left out for the time budget: hackbench groups=4",)
    assert cases(found.workloads) == {"hackbench": ["groups=1", "groups=2"], "hackbench-short": ["groups=1"]}


def test_every_workload_keeps_a_case_however_short_the_time(costs: Costs) -> None:
    found = fit(CONFIG, BOTH, (), costs, seconds=0, jobs=2)
    assert found.left_out == ("left out for the time budget: hackbench groups=2, groups=4",)
    assert cases(found.workloads) == {"hackbench": ["groups=1"], "hackbench-short": ["groups=1"]}


def test_what_is_known_costs_nothing(costs: Costs) -> None:
    known = {
        run_name("x86_64", arm, "hackbench", case.label, Seed(b, 1))
        for arm in BOTH
        for case in CASES
        for b in range(1, 7)
    }
    found = fit(CONFIG, BOTH, known, costs, seconds=LAST + 6, jobs=2)
    assert found.left_out == ()


def test_costs_are_learned_from_what_was_measured_and_survive_damage(tmp_path: Path) -> None:
    path = tmp_path / "state" / "costs.json"
    path.parent.mkdir()
    path.write_text("{ no JSON")
    costs = Costs(path)
    assert costs.of(MACHINE, "hackbench", "groups=1") == 2.0
    ran = Replicate("hackbench", "groups=1", Seed(1, 1), Status.PASSED, Mode.DETERMINISTIC, seconds=4.0)
    values = {
        "run x86_64 baseline hackbench groups=1 seed 1.1": ran,
        "run x86_64 baseline hackbench groups=1 seed 2.1": replace(ran, seconds=100.0, cached=True),
        "run x86_64 baseline hackbench groups=1 seed 3.1": replace(ran, seconds=0.1, status=Status.FAILED),
    }
    costs.learn(values, (MACHINE,))
    assert Costs(path).of(MACHINE, "hackbench", "groups=1") == 4.0
    costs.learn({"run x86_64 one hackbench groups=1 seed 1.1": replace(ran, seconds=14.0)}, (MACHINE,))
    assert Costs(path).of(MACHINE, "hackbench", "groups=1") == pytest.approx(0.7 * 4 + 0.3 * 14)


def test_what_real_time_costs_says_nothing_of_virtual_time(tmp_path: Path) -> None:
    costs = Costs(tmp_path / "costs.json")
    real = replace(MACHINE, accel=Accel.TCG)
    ran = Replicate("hackbench", "groups=1", Seed(1, 1), Status.PASSED, Mode.TCG, seconds=30.0)
    costs.learn({"run x86_64 baseline hackbench groups=1 seed 1.1": ran}, (real,))
    assert costs.of(MACHINE, "hackbench", "groups=1") == 2.0
    assert costs.of(real, "hackbench", "groups=1") == 30.0


def test_what_is_known_is_looked_up_in_order() -> None:
    def none(_: Any) -> None:
        return None

    nodes = [
        Node("boot", "boot", none, needs=("build",), lookup=lambda values: values["build"] + 1),
        Node("run 1", "run", none, needs=("boot",), lookup=lambda values: values["boot"] + 1),
        Node("run 2", "run", none, needs=("boot",), lookup=none),
        Node("after 2", "run", none, needs=("run 2",), lookup=lambda _: 1),
    ]
    assert already_known(nodes, {"build": 1}) == {"build", "boot", "run 1"}


def stages(deadline: float | None) -> Stages:
    config = SimpleNamespace(
        machines=(MACHINE,),
        workloads=(HACKBENCH,),
        seeds=(Seed(1, 1), Seed(2, 1)),
        fragments=lambda _: (),
        cache=Path(),
    )
    tree = SimpleNamespace(release="6.1.192", tree_id="t")
    session = SimpleNamespace(config=config, tree=tree)
    return Stages(cast("Any", session), cast("Any", None), cast("Any", None), deadline)


def test_against_the_clock_a_run_goes_boot_by_boot() -> None:
    def order(made: Stages) -> list[tuple[str, int]]:
        nodes = [n for n in plan(made, [Series("one", "t", "o", ())]) if n.kind in ("boot", "run")]
        by_turn = sorted(range(len(nodes)), key=lambda i: (nodes[i].priority, i))
        return [(nodes[i].kind, int(nodes[i].name.rsplit(" ", 1)[1].split(".")[0])) for i in by_turn]

    first_boot = [("boot", 1)] * 2 + [("run", 1)] * 6
    second_boot = [("boot", 2)] * 2 + [("run", 2)] * 6
    assert order(stages(time.monotonic() + 100)) == first_boot + second_boot
    assert [kind for kind, _ in order(stages(None))] == ["boot"] * 4 + ["run"] * 12


def test_what_is_not_begun_in_time_is_skipped_and_counted() -> None:
    made = plan(stages(time.monotonic() - 1), [Series("one", "t", "o", ())])
    values: dict[str, Any] = {"image x86_64": None}
    for node in made:
        if node.kind == "build":
            values[node.name] = replace(build(node.name), kernel_digest=node.name)
    booted = "boot x86_64 baseline seed 1"
    for node in made:
        if node.kind == "boot":
            values[node.name] = boot(1, BASELINE) if node.name == booted else node.work(values)
    assert values["boot x86_64 one seed 1"] is None
    late = next(n for n in made if n.name == "run x86_64 one hackbench groups=1 seed 2.1")
    assert late.lookup
    found = late.lookup(values)
    assert (found.status, found.reason) == (Status.SKIPPED, OVER)
    passed = replace(found, status=Status.PASSED, reason="", seed=Seed(1, 1))
    runs = {late.name: found, "run x86_64 one hackbench groups=1 seed 1.1": passed}
    assert missed(runs) == ("cut short by the time budget: hackbench on x86_64: 1 of 2 boots measured whole",)
    assert missed({"run x86_64 one hackbench groups=1 seed 1.1": passed}) == ()


def test_a_run_that_measured_nothing_in_time_is_no_pass() -> None:
    late = Replicate("hackbench", "groups=1", Seed(1, 1), Status.SKIPPED, Mode.DETERMINISTIC, reason=OVER)
    nothing = _no_time(ArmResult(build("one"), (), (late,)))
    assert nothing
    assert nothing[0] is Status.ERROR
    some = replace(late, status=Status.PASSED, reason="")
    assert _no_time(ArmResult(build("one"), (), (late, some))) is None
    assert _no_time(ArmResult(build("one"), (), ())) is None
