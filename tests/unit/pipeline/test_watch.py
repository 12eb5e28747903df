# SPDX-License-Identifier: GPL-2.0-or-later
"""Changes that are noticed, and rounds that are given up because of them."""

from __future__ import annotations

import queue
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from kpatch_ci.pipeline.engine import Node
from kpatch_ci.pipeline.watch import Attentive, Changes, SupersededError, settled
from kpatch_ci.series.uncommitted import Snapshot


class _Source:
    """Events that a test puts in."""

    def __init__(self) -> None:
        self._queue: queue.Queue[object] = queue.Queue()

    def put(self, event: object = "changed") -> None:
        self._queue.put(event)

    def __iter__(self) -> Iterator[object]:
        while True:
            event = self._queue.get()
            if isinstance(event, Exception):
                raise event
            yield event


class _Silent:
    def __init__(self) -> None:
        self.ticks = 0

    def planned(self, nodes: Sequence[Node]) -> None: ...

    def started(self, node: Node) -> None: ...

    def finished(self, node: Node, value: Any, seconds: float, known: bool) -> None: ...

    def note(self, text: str) -> None: ...

    def tick(self) -> None:
        self.ticks += 1


def test_a_change_is_told_once() -> None:
    source = _Source()
    changes = Changes(source)
    assert not changes.wait(0)
    source.put()
    assert changes.wait(5)
    assert not changes.wait(0.05)


def test_what_the_listener_met_is_raised_where_it_is_waited_for() -> None:
    source = _Source()
    changes = Changes(source)
    source.put(OSError("no more watches"))
    with pytest.raises(OSError, match="no more watches"):
        changes.wait(5)


def test_a_round_is_given_up_when_the_tree_is_another() -> None:
    source, inner = _Source(), _Silent()
    changes = Changes(source)
    same = [True, False]
    observer = Attentive(inner, changes, lambda: same.pop(0))
    observer.tick()
    source.put()
    _until_seen(changes)
    observer.tick()
    assert same == [False], "a file was touched, the tree is the same: the round goes on"
    source.put()
    _until_seen(changes)
    with pytest.raises(SupersededError):
        observer.tick()
    assert inner.ticks == 3


def test_a_burst_of_changes_is_waited_out() -> None:
    changes = Changes(iter(["one", "two", "three"]))
    assert settled(changes, lambda: Snapshot("tree", None)).tree_id == "tree"
    assert not changes.wait(0)


def _until_seen(changes: Changes) -> None:
    assert changes._seen.wait(5)
