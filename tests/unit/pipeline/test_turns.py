# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests and make share a host's CPUs once a build was asked for, and nobody waits for ever."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kpatch_ci import process
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.pipeline import turns as module
from kpatch_ci.pipeline.turns import Turns


@pytest.fixture
def turns(tmp_path: Path) -> Iterator[Turns]:
    made = Turns(tmp_path / "work")
    yield made
    made.close()
    assert list((tmp_path / "work").glob("*")) == []


def test_before_a_build_nobody_waits(turns: Turns) -> None:
    with ExitStack() as stack:
        for _ in range(5):
            stack.enter_context(turns.one())


def test_as_many_at_once_as_there_are_and_what_make_holds_is_waited_for(turns: Turns) -> None:
    pipe = turns.share(2)
    assert turns.share(2) == pipe
    make = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    began: list[float] = []

    def guest() -> None:
        with turns.one():
            began.append(time.monotonic())

    with turns.one():
        assert os.read(make, 5) == b"+", "the build itself has one, and make gets the other"
        waiting = threading.Thread(target=guest)
        waiting.start()
        time.sleep(0.1)
        assert began == []
        gave = time.monotonic()
        os.write(make, b"+")
        waiting.join(5)
        assert began[0] >= gave
    os.close(make)


def test_what_a_killed_make_took_with_it_is_there_again_when_nothing_is_at_work(turns: Turns) -> None:
    pipe = turns.share(2)
    with turns.one():
        make = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
        os.read(make, 1)
        os.close(make)
    with turns.one(), turns.one():
        pass


def test_a_guest_that_gets_none_begins_all_the_same_and_gives_none_back(
    turns: Turns, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.05)
    pipe = turns.share(1)
    with turns.one():
        with turns.one():
            pass
        make = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
        with pytest.raises(BlockingIOError):
            os.read(make, 1)
        os.close(make)


def test_whoever_waits_is_told_when_all_is_ended(turns: Turns, monkeypatch: pytest.MonkeyPatch) -> None:
    turns.share(1)
    with turns.one():
        monkeypatch.setattr(process, "is_stopping", lambda: True)
        with pytest.raises(InfrastructureError, match="stopped"), turns.one():
            pass
    monkeypatch.undo()
    with turns.one():
        pass
