# SPDX-License-Identifier: GPL-2.0-or-later
"""The three mails on three Debian kernels: the table, hunk by hunk, as `patch --dry-run` of the mails gives it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.conftest import Command

pytestmark = pytest.mark.e2e
SEEDS = ("schedutil-iowait-boost", "wakeup-gran", "stack-workqueue")
TREES = ("debian:5.10", "debian:6.1", "debian:6.12")
TABLE = {
    ("schedutil-iowait-boost", "debian:5.10"): "port needed",
    ("wakeup-gran", "debian:5.10"): "as mailed",
    ("stack-workqueue", "debian:5.10"): "port needed",
    ("schedutil-iowait-boost", "debian:6.1"): "port",
    ("wakeup-gran", "debian:6.1"): "as mailed",
    ("stack-workqueue", "debian:6.1"): "port",
    ("schedutil-iowait-boost", "debian:6.12"): "port needed",
    ("wakeup-gran", "debian:6.12"): "port needed",
    ("stack-workqueue", "debian:6.12"): "port needed",
}


def without_help(row: Any) -> set[tuple[str, int]]:
    """File and hunk of what would not apply with patch(1)'s default, two lines of fuzz."""
    failures = [failure for patch in row["patches"] for failure in patch["failures"]]
    return {(f["path"], f["hunk"]) for f in failures if f["fuzz"] is None or f["fuzz"] > 2}


def test_the_table_of_the_three_mails(kpatch_ci: Command) -> None:
    series = [word for name in SEEDS for word in ("--series", name)]
    trees = [word for tree in TREES for word in ("-t", tree)]
    done = kpatch_ci("check", *series, *trees, "--json")
    assert done.code == 1
    rows = {(row["series"], row["tree"]): row for row in done.result if row["series"] in SEEDS}
    assert {key: row["fit"] for key, row in rows.items()} == TABLE
    assert without_help(rows["schedutil-iowait-boost", "debian:5.10"]) == {("kernel/sched/cpufreq_schedutil.c", 1)}
    assert len(without_help(rows["stack-workqueue", "debian:5.10"])) == 3
    assert without_help(rows["schedutil-iowait-boost", "debian:6.1"]) == {
        ("include/linux/sched/sysctl.h", 1),
        ("kernel/sysctl.c", 1),
    }
    assert len(without_help(rows["stack-workqueue", "debian:6.1"])) == 3
    moved = {p["path"] for patch in rows["wakeup-gran", "debian:6.1"]["patches"] for p in patch["placements"]}
    assert moved == {"kernel/sched/fair.c", "kernel/sched/features.h"}
    assert all(row["base"] is None for row in rows.values())  # Debian's sources have no history
