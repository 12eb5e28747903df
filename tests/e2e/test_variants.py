# SPDX-License-Identifier: GPL-2.0-or-later
"""Variants of a series on real kernels: other baseline patches, and a change that is switched off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Command, arches

pytestmark = pytest.mark.e2e
DSYNC = "rw=write,bs=4k,fs={},oflag=direct+dsync,latency_us=100"


def row(part: Any, workload: str, case: str, metric: str) -> Any:
    (found,) = (c for c in part["comparisons"] if (c["workload"], c["case"], c["metric"]) == (workload, case, metric))
    return found


def test_without_61s_own_stacking_the_series_ends_migrations_on_xfs_and_leaves_ext4_alone(
    kpatch_ci: Command, tmp_path: Path
) -> None:
    """Three seeds are too few for a verdict; every one of them must show it."""
    name = "stack-workqueue+no-kthread-stacking"
    argv = ("run", "--series", name, "--arch", "arm64", "--workload", "dd-dsync", "--seeds", "3")
    result = kpatch_ci(*argv, "--json", "--output", tmp_path / "out").result
    (series,) = result["series"]
    assert (series["name"], series["variant"], series["arms"]) == (
        name,
        name.partition("+")[2],
        [f"{name}-baseline", name],
    )
    part = arches(result)["arm64"]
    assert part["status"] == "passed", part["reason"]
    assert part["build"]["baseline"]["tree_id"] != result["tree"]["tree_id"] != part["build"]["patched"]["tree_id"]
    xfs = row(part, "dd-dsync", DSYNC.format("xfs"), "migrations")
    assert all(
        before > 100 and after < before / 10 for before, after in zip(xfs["baseline"], xfs["patched"], strict=True)
    )
    ext4 = row(part, "dd-dsync", DSYNC.format("ext4"), "migrations")
    assert max(*ext4["baseline"], *ext4["patched"]) < 20
    assert {p["name"]: p["holds"] for p in part["proofs"]}["WA_STACK_WQ"]


def test_a_switched_off_change_does_nothing_and_is_measured_in_the_same_kernel(
    kpatch_ci: Command, tmp_path: Path
) -> None:
    argv = ("run", "--series", "wakeup-gran", "--variants", "--arch", "arm64", "--workload", "hackbench", "--quick")
    result = kpatch_ci(*argv, "--json", "--output", tmp_path / "out").result
    found = {s["name"]: s["arches"][0] for s in result["series"]}
    assert set(found) == {"wakeup-gran", "wakeup-gran+carried", "wakeup-gran+switched"}
    switches = {name: row(part, "hackbench", "groups=8", "context_switches") for name, part in found.items()}
    assert switches["wakeup-gran"]["change_percent"] > 20
    assert switches["wakeup-gran+switched"]["change_percent"] > 20
    assert switches["wakeup-gran+switched"]["baseline"] == switches["wakeup-gran+carried"]["patched"]
    assert switches["wakeup-gran+switched"]["patched"] == switches["wakeup-gran"]["patched"]
    same = found["wakeup-gran+switched"]["build"]
    assert same["baseline"]["image_digest"] == same["patched"]["image_digest"]
    assert found["wakeup-gran+switched"]["status"] == found["wakeup-gran+carried"]["status"] == "passed"
