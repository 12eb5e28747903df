# SPDX-License-Identifier: GPL-2.0-or-later
"""What a run says beforehand: how much there is to do, and about how long that takes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kpatch_ci.config.load import Config
from kpatch_ci.model.machine import Accel
from kpatch_ci.model.series import BASELINE, Arm
from kpatch_ci.model.workload import Seed
from kpatch_ci.pipeline.budget import Costs
from kpatch_ci.pipeline.engine import Node
from kpatch_ci.pipeline.foretell import cramped, foretell
from tests.unit.pipeline.test_budget import HACKBENCH, MACHINE

ARMS = {Arm(BASELINE): (HACKBENCH,), Arm("one"): (HACKBENCH,)}
SEEDS = 12


def config(seeds: int = SEEDS, **changes: Any) -> Config:
    made = SimpleNamespace(
        machines=(replace(MACHINE, **changes),),
        seeds=tuple(Seed(b, 1) for b in range(1, seeds + 1)),
        spare_here=False,
        engine=None,
    )
    return cast("Config", made)


def nodes(seeds: int = SEEDS) -> list[Node]:
    """Two kernels; a boot of each a seed, and a replicate of each of three cases."""
    names = [("build", "build x86_64 baseline"), ("build", "build x86_64 one")]
    names += [("boot", f"boot {arm} {b}") for arm in ARMS for b in range(seeds)]
    names += [("run", f"run {arm} {case.label} {b}") for arm in ARMS for case in HACKBENCH.cases for b in range(seeds)]
    return [Node(name, kind, lambda _: None, arch=MACHINE.arch) for kind, name in names]


@pytest.fixture
def costs(tmp_path: Path) -> Costs:
    path = tmp_path / "costs.json"
    machines = ("x86_64", "x86_64 tcg")
    path.write_text(json.dumps({f"{m} hackbench {case.label}": 10.0 for m in machines for case in HACKBENCH.cases}))
    return Costs(path)


def test_all_is_counted_and_shared_by_the_cpus(costs: Costs) -> None:
    # 335 + 15 s of kernels, 24 boots of 2 s, 72 replicates of 10 s: 1,118 s
    told = "ahead: 2 kernels, 24 boots, 72 replicates: about {} (an estimate) where none of it was done before"
    assert foretell(config(), ARMS, nodes(), (), costs, jobs=1).startswith(told.format("19 min on 1 CPU"))
    assert foretell(config(), ARMS, nodes(), (), costs, jobs=2).startswith(told.format("9 min on 2 CPUs"))


def test_a_baseline_that_is_built_costs_nothing(costs: Costs) -> None:
    # 15 + 48 + 720 s
    told = foretell(config(), ARMS, nodes(), {"build x86_64 baseline"}, costs, jobs=1)
    assert told.startswith("ahead: 1 kernel, 24 boots, 72 replicates: about 13 min on 1 CPU ")


def test_in_real_time_replicates_run_one_by_one_whatever_the_cpus(costs: Costs) -> None:
    # (350 + 48) / 8 + 720 s
    told = foretell(config(accel=Accel.TCG), ARMS, nodes(), (), costs, jobs=8)
    assert "about 13 min on 8 CPUs" in told


def test_what_was_never_measured_is_taken_for_two_seconds(tmp_path: Path) -> None:
    # 350 + 48 + 72 x 2 s
    assert "about 9 min on 1 CPU " in foretell(config(), ARMS, nodes(), (), Costs(tmp_path / "none"), jobs=1)


def test_hours_are_hours_and_what_is_short_is_not_told(costs: Costs) -> None:
    # 350 + 960 x 2 + 2,880 x 10 s: 31,070 s
    assert "960 boots, 2,880 replicates: about 8.6 h on 1 CPU " in foretell(
        config(480), ARMS, nodes(480), (), costs, jobs=1
    )
    built = {"build x86_64 baseline", "build x86_64 one"}
    assert foretell(config(1), ARMS, nodes(1), built, costs, jobs=1) == ""


def test_a_disk_without_room_for_all_that_is_kept_is_told() -> None:
    # 24 snapshots of 43 MB, 2 kernels of 17 MB, a tree with objects of 1.8 GB: 2.866 GB
    assert cramped(config(), nodes(), (), free=2.87e9) == ""
    told = cramped(config(), nodes(), (), free=2.86e9)
    assert told.startswith(
        "disk: up to 2.9 GB are needed for 2 kernels and the snapshots of 24 boots, and 2.9 GB are free"
    )
    built = {"build x86_64 baseline", "build x86_64 one"}
    assert cramped(config(), nodes(), built, free=1.04e9) == ""
    assert "up to 1.0 GB are needed for the snapshots of 24 boots," in cramped(config(), nodes(), built, free=1.03e9)


def test_what_is_booted_elsewhere_or_in_real_time_takes_no_room() -> None:
    assert cramped(config(accel=Accel.TCG), nodes(), (), free=1.84e9) == ""
    there = config()
    there.__dict__["spare_here"] = True
    assert cramped(there, nodes(), (), free=1.84e9) == ""
    assert cramped(there, nodes(), (), free=1.83e9) != ""
