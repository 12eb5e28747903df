# SPDX-License-Identifier: GPL-2.0-or-later
"""Measuring in real time: A B B A, one guest at a time, each booted afresh, and nothing reused."""

from __future__ import annotations

import itertools
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kpatch_ci.guest.guests import Guests
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.model.machine import Accel
from kpatch_ci.model.series import BASELINE, Arm, Series, Switches
from kpatch_ci.model.status import Mode, Status
from kpatch_ci.model.workload import Replicate, Seed, WorkloadPlan
from kpatch_ci.pipeline import live
from kpatch_ci.pipeline.engine import Engine, Node, Values
from kpatch_ci.pipeline.inexact import mode_of
from kpatch_ci.pipeline.plan import Depth, plan
from kpatch_ci.pipeline.slots import Slots
from kpatch_ci.pipeline.stagenames import boot_name, build_name, image_name
from kpatch_ci.pipeline.stages import Stages
from kpatch_ci.store.artifacts import ArtifactStore
from kpatch_ci.workloads import make_case
from tests.fakes.qemu import FakeToolRoot
from tests.unit.guest.test_guest_guests import MACHINE, make_bench

TCG, KVM = replace(MACHINE, accel=Accel.TCG), replace(MACHINE, accel=Accel.KVM)
ARM = replace(MACHINE, name="a", arch="arm64")
HACKBENCH = WorkloadPlan("hackbench", "hackbench", (make_case("hackbench", {"groups": 4}),), 1.0)
DBENCH = WorkloadPlan("dbench", "dbench", (make_case("dbench", {"clients": 4}),), 1.0)
SEEDS = tuple(Seed(1, run) for run in (1, 2, 3))
ONE, TWO = (Series(name, "t", "o", (), switches=Switches(("F",))) for name in ("one", "two"))


def stages(*machines, plans=(HACKBENCH,), folder: Path = Path("/nowhere"), **scenario: str) -> Stages:  # type: ignore[no-untyped-def]
    """Enough of a session for a plan, and with ``folder`` for guests of a QEMU that runs none."""
    config = SimpleNamespace(machines=machines, workloads=plans, seeds=SEEDS, fragments=lambda _: ())
    tools = FakeToolRoot(folder, "trixie", "tools-1", {}, {"fresh": "hackbench", **scenario})
    tree = SimpleNamespace(release="6.1.192", tree_id="t")
    session = SimpleNamespace(
        config=config, tree=tree, cache=folder, store=ArtifactStore(folder / "store"), tools=tools, logs=folder / "logs"
    )
    limits = {"boot_timeout": 20.0, "replicate_timeout": 20.0, "silence_timeout": 20.0}
    guests = Guests(folder, session.store, tools, **limits)
    return Stages(cast("Any", session), cast("Any", None), guests)


def runs(nodes: list[Node]) -> list[str]:
    return [f"{n.name.split(' ')[2]} {n.name.rsplit(' ', 1)[1]}" for n in nodes if n.kind == "run"]


def test_arms_alternate_from_seed_to_seed() -> None:
    nodes = plan(stages(TCG), (ONE,))
    assert runs(nodes) == ["baseline 1.1", "one 1.1", "one 1.2", "baseline 1.2", "baseline 1.3", "one 1.3"]
    three = runs(plan(stages(TCG), (ONE, TWO)))
    assert three[:6] == ["baseline 1.1", "one 1.1", "two 1.1", "two 1.2", "one 1.2", "baseline 1.2"]
    assert len(three) == len(set(three)) == 9


def test_what_a_kernel_must_differ_from_is_built_first_in_real_time_too() -> None:
    nodes = {n.name: n for n in plan(stages(TCG), (ONE,))}
    assert "build x86_64 one" in nodes["run x86_64 baseline hackbench groups=4 seed 1.1"].needs
    again = {n.name: n for n in plan(stages(MACHINE), (ONE,))}
    assert "build x86_64 one" in again["run x86_64 baseline hackbench groups=4 seed 1.3"].needs


