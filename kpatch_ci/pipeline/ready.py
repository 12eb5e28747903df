# SPDX-License-Identifier: GPL-2.0-or-later
"""Stages that may start, and which of them a free slot takes.

The lowest (priority, position) first. Among those of one priority a place takes what belongs to a guest that it has booted
before what no place has begun, and that before what another place has booted: each guest is then booted by few places.

Every stage stands in a heap for each of those three views of it: pop and push cost the logarithm of what is ready, however
many guests and places there are (docs/scaling.md). A stage that was taken through one heap is skipped when another shows it.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

Entry = tuple[int, int, str]
"""Priority, position in the plan, name."""
Sort = tuple[str, bool, frozenset[str]]
"""Kind, whether it can run elsewhere, and the places that alone are to run it (none: any); of what cannot, its lane (or none)."""
Group = tuple[Sort, str]
"""The same, with its affinity."""
OWN, FREE, OTHERS = 0, 1, 2
"""Which of one priority a place prefers."""


@dataclass
class _Heaps:
    """Stages of one sort. ``own``: by place, those of affinities that it has begun; ``free``: of none that any has; ``owned``: the rest."""

    free: list[Entry] = field(default_factory=list)
    owned: list[Entry] = field(default_factory=list)
    own: dict[str, list[Entry]] = field(default_factory=dict)


@dataclass
class Ready:
    """``_owners``: affinity -> the places that have begun something of it. ``_waiting``: name -> its group, of what is ready."""

    _heaps: dict[Sort, _Heaps] = field(default_factory=dict)
    _owners: dict[str, set[str]] = field(default_factory=dict)
    _waiting: dict[str, Group] = field(default_factory=dict)
    _members: dict[str, dict[str, Entry]] = field(default_factory=dict)
    """Affinity -> its stages that are ready."""
    _bound: Counter[str] = field(default_factory=Counter)
    """Place -> how many are for it and few others."""

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def push(self, group: Group, entry: Entry) -> None:
        """Add a stage."""
        self._waiting[entry[2]] = group
        (_, _, only), affinity = group
        self._bound.update(only)
        if affinity:
            self._members.setdefault(affinity, {})[entry[2]] = entry
        self._file(group, entry, self._owners.get(affinity, ()))

    def pop(self, place: str, takes: Callable[[Sort], bool]) -> str | None:
        """The stage that ``place`` does next; None where there is none of the sorts that it ``takes``."""
        best: tuple[int, int, Entry] | None = None
        for sort, heaps in self._heaps.items():
            if not takes(sort):
                continue
            views = ((OWN, heaps.own.get(place)), (FREE, heaps.free), (OTHERS, heaps.owned))
            for rank, heap in views:
                if heap and self._clean(heap, sort, rank, place):
                    found = (heap[0][0], rank, heap[0])
                    best = min(best, found) if best else found
        if best is None:
            return None
        self._remove(best[2][2])
        return best[2][2]

    def _remove(self, name: str) -> None:
        (_, _, only), affinity = self._waiting.pop(name)
        self._bound.subtract(only)
        if affinity:
            del self._members[affinity][name]

    def waits_for(self, place: str) -> bool:
        """Whether there is a stage for that place, and not for any."""
        return self._bound[place] > 0

    def release(self, place: str) -> list[str]:
        """Take out the stages that were for that place, and not for any: they are to be pushed again."""
        found = [name for name, ((_, _, only), _) in self._waiting.items() if place in only]
        for name in found:
            self._remove(name)
        return found

    def claim(self, affinity: str, place: str) -> None:
        """The place has begun something of that affinity."""
        owners = self._owners.setdefault(affinity, set()) if affinity else {place}
        if place in owners:
            return
        first = not owners
        owners.add(place)
        for name, entry in self._members.get(affinity, {}).items():
            self._file(self._waiting[name], entry, (place,), first=first)

    def forget(self, place: str) -> None:
        """The place is gone."""
        for heaps in self._heaps.values():
            heaps.own.pop(place, None)
        for affinity, owners in self._owners.items():
            if place in owners:
                owners.discard(place)
                for name, entry in () if owners else self._members.get(affinity, {}).items():
                    self._file(self._waiting[name], entry, ())

    def _file(self, group: Group, entry: Entry, owners: set[str] | tuple[str, ...], *, first: bool = True) -> None:
        """Put an entry into the heaps that show it."""
        heaps = self._heaps.setdefault(group[0], _Heaps())
        if not owners:
            heapq.heappush(heaps.free, entry)
            return
        if first:
            heapq.heappush(heaps.owned, entry)
        for place in owners:
            heapq.heappush(heaps.own.setdefault(place, []), entry)

    def _clean(self, heap: list[Entry], sort: Sort, rank: int, place: str) -> bool:
        """Drop from a heap's top what was taken, or stands elsewhere by now; whether anything is left."""
        while heap and not self._stands(heap[0], sort, rank, place):
            heapq.heappop(heap)
        return bool(heap)

    def _stands(self, entry: Entry, sort: Sort, rank: int, place: str) -> bool:
        group = self._waiting.get(entry[2])
        if group is None or group[0] != sort:
            return False
        owners = self._owners.get(group[1]) if group[1] else None
        return not owners if rank == FREE else bool(owners) and (rank == OTHERS or place in (owners or ()))
