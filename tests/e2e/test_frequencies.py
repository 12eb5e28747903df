# SPDX-License-Identifier: GPL-2.0-or-later
"""Emulated frequency scaling: the module is built with each arm and loaded, and the iowait boost shows what its mail claims."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Command, arches

pytestmark = pytest.mark.e2e


def test_the_iowait_boost_speeds_dd_up_on_a_slow_device(kpatch_ci: Command, tmp_path: Path) -> None:
    """Three seeds are too few for a verdict, but every one of them must say so (docs/cpufreq.md: +15 % with twelve)."""
    argv = (
        "run",
        "--series",
        "schedutil-iowait-boost",
        "--arch",
        "arm64",
        "--workload",
        "dd",
        "--seeds",
        "3",
    )
    done = kpatch_ci(*argv, "--json", "--output", tmp_path / "out")
    part = arches(done.result)["arm64"]
    for arm in ("baseline", "patched"):
        assert part["boot"][arm]["status"] == "passed", part["boot"][arm]
    (row,) = (
        c
        for c in part["comparisons"]
        if (c["workload"], c["case"], c["metric"]) == ("dd", "rw=read,bs=1M", "throughput")
    )
    assert row["change_percent"] > 10
    assert all(patched > 1.1 * baseline for baseline, patched in zip(row["baseline"], row["patched"], strict=True))
    assert {p["name"] for p in part["proofs"] if p["holds"]} >= {
        "kernel/iowait_reset_ticks",
        "kernel/iowait_apply_ticks",
    }
    check_recorded(part)


def check_recorded(part: Any) -> None:
    """Frequency over time, and where tasks ran: the boost is lost in the baseline and kept in the patched kernel."""
    lines = {(t["case"], t["policy"]): t for t in part["timelines"]}
    line = lines["rw=read,bs=1M", "policy0"]
    for arm in ("baseline", "patched"):
        assert line[arm]["lost"] == 0
        assert 0 < line[arm]["total"] == len(line[arm]["changes"])
        assert all(0 <= at <= line[arm]["span_ns"] for at, _ in line[arm]["changes"])
    assert line["baseline"]["changes"][-1][1] == 500000
    assert line["patched"]["changes"][-1][1] >= 1400000, (
        "it dips there from 1800 and comes back; where it ends is chance"
    )
    assert part["clusters"] == {"little": [0, 1, 2, 3, 4, 5], "big": [6, 7]}
    (where,) = (p for p in part["placement_times"] if p["case"] == "rw=read,bs=1M")
    for arm in ("baseline", "patched"):
        assert where[arm]["cpus"].keys() == {str(n) for n in range(8)}
        assert sum(where[arm]["cpus"].values()) == pytest.approx(1)
        assert sum(where[arm]["clusters"].values()) == pytest.approx(1)
        # Tasks cannot run for longer than three replicates of eight CPUs take, and dd does run.
        assert 0.01 < where[arm]["seconds"] < 3 * 8 * line[arm]["span_ns"] / 1e9