def test_a_case_is_done_before_the_next_begins() -> None:
    nodes = [n for n in plan(stages(TCG, plans=(HACKBENCH, DBENCH)), (ONE,)) if n.kind == "run"]
    assert [n.name.split(" ")[3] for n in nodes] == ["hackbench"] * 6 + ["dbench"] * 6


def test_each_replicate_waits_for_the_one_before_and_the_first_for_all_else() -> None:
    nodes = plan(stages(TCG, ARM), (ONE,))
    chain = [n for n in nodes if n.name.startswith("run x86_64")]
    others = {n.name for n in nodes} - {n.name for n in chain}
    assert any(name.startswith("run arm64") for name in others)
    assert others <= set(chain[0].needs)
    for before, after in itertools.pairwise(chain):
        assert before.name in after.needs


def test_virtual_time_is_planned_as_before() -> None:
    nodes = plan(stages(MACHINE), (ONE,))
    assert runs(nodes) == [f"{arm} {seed}" for arm in ("baseline", "one") for seed in SEEDS]
    assert not [need for n in nodes if n.kind == "run" for need in n.needs if need.startswith("run ")]
    needs = {(n.name.split(" ")[2], len(n.needs)) for n in nodes if n.kind == "run"}
    assert needs == {("baseline", 4), ("one", 3)}, "build, image, boot; the baseline also for a kernel that is another"


def test_two_machines_in_real_time_take_turns_too() -> None:
    nodes = [n for n in plan(stages(TCG, replace(ARM, accel=Accel.TCG)), (ONE,)) if n.kind == "run"]
    assert all(before.name in after.needs for before, after in itertools.pairwise(nodes))
    assert len(nodes) == 12


def test_the_engine_never_has_two_at_work() -> None:
    busy, most, lock = [0], [0], threading.Lock()

    def work(_: Values) -> str:
        with lock:
            busy[0] += 1
            most[0] = max(most[0], busy[0])
        time.sleep(0.01)
        with lock:
            busy[0] -= 1
        return "done"

    observer = SimpleNamespace(
        planned=lambda _: None, started=lambda _: None, finished=lambda *_: None, tick=lambda: None
    )
    nodes = live.alone([], [Node(f"n{i}", "run", work) for i in range(8)])
    with Slots(4) as slots:
        Engine(slots, cast("Any", observer)).run(nodes)
    assert most[0] == 1


def test_dbench_runs_without_its_lens_in_real_time_under_the_same_label() -> None:
    jobs = {}
    for machine in (MACHINE, TCG):
        (node,) = stages(machine).replicates(machine, Arm(BASELINE), DBENCH, SEEDS[:1])
        jobs[machine.accel] = node.work.__self__.job  # type: ignore[attr-defined]
        assert node.name == "run x86_64 baseline dbench fs=xfs,clients=4 seed 1.1"
    assert "KPCI_CLOCK_FACTOR=20" in jobs[Accel.DETERMINISTIC]
    assert "KPCI_CLOCK_FACTOR" not in jobs[Accel.TCG]


def test_the_mode_is_the_accelerators() -> None:
    s = stages(TCG).session
    assert mode_of(s.store, s.tools, cast("Any", None), TCG, "hackbench") is Mode.TCG
    assert mode_of(s.store, s.tools, cast("Any", None), KVM, "hackbench") is Mode.KVM


def replicate(made: Stages, folder: Path) -> tuple[Node, dict[str, Any]]:
    bench = make_bench(folder)
    boot = made.guests.boot(bench.build, bench.image, TCG, 1, folder / "logs")
    assert boot.status is Status.PASSED
    values = {
        build_name("x86_64", BASELINE): bench.build,
        image_name("x86_64"): bench.image,
        boot_name("x86_64", BASELINE, 1): boot,
    }
    return made.replicates(TCG, Arm(BASELINE), HACKBENCH, SEEDS[:1])[0], values


def test_a_replicate_is_measured_anew_each_time_and_not_kept(tmp_path: Path) -> None:
    made = stages(TCG, folder=tmp_path)
    node, values = replicate(made, tmp_path)
    assert node.lookup is not None
    for _ in range(2):
        assert node.lookup(values) is None
        found = node.work(values)
        assert (found.status, found.mode, found.cached) == (Status.PASSED, Mode.TCG, False)
        assert found.samples["time"] == 0.4
    assert not (tmp_path / "store/replicate").exists()


