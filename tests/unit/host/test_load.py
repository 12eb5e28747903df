# SPDX-License-Identifier: GPL-2.0-or-later
"""Busy loops: there while wanted, gone afterwards, whatever happens."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kpatch_ci.host.load import LOOP, busy, overload


def test_the_loops_run_inside_the_block_and_not_after_it() -> None:
    with busy(2) as loops:
        assert [loop.wait(0.05) for loop in loops] == [None, None]
    assert all(loop.poll() is not None for loop in loops)


def test_an_exception_ends_them_too() -> None:
    with pytest.raises(KeyboardInterrupt), busy(1) as loops:
        raise KeyboardInterrupt
    assert loops[0].poll() is not None


def test_a_loop_ends_by_itself_when_its_starter_is_gone() -> None:
    subprocess.run([sys.executable, "-S", "-c", LOOP, "1000000000"], timeout=20, check=True)


def test_there_is_one_loop_more_than_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 3})
    assert overload() == 3
