# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels whose difference is known: addresses alone change nothing, work in each wakeup slows hackbench by what it was set to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.conftest import Command

pytestmark = pytest.mark.e2e


def test_a_tiny_pool_tells_a_slow_down_from_another_layout(kpatch_ci: Command, tmp_path: Path) -> None:
    argv = ("calibrate", "--profile", "precise", "--workload", "hackbench", "--arch", "x86_64")
    done = kpatch_ci(
        *argv, "--pool", "6", "--seeds", "6", "--trials", "5", "--level", "5", "--json", "--output", tmp_path / "out"
    )
    result = done.result
    assert json.loads((tmp_path / "out/calibration.json").read_text()) == result
    assert done.code == (0 if result["met"] else 1)
    (machine,) = result["machines"]
    for arm, workloads in machine["samples"].items():
        (seeds,) = workloads["hackbench"].values()
        assert set(seeds) == {f"{boot}.1" for boot in range(1, 7)}, arm
        assert all(samples["time"] > 0 for samples in seeds.values()), arm
    (layout,) = machine["layout_effect"]
    assert layout["verdict"] != "regressed"
    assert layout["verdict"] != "improved"
    assert machine["samples"]["A"] != machine["samples"]["A'"]
    five = next(level for level in machine["levels"] if level["level_percent"] == 5)
    assert -6.5 < five["effect"]["change_percent"] < -3.5
    assert five["effect"]["verdict"] == "regressed"
    (power,) = [row for row in five["power"] if row["seeds"] == 6]
    assert power["regressed"]["hits"] == 5
