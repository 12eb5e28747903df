# SPDX-License-Identifier: GPL-2.0-or-later
"""`watch`: a round of the pipeline for each state of a working tree, given up as soon as the tree changes again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kpatch_ci.pipeline.engine import Node, Observer
from kpatch_ci.series.uncommitted import Snapshot

SETTLE = 0.3
"""Seconds without a change after which a burst of them (an editor's save, a checkout) counts as over."""


class SupersededError(Exception):
    """The working tree changed while a round was at work on its former state."""


class Changes:
    """Says when files change: ``events`` blocks until some did, again and again, and ends when it is told to stop."""

    def __init__(self, events: Iterable[object]) -> None:
        self._events = events
        self._seen = threading.Event()
        self._failed: BaseException | None = None
        threading.Thread(target=self._listen, name="watch", daemon=True).start()

    def _listen(self) -> None:
        try:
            for _ in self._events:
                self._seen.set()
        except BaseException as error:
            self._failed = error
        self._seen.set()

    def wait(self, timeout: float | None = None) -> bool:
        """Whether something changed within ``timeout`` seconds (None: for ever); raises what the listener met."""
        # Without a limit the main thread could not take a Ctrl-C on every platform; a second is soon enough.
        while not self._seen.wait(1.0 if timeout is None else timeout):
            if timeout is not None:
                return False
        self._seen.clear()
        if self._failed is not None:
            raise self._failed
        return True


class Attentive:
    """An observer that gives the round up (SupersededError) when the tree is no longer what it was at the beginning."""

    def __init__(self, inner: Observer, changes: Changes, same: Callable[[], bool]) -> None:
        self._inner, self._changes, self._same = inner, changes, same

    def planned(self, nodes: Sequence[Node]) -> None:
        """Before the first node."""
        self._inner.planned(nodes)

    def started(self, node: Node) -> None:
        """A node begins to work."""
        self._inner.started(node)

    def finished(self, node: Node, value: Any, seconds: float, known: bool) -> None:
        """A node has its value."""
        self._inner.finished(node, value, seconds, known)

    def note(self, text: str) -> None:
        """Something that a person who waits would want to know."""
        self._inner.note(text)

    def tick(self) -> None:
        """Look whether something changed; touching a file without changing it is nothing."""
        self._inner.tick()
        if self._changes.wait(0) and not self._same():
            raise SupersededError


def settled(changes: Changes, snapshot: Callable[[], Snapshot]) -> Snapshot:
    """The working tree once its changes have come to rest."""
    while changes.wait(SETTLE):
        pass
    return snapshot()
