# SPDX-License-Identifier: GPL-2.0-or-later
"""Emulated frequency scaling: the module is built with each arm and loaded, and the iowait boost shows what its mail claims."""

from __future__ import annotations

from pathlib import Path

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
