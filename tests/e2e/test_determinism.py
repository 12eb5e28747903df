# SPDX-License-Identifier: GPL-2.0-or-later
"""Replicates repeated on a host that is kept busy: all alike, those of a second boot included."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import Command

pytestmark = pytest.mark.e2e


def test_every_workload_repeats_on_both_architectures_under_load(kpatch_ci: Command) -> None:
    done = kpatch_ci("verify-determinism", "--repeats", "4", "--load", "--json")
    result = done.result
    assert {(c["arch"], c["workload"]) for c in result["cases"]} == {
        (arch, workload) for arch in ("arm64", "x86_64") for workload in ("dd", "dd-dsync", "hackbench", "dbench")
    }
    assert [c for c in result["cases"] if not c["identical"]] == []
    assert [b for b in result["boots"] if not b["identical"]] == []
    assert done.code == 0
