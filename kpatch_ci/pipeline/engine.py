# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs a graph of stages on this machine's CPUs, and at other places where there are some.

A stage is a node: a name, what it needs, and a function from its needs' values to its own. Nodes whose value is known
(``lookup``) cost no slot and no thread. Among those that are ready the lowest (priority, position) goes first. A place that is
lost gets no more, and what it was at goes elsewhere.
A failure that a place reports is tried here before it is believed: a machine may be broken, and no kernel is blamed for that.
An exception in a node ends the run: failures of a patch are values, so an exception is the machine's fault or ours.
"""

from __future__ import annotations

import queue
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from graphlib import TopologicalSorter
from typing import Any, Protocol

from kpatch_ci import process
from kpatch_ci.pipeline.places import BUILD, HERE, Doubted, Place, PlaceLost, does
from kpatch_ci.pipeline.ready import Group, Ready, Sort
from kpatch_ci.pipeline.slots import Slots

Values = Mapping[str, Any]
POLL = 0.02
EVERYTHING: Group = (("", False, frozenset()), "")
"""Without other places there is one order for all."""
AWAY = 10_000
"""Threads that wait for other places at most. A thread is made when it is needed: places' slots bound them."""
LIVES = 3
"""Places that a stage may lose, or be lost with: after so many it is done here."""


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
    homes: Callable[[], Collection[str]] | None = None
    """Asked when it is ready: the places where what it starts from is. As long as one of them is there it runs at such a one."""
    arch: str = ""
    """The architecture that it is of: a place may do a kind for some only."""
    lane: str = ""
    """What it is done on, one stage at a time: a board. Such a stage runs from here, and is to take no ``slot``."""


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


Newcomers = Callable[[], Sequence[Place]]
"""Places that have come since it was asked before."""


def nobody() -> Sequence[Place]:
    """No newcomers."""
    return ()


