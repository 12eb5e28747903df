# SPDX-License-Identifier: GPL-2.0-or-later
"""What is enough."""

from __future__ import annotations

import pytest

from kpatch_ci.host import finding
from kpatch_ci.host.finding import GB, GIB


@pytest.mark.parametrize(
    ("version", "ok"), [("3.11.2", True), ("Python 3.13.5\n", True), ("4.0.1", True), ("3.9.2", False), ("", False)]
)
def test_python_3_11_is_the_oldest(version: str, ok: bool) -> None:
    assert finding.python(version).ok is ok


@pytest.mark.parametrize(("total", "ok"), [(8 * GIB, True), (int(3.8 * GIB), True), (3 * GIB, False)])
def test_four_gib_as_sold_are_enough(total: int, ok: bool) -> None:
    assert finding.memory(total).ok is ok


@pytest.mark.parametrize(
    ("free", "warm", "ok"), [(17, False, True), (15, False, False), (15, True, True), (7, True, False)]
)
def test_an_empty_cache_wants_more_room_than_a_warm_one(free: int, warm: bool, ok: bool) -> None:
    found = finding.disk(free * GB, "/cache", warm=warm)
    assert found.ok is ok
    assert ("KPATCH_CI_CACHE" in found.fix) is not ok


def test_one_core_is_slow_and_not_wrong() -> None:
    assert finding.cores(1).ok is None
    assert finding.cores(2).ok is True


def test_a_program_that_is_not_there_says_how_to_get_it() -> None:
    assert finding.program("bwrap", "bubblewrap", "bubblewrap 0.8.0\n").detail == "0.8.0"
    absent = finding.program("bwrap", "bubblewrap", "")
    assert (absent.ok, absent.fix) == (False, "sudo apt-get install -y bubblewrap")