def test_a_replicate_whose_boot_is_lost_says_so(tmp_path: Path) -> None:
    node, values = replicate(stages(TCG, folder=tmp_path), tmp_path)
    lost = stages(TCG, folder=tmp_path, fresh="boot-panic").replicates(TCG, Arm(BASELINE), HACKBENCH, SEEDS[:1])[0]
    found = lost.work(values)
    assert node.name == lost.name
    assert (found.status, found.samples) == (Status.FAILED, {})
    assert found.reason.startswith("the guest crashed: ")
    agent = stages(TCG, folder=tmp_path, fresh="agent").replicates(TCG, Arm(BASELINE), HACKBENCH, SEEDS[:1])[0]
    assert agent.work(values).reason == "the guest ended before it was ready"


@pytest.mark.parametrize("how", ["panic", "boot-panic", "killed"])
def test_a_replicate_whose_first_guest_was_lost_has_the_seconds_figures_and_tells_it(tmp_path: Path, how: str) -> None:
    _, values = replicate(stages(TCG, folder=tmp_path), tmp_path)
    made = stages(TCG, folder=tmp_path, fresh=f"once-{how}")
    found = made.replicates(TCG, Arm(BASELINE), HACKBENCH, SEEDS[:1])[0].work(values)
    assert (found.status, found.samples["time"], found.reason) == (Status.PASSED, 0.4, "")
    assert found.first is not None
    assert found.first.reason.startswith("QEMU ended" if how == "killed" else "the guest crashed: ")
    assert made.failed("x86_64 baseline hackbench groups=4") == 0


def test_a_replicate_that_is_lost_twice_failed_and_tells_both(tmp_path: Path) -> None:
    _, values = replicate(stages(TCG, folder=tmp_path), tmp_path)
    made = stages(TCG, folder=tmp_path, fresh="panic")
    found = made.replicates(TCG, Arm(BASELINE), HACKBENCH, SEEDS[:1])[0].work(values)
    assert found.status is Status.FAILED
    assert found.reason.count("the guest crashed: ") == 2
    assert "booted again after the first guest was lost: the guest crashed: " in found.reason
    assert made.failed("x86_64 baseline hackbench groups=4") == 1


def test_what_was_skipped_has_the_mode_of_the_rest(tmp_path: Path) -> None:
    made = stages(TCG, folder=tmp_path)
    node, values = replicate(made, tmp_path)
    values[boot_name("x86_64", BASELINE, 1)] = None
    assert node.lookup is not None
    found: Replicate = node.lookup(values)
    assert (found.status, found.mode) == (Status.SKIPPED, Mode.TCG)


def probe(folder: Path, **scenario: str) -> Any:
    bench = make_bench(folder)
    made = stages(KVM, folder=folder, **scenario)
    (node,) = [n for n in plan(made, (), Depth(replicates=False)) if n.name == "probe two"]
    return node.work({build_name("x86_64", BASELINE): bench.build, image_name("x86_64"): bench.image})


def test_under_kvm_each_boot_waits_for_a_kernel_to_have_booted() -> None:
    nodes = plan(stages(KVM), (ONE,))
    boots = [n for n in nodes if n.name.startswith("boot ")]
    assert len(boots) == 2
    assert all("probe two" in n.needs for n in boots)
    assert not [n for n in plan(stages(TCG), (ONE,)) if n.name.startswith("probe")]


def test_a_kernel_that_boots_proves_kvm(tmp_path: Path) -> None:
    assert probe(tmp_path, fresh="well").status is Status.PASSED


def test_a_kernel_that_hangs_under_kvm_ends_the_run_with_what_was_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "PROBE_SILENCE", 0.5)
    with pytest.raises(InfrastructureError) as caught:
        probe(tmp_path, fresh="boot-hang")
    told = str(caught.value)
    assert "it runs a guest of one disk sector, but linux 6.1.140 on two did not boot" in told
    assert "the guest said nothing for 0.5 s" in told
    assert "--accel tcg" in told
