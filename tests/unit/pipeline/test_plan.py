# SPDX-License-Identifier: GPL-2.0-or-later
"""The graph: each kernel and each arm once, whatever wants it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kpatch_ci.model.boot import BootResult
from kpatch_ci.model.build import BuildResult
from kpatch_ci.model.machine import Cluster, Machine
from kpatch_ci.model.series import Contrast, Series, Switches
from kpatch_ci.model.status import Status
from kpatch_ci.model.workload import Case, Replicate, Seed, WorkloadPlan
from kpatch_ci.pipeline.engine import Node
from kpatch_ci.pipeline.plan import Depth, plan
from kpatch_ci.pipeline.stagenames import build_name, image_name
from kpatch_ci.pipeline.stages import Stages
from tests.fakes.results import boot, build

CASE = Case(
    (("groups", 1),),
    (("timeout_s", 9), ("mode", "process"), ("transport", "pipe"), ("loops", 1), ("iterations", 1), ("datasize", 9)),
)
PLANS = tuple(WorkloadPlan(name, "hackbench", (CASE,), 1.0) for name in ("hackbench", "hackbench-long"))
MACHINE = Machine("m", "d", "x86_64", "q35", "qemu64", 256, (Cluster("p", (0, 1)),), 0)
ONE = Series("one", "t", "o", (), switches=Switches(("F",)))
CARRIED = replace(ONE, name="one+carried", variant="carried", contrast=Contrast.CARRIED, kernel="one")
BASE = Series("one+b-baseline", "t", "o", ())
ON_BASE = replace(ONE, name="one+b", variant="b", base=BASE, only=("hackbench-long",))


@pytest.fixture
def stages() -> Stages:
    config = SimpleNamespace(
        machines=(MACHINE,), workloads=PLANS, seeds=(Seed(1, 1), Seed(1, 2)), fragments=lambda _: ()
    )
    tree = SimpleNamespace(release="6.1.192", tree_id="t")
    return Stages(cast("Any", SimpleNamespace(config=config, tree=tree)), cast("Any", None), cast("Any", None))


def names(stages: Stages, series: Sequence[Series], kind: str, **how: Any) -> list[str]:
    made = [node.name for node in plan(stages, series, **how)]
    assert len(made) == len(set(made))
    return [name for name in made if name.startswith(f"{kind} ")]


def test_a_series_and_its_switched_off_variant_share_kernel_boots_and_baseline(stages: Stages) -> None:
    both = (ONE, CARRIED)
    assert names(stages, both, "apply") == ["apply one"]
    assert names(stages, both, "build") == ["build x86_64 baseline", "build x86_64 one"]
    assert names(stages, both, "boot") == ["boot x86_64 baseline seed 1", "boot x86_64 one seed 1"]
    arms = {name.split(" ")[2] for name in names(stages, both, "run")}
    assert arms == {"baseline", "one", "one(off)"}
    assert len(names(stages, both, "run")) == 3 * 2 * 2


def test_an_arm_is_measured_with_what_its_series_wants_only(stages: Stages) -> None:
    assert names(stages, (ON_BASE,), "apply") == ["apply one+b-baseline", "apply one+b"]
    assert names(stages, (ON_BASE,), "boot") == ["boot x86_64 one+b-baseline seed 1", "boot x86_64 one+b seed 1"]
    assert {name.split(" ")[3] for name in names(stages, (ON_BASE,), "run")} == {"hackbench-long"}
    together = names(stages, (ONE, ON_BASE), "run")
    assert sum(" baseline hackbench " in name for name in together) == 2
    assert sum(" one+b hackbench " in name for name in together) == 0


def test_without_a_series_the_baseline_is_measured_and_with_one_it_need_not_be(stages: Stages) -> None:
    assert {name.split(" ")[2] for name in names(stages, (), "run")} == {"baseline"}
    assert {name.split(" ")[2] for name in names(stages, (ONE,), "run", baseline=False)} == {"one"}
    assert names(stages, (ONE,), "build", depth=Depth(boots=False), baseline=False)[0] == "build x86_64 baseline"


def test_the_switched_off_arms_job_turns_the_change_off_first(stages: Stages) -> None:
    on, off = ONE.arms[1], CARRIED.arms[1]
    seed = Seed(1, 1)
    assert "NO_F" in stages.job(off, PLANS[0], CASE, seed)
    assert "NO_F" not in stages.job(on, PLANS[0], CASE, seed)


class FakeGuests:
    """Knows a boot of every kernel."""

    def find_boot(self, build: BuildResult, *_: Any) -> BootResult:
        return boot(arm=build.arm, arch="x86_64")


def skipped_boots_and_runs(stages: Stages, series: Sequence[Series], digests: dict[str, str]) -> set[str]:
    """Arms that are not booted or not measured, when the kernels that were built have ``digests``."""
    values: dict[str, Any] = {
        build_name("x86_64", kernel): build(kernel, "x86_64", kernel_digest=found) if found else None
        for kernel, found in digests.items()
    }
    values[image_name("x86_64")] = None
    skipped = set()
    for node in plan(stages, series):
        if node.name.startswith("boot "):
            assert node.lookup
            values[node.name] = node.lookup(values)
            skipped |= set() if values[node.name] else {f"boot {node.name.split(' ')[2]}"}
        elif node.name.startswith("run "):
            assert set(node.needs) <= set(values)
            if (one := _look(node, values)) is not None and one.status is Status.SKIPPED:
                skipped.add(f"run {node.name.split(' ')[2]}")
    return skipped


def _look(node: Node, values: Any) -> Replicate | None:
    """A lookup that goes on to the store has not skipped it."""
    assert node.lookup
    try:
        found: Replicate | None = node.lookup(values)
    except AttributeError:
        return None
    return found


def test_kernels_that_are_alike_are_not_benchmarked(stages: Stages) -> None:
    stages.guests = cast("Any", FakeGuests())
    other = replace(ONE, name="two")
    assert skipped_boots_and_runs(stages, (ONE,), {"baseline": "b", "one": "p"}) == set()
    alike = {"baseline": "b", "one": "b"}
    assert skipped_boots_and_runs(stages, (ONE,), alike) == {"boot one", "run one", "run baseline"}
    assert skipped_boots_and_runs(stages, (ONE, other), {**alike, "two": "p"}) == {"boot one", "run one"}
    assert skipped_boots_and_runs(stages, (ONE,), {"baseline": "b", "one": ""}) == {
        "boot one",
        "run one",
        "run baseline",
    }, "one that does not build has nothing to be compared with either"
    switched = replace(ONE, name="one+switched", contrast=Contrast.SWITCHED, kernel="one")
    assert skipped_boots_and_runs(stages, (switched,), alike) == set(), "it is compared with itself"


def test_only_what_is_wanted_is_booted_for_and_measured(stages: Stages) -> None:
    some = {"wanted": {("x86_64", "hackbench-long")}}
    assert {name.split(" ")[3] for name in names(stages, (ONE,), "run", **some)} == {"hackbench-long"}
    assert len(names(stages, (ONE,), "boot", **some)) == 2
    none = {"wanted": {("arm64", "hackbench")}}
    assert names(stages, (ONE,), "boot", **none) == names(stages, (ONE,), "run", **none) == []
    assert names(stages, (ONE,), "build", **none) == ["build x86_64 baseline", "build x86_64 one"]
