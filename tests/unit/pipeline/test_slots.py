# SPDX-License-Identifier: GPL-2.0-or-later
"""The run's CPU slots: a GNU make jobserver."""

from __future__ import annotations

import os
import stat

from kpatch_ci.pipeline.slots import Slots


def test_there_are_as_many_slots_as_asked_and_no_more() -> None:
    with Slots(2) as slots:
        assert [slots.take(), slots.take(), slots.take()] == [True, True, False]
        slots.give()
        assert slots.take()


def test_a_make_takes_its_jobs_from_the_same_pipe() -> None:
    with Slots(2) as slots:
        assert stat.S_ISFIFO(slots.path.stat().st_mode)
        fd = os.open(slots.path, os.O_RDWR | os.O_NONBLOCK)
        try:
            assert os.read(fd, 1) == b"+"
            assert [slots.take(), slots.take()] == [True, False]
        finally:
            os.close(fd)


def test_tokens_that_a_killed_make_kept_come_back() -> None:
    with Slots(3) as slots:
        assert slots.take()
        slots.refill()
        assert [slots.take() for _ in range(4)] == [True, True, True, False]


def test_nothing_is_left_behind() -> None:
    with Slots(1) as slots:
        place = slots.directory
    assert not place.exists()
