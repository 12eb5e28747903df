# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs a graph of stages on this machine's CPUs, and at other places where there are some.

A stage is a node: a name, what it needs, and a function from its needs' values to its own. Nodes whose value is known
(``lookup``) cost no slot and no thread. Among those that are ready the lowest (priority, position) goes first. A place that is
lost gets no more, and what it was at goes elsewhere.
An exception in a node ends the run: failures of a patch are values, so an exception is the machine's fault or ours.
"""

from __future__ import annotations

import queue
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from graphlib import TopologicalSorter
from typing import Any, Protocol

from kpatch_ci import process
from kpatch_ci.pipeline.places import HERE, Place, PlaceLost
from kpatch_ci.pipeline.ready import Group, Ready
from kpatch_ci.pipeline.slots import Slots

Values = Mapping[str, Any]
POLL = 0.02
EVERYTHING: Group = ("", False, "", "")
"""Without other places there is one order for all."""


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
    elsewhere: Callable[[Values, Place], Any] | None = None
    """The same as ``work``, done by another place; None: it runs here alone."""
    affinity: str = ""
    """Nodes with the same are cheaper at one place: they resume one guest."""
    only: str = ""
    """The place that alone may do ``elsewhere``; ``work`` is done where that is lost."""


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
    """``slots`` bounds the nodes at work here, each of ``places`` those that it has; ``observer`` shows progress.

    ``spare_here``: what one of the places does is not done here, unless all of them are lost.
    """

    def __init__(
        self, slots: Slots, observer: Observer, places: Sequence[Place] = (), *, spare_here: bool = False
    ) -> None:
        self._slots = slots
        self._observer = observer
        self._places = {place.name: place for place in places}
        self._free = {place.name: place.slots for place in places}
        self._spare_here = spare_here
        self._values: dict[str, Any] = {}
        self._done: queue.Queue[tuple[Node, str, float, Future[Any]]] = queue.Queue()
        self._at_work = 0
        self._holding = 0
        self.done_at: Counter[str] = Counter()
        """Stages by the place that did them."""
        self.lost: dict[str, str] = {}
        """Places that were lost, and why."""

    def run(self, nodes: Sequence[Node]) -> dict[str, Any]:
        """Values of all nodes by name. Raises what a node raised, after the others were ended.

        May be called again with more nodes: what it had before is known to them, and among what is returned.
        """
        by_name = {node.name: (index, node) for index, node in enumerate(nodes)}
        sorter: TopologicalSorter[str] = TopologicalSorter(
            {n.name: [need for need in n.needs if need not in self._values] for n in nodes}
        )
        sorter.prepare()
        ready = Ready()
        self._observer.planned(nodes)
        threads = self._slots.count + sum(self._free.values()) + 8
        with ThreadPoolExecutor(max_workers=threads, thread_name_prefix="stage") as pool:
            try:
                while sorter.is_active():
                    for name in sorter.get_ready():
                        self._queue(ready, *by_name[name])
                    if self._dispatch(ready, by_name, sorter, pool):
                        continue
                    self._collect(ready, by_name, sorter)
            except BaseException:
                for place in self._places.values():
                    place.stop()
                process.kill_all()
                raise
        return self._values

    def _queue(self, ready: Ready, position: int, node: Node) -> None:
        group = (node.kind, node.elsewhere is not None, node.affinity, node.only) if self._places else EVERYTHING
        ready.push(group, (node.priority, position, node.name))

    def _dispatch(
        self,
        ready: Ready,
        by_name: Mapping[str, tuple[int, Node]],
        sorter: TopologicalSorter[str],
        pool: ThreadPoolExecutor,
    ) -> bool:
        """Start or look up what is ready; True when a lookup may have made more ready."""
        looked_up = False
        for place in (*self._places, HERE):
            while (name := ready.pop(place, partial(self._takes, place))) is not None:
                position, node = by_name[name]
                known = node.lookup(self._values) if node.lookup else None
                if known is not None:
                    self._settle(node, known, 0.0, True, sorter)
                    looked_up = True
                    continue
                if place == HERE and node.slot and not self._slots.take():
                    self._queue(ready, position, node)
                    break
                ready.claim(node.affinity, place)
                self._start(node, place, pool)
        return looked_up

    def _takes(self, place: str, group: Group) -> bool:
        """Whether a place has room for a group, and does such things."""
        kind, portable, _, only = group
        if place != HERE:
            return portable and only in ("", place) and self._free[place] > 0 and kind in self._places[place].kinds
        if only:
            return only not in self._places
        return not (self._spare_here and portable and any(kind in one.kinds for one in self._places.values()))

    def _start(self, node: Node, place: str, pool: ThreadPoolExecutor) -> None:
        self._observer.started(node)
        self._at_work += 1
        if place != HERE:
            self._free[place] -= 1
        else:
            self._holding += node.slot
        started = time.monotonic()
        values = {name: self._values[name] for name in node.needs}
        there = self._places.get(place)
        work = partial(node.elsewhere, values, there) if there and node.elsewhere else partial(node.work, values)
        future = pool.submit(work)
        future.add_done_callback(lambda f: self._done.put((node, place, time.monotonic() - started, f)))

    def _collect(self, ready: Ready, by_name: Mapping[str, tuple[int, Node]], sorter: TopologicalSorter[str]) -> None:
        try:
            node, place, seconds, future = self._done.get(timeout=POLL if self._at_work else 0.5)
        except queue.Empty:
            self._observer.tick()
            if not self._holding:
                self._slots.refill()
            return
        self._at_work -= 1
        if place in self._free:
            self._free[place] += 1
        elif place == HERE and node.slot:
            self._slots.give()
            self._holding -= 1
        error = future.exception()
        if isinstance(error, PlaceLost):
            self._lose(place, str(error), ready)
            self._queue(ready, *by_name[node.name])
            return
        value = future.result()
        self.done_at[place] += node.slot
        self._settle(node, value, seconds, False, sorter)

    def _lose(self, place: str, why: str, ready: Ready) -> None:
        """The place gets no more; what it was at comes back one by one, each with its own PlaceLost."""
        if self._places.pop(place, None) is None:
            return
        del self._free[place]
        self.lost[place] = why
        ready.forget(place)
        where = "the other places" if self._places else "this machine"
        self._observer.note(f"{place} is lost: {why}; its work goes to {where}")

    def _settle(self, node: Node, value: Any, seconds: float, known: bool, sorter: TopologicalSorter[str]) -> None:
        self._values[node.name] = value
        sorter.done(node.name)
        self._observer.finished(node, value, seconds, known)
