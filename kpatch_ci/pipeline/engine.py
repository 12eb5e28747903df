# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs a graph of stages on this machine's CPUs.

A stage is a node: a name, what it needs, and a function from its needs' values to its own. Nodes whose value is known
(``lookup``) cost no slot and no thread. Among those that are ready the lowest (priority, position) goes first.
An exception in a node ends the run: failures of a patch are values, so an exception is the machine's fault or ours.
"""

from __future__ import annotations

import heapq
import queue
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any, Protocol

from kpatch_ci import process
from kpatch_ci.pipeline.slots import Slots

Values = Mapping[str, Any]
POLL = 0.02


@dataclass(frozen=True, slots=True)
class Node:
    """One stage. ``slot``: it uses a CPU. ``lookup`` returns its value where that is known, else None."""

    name: str
    kind: str
    work: Callable[[Values], Any]
    needs: tuple[str, ...] = ()
    slot: bool = True
    priority: int = 0
    lookup: Callable[[Values], Any] | None = None


class Observer(Protocol):
    """Told what happens, in the engine's own thread."""

    def planned(self, nodes: Sequence[Node]) -> None:
        """Before the first node."""

    def started(self, node: Node) -> None:
        """A node begins to work (not called where its value was known)."""

    def finished(self, node: Node, value: Any, seconds: float, known: bool) -> None:
        """A node has its value."""

    def tick(self) -> None:
        """Some time has passed."""

    def note(self, text: str) -> None:
        """Something that a person who waits would want to know."""


class Engine:
    """``slots`` bounds the nodes at work; ``observer`` shows progress."""

    def __init__(self, slots: Slots, observer: Observer) -> None:
        self._slots = slots
        self._observer = observer
        self._values: dict[str, Any] = {}
        self._done: queue.Queue[tuple[Node, float, Future[Any]]] = queue.Queue()
        self._at_work = 0
        self._holding = 0

    def run(self, nodes: Sequence[Node]) -> dict[str, Any]:
        """Values of all nodes by name. Raises what a node raised, after the others were ended.

        May be called again with more nodes: what it had before is known to them, and among what is returned.
        """
        by_name = {node.name: node for node in nodes}
        order = {node.name: index for index, node in enumerate(nodes)}
        sorter: TopologicalSorter[str] = TopologicalSorter(
            {n.name: [need for need in n.needs if need not in self._values] for n in nodes}
        )
        sorter.prepare()
        ready: list[tuple[int, int, str]] = []
        self._observer.planned(nodes)
        with ThreadPoolExecutor(max_workers=self._slots.count + 8, thread_name_prefix="stage") as pool:
            try:
                while sorter.is_active():
                    for name in sorter.get_ready():
                        heapq.heappush(ready, (by_name[name].priority, order[name], name))
                    if self._dispatch(ready, by_name, sorter, pool):
                        continue
                    self._collect(sorter)
            except BaseException:
                process.kill_all()
                raise
        return self._values

    def _dispatch(
        self,
        ready: list[tuple[int, int, str]],
        by_name: Mapping[str, Node],
        sorter: TopologicalSorter[str],
        pool: ThreadPoolExecutor,
    ) -> bool:
        """Start or look up what is ready; True when a lookup may have made more ready."""
        waiting, looked_up = [], False
        while ready:
            entry = heapq.heappop(ready)
            node = by_name[entry[2]]
            known = node.lookup(self._values) if node.lookup else None
            if known is not None:
                self._settle(node, known, 0.0, True, sorter)
                looked_up = True
                continue
            if node.slot and not self._slots.take():
                waiting.append(entry)
                break
            self._start(node, pool)
        for entry in waiting:
            heapq.heappush(ready, entry)
        return looked_up

    def _start(self, node: Node, pool: ThreadPoolExecutor) -> None:
        self._observer.started(node)
        self._at_work += 1
        self._holding += node.slot
        started = time.monotonic()
        values = {name: self._values[name] for name in node.needs}
        future = pool.submit(node.work, values)
        future.add_done_callback(lambda f: self._done.put((node, time.monotonic() - started, f)))

    def _collect(self, sorter: TopologicalSorter[str]) -> None:
        try:
            node, seconds, future = self._done.get(timeout=POLL if self._at_work else 0.5)
        except queue.Empty:
            self._observer.tick()
            if not self._holding:
                self._slots.refill()
            return
        self._at_work -= 1
        if node.slot:
            self._slots.give()
            self._holding -= 1
        self._settle(node, future.result(), seconds, False, sorter)

    def _settle(self, node: Node, value: Any, seconds: float, known: bool, sorter: TopologicalSorter[str]) -> None:
        self._values[node.name] = value
        sorter.done(node.name)
        self._observer.finished(node, value, seconds, known)