class Engine:
    """``slots`` bounds the nodes at work here, each of ``places`` those that it has; ``observer`` shows progress.

    ``newcomers`` is asked now and then for places that have joined. ``spare_here``: what one of the places does is not done
    here, unless all of them are lost.
    """

    def __init__(
        self,
        slots: Slots,
        observer: Observer,
        places: Sequence[Place] = (),
        *,
        newcomers: Newcomers | None = None,
        spare_here: bool = False,
    ) -> None:
        self._slots = slots
        self._observer = observer
        self._newcomers = newcomers or nobody
        self._spare_here = spare_here
        self._places: dict[str, Place] = {}
        self._held: Counter[str] = Counter()
        self._open: set[str] = set()
        """Places that have room."""
        self._lanes: set[str] = set()
        """Lanes that are taken."""
        self._grouped = bool(places) or newcomers is not None
        self._join(places)
        self._lost: Counter[str] = Counter()
        self._unknown: set[str] = set()
        """What waits for a slot and was looked up: not again whenever something else ends."""
        self._values: dict[str, Any] = {}
        self._done: queue.Queue[tuple[Node, Place | None, float, Future[Any]]] = queue.Queue()
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
        with ExitStack() as stack:
            here = stack.enter_context(ThreadPoolExecutor(self._slots.count + 8, "stage"))
            away = stack.enter_context(ThreadPoolExecutor(AWAY, "away"))
            try:
                while sorter.is_active():
                    self._join(self._newcomers(), said=True)
                    for name in sorter.get_ready():
                        self._queue(ready, *by_name[name])
                    if self._dispatch(ready, by_name, sorter, (here, away)):
                        continue
                    self._collect(ready, by_name, sorter)
            except BaseException:
                for place in self._places.values():
                    place.stop()
                process.kill_all()
                raise
        return self._values

    def _join(self, places: Sequence[Place], *, said: bool = False) -> None:
        for place in places:
            if said:
                self._observer.note(f"{place.name} has joined")
            self._places[place.name] = place
            self._held[place.name] = 0
            self._open.add(place.name)

    def _queue(self, ready: Ready, position: int, node: Node) -> None:
        portable = node.elsewhere is not None and self._lost[node.name] < LIVES
        kind = f"{node.kind} {node.arch}"
        bound = self._bound_to(node, kind) if portable else frozenset(filter(None, [node.lane]))
        sort = (kind, portable, bound)
        group = (sort, node.affinity) if self._grouped or node.lane else EVERYTHING
        ready.push(group, (node.priority, position, node.name))

    def _bound_to(self, node: Node, kind: str) -> frozenset[str]:
        """The places that alone are to run it; none: any."""
        if node.only:
            return frozenset({node.only})
        if node.homes is None or not self._grouped:
            return frozenset()
        return frozenset(name for name in node.homes() if self._is_used_for(name, kind))

    def _is_used_for(self, place: str, kind: str) -> bool:
        if place == HERE:
            return not (self._spare_here and any(does(one, kind) for one in self._places.values()))
        return place in self._places and does(self._places[place], kind)

    def _dispatch(
        self,
        ready: Ready,
        by_name: Mapping[str, tuple[int, Node]],
        sorter: TopologicalSorter[str],
        pools: tuple[ThreadPoolExecutor, ThreadPoolExecutor],
    ) -> bool:
        """Start or look up what is ready; True when a lookup may have made more ready."""
        looked_up = False
        idle: set[frozenset[str]] = set()
        turns = deque((*self._roomy(), HERE))
        while turns:
            place = turns.popleft()
            there = self._places.get(place)
            if there and there.kinds in idle and not ready.waits_for(place):
                continue
            takes: Callable[[Sort], bool] = partial(self._takes, place)
            while (name := ready.pop(place, takes)) is not None:
                position, node = by_name[name]
                known = node.lookup(self._values) if node.lookup and name not in self._unknown else None
                if known is not None:
                    self._settle(node, known, 0.0, True, sorter)
                    looked_up = True
                    continue
                if not there and node.slot and not self._slots.take():
                    self._unknown.add(name)
                    self._queue(ready, position, node)
                    takes = self._takes_lane
                    continue
                self._unknown.discard(name)
                ready.claim(node.affinity, place)
                self._start(node, there, pools)
                if node.kind == BUILD and turns:
                    turns.append(place)  # that keeps all its CPUs busy: the others choose before it takes more
                    break
            else:
                if there and place in self._open:  # it has room, and there is nothing for such as it
                    idle.add(there.kinds)
        return looked_up

    def _roomy(self) -> list[str]:
        """Places with room now, in the order in which they came."""
        return [name for name in self._places if name in self._open] if self._open else []

    def _takes(self, place: str, sort: Sort) -> bool:
        """Whether a place has room for a sort of stage, and does such things."""
        kind, portable, only = sort
        if place != HERE:
            mine = portable and (not only or place in only)
            return mine and place in self._open and does(self._places[place], kind)
        if not portable:
            return not only or self._takes_lane(sort)
        if only:
            return HERE in only or not any(name in self._places for name in only)
        return self._is_used_for(HERE, kind)

    def _takes_lane(self, sort: Sort) -> bool:
        """Whether a sort of stage has a lane, and that is free: such a stage waits for no slot."""
        _, portable, lane = sort
        return not portable and bool(lane) and lane.isdisjoint(self._lanes)

    def _start(self, node: Node, there: Place | None, pools: tuple[ThreadPoolExecutor, ThreadPoolExecutor]) -> None:
        self._observer.started(node)
        self._at_work += 1
        if there:
            self._held[there.name] += 1
            self._room(there)
            if node.kind == BUILD:  # it takes long, and nothing is heard of it
                self._observer.note(f"{node.name} is built on {there.name}")
        else:
            self._holding += node.slot
            self._lanes.update(filter(None, [node.lane]))
        started = time.monotonic()
        values = {name: self._values[name] for name in node.needs}
        work = partial(node.elsewhere, values, there) if there and node.elsewhere else partial(node.work, values)
        future = pools[there is not None].submit(work)
        future.add_done_callback(lambda f: self._done.put((node, there, time.monotonic() - started, f)))

    def _room(self, place: Place) -> None:
        """Note whether a place has room. Its slots may be others than they were."""
        if self._places.get(place.name) is not place:
            return
        if self._held[place.name] < place.slots:
            self._open.add(place.name)
        else:
            self._open.discard(place.name)

    def _collect(self, ready: Ready, by_name: Mapping[str, tuple[int, Node]], sorter: TopologicalSorter[str]) -> None:
        try:
            node, place, seconds, future = self._done.get(timeout=POLL if self._at_work else 0.5)
        except queue.Empty:
            self._observer.tick()
            if not self._holding:
                self._slots.refill()
            return
        self._at_work -= 1
        self._lanes.discard(node.lane)
        if place is None and node.slot:
            self._slots.give()
            self._holding -= 1
        elif place and self._places.get(place.name) is place:
            self._held[place.name] -= 1
            self._room(place)
        error = future.exception()
        if place and isinstance(error, PlaceLost):
            self._lose(place, str(error), ready, by_name)
            self._lost[node.name] += 1
            self._queue(ready, *by_name[node.name])
            return
        if place and isinstance(error, Doubted):
            self._observer.note(f"{node.name} failed on {place.name} ({error}): tried here before that is believed")
            self._lost[node.name] = LIVES
            self._queue(ready, *by_name[node.name])
            return
        value = future.result()
        self.done_at[place.name if place else HERE] += node.slot
        self._settle(node, value, seconds, False, sorter)

    def _lose(self, place: Place, why: str, ready: Ready, by_name: Mapping[str, tuple[int, Node]]) -> None:
        """The place gets no more; what it was at comes back one by one, each with its own PlaceLost."""
        if self._places.get(place.name) is not place:
            return
        del self._places[place.name], self._held[place.name]
        self._open.discard(place.name)
        self.lost[place.name] = why
        ready.forget(place.name)
        for name in ready.release(place.name):
            self._queue(ready, *by_name[name])
        where = "the other places" if self._places else "this machine"
        self._observer.note(f"{place.name} is lost: {why}; its work goes to {where}")

    def _settle(self, node: Node, value: Any, seconds: float, known: bool, sorter: TopologicalSorter[str]) -> None:
        self._values[node.name] = value
        sorter.done(node.name)
        self._observer.finished(node, value, seconds, known)
