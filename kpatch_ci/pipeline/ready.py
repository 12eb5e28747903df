# SPDX-License-Identifier: GPL-2.0-or-later
"""Stages that may start, and which of them a free slot takes.

The lowest (priority, position) first. Among those of one priority a place takes what belongs to a guest that it has booted
before what no place has begun, and that before what another place has booted: each guest is then booted by few places.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field

Entry = tuple[int, int, str]
"""Priority, position in the plan, name."""
Group = tuple[str, bool, str, str]
"""Kind, whether it can run elsewhere, affinity, the one place where it is to run (or none)."""


@dataclass
class Ready:
    """A heap for each group. ``owners``: affinity -> the places that have begun something of it."""

    _groups: dict[Group, list[Entry]] = field(default_factory=dict)
    _owners: dict[str, set[str]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self._groups)

    def push(self, group: Group, entry: Entry) -> None:
        """Add a stage."""
        heapq.heappush(self._groups.setdefault(group, []), entry)

    def pop(self, place: str, takes: Callable[[Group], bool]) -> str | None:
        """The stage that ``place`` does next; None where there is none of the groups that it ``takes``."""
        found = min(
            ((entries[0][0], self._rank(group[2], place), entries[0], group) for group, entries in self._groups.items() if takes(group)),
            default=None,
        )  # fmt: skip
        if found is None:
            return None
        group = found[3]
        _, _, name = heapq.heappop(self._groups[group])
        if not self._groups[group]:
            del self._groups[group]
        return name

    def claim(self, affinity: str, place: str) -> None:
        """The place has begun something of that affinity."""
        if affinity:
            self._owners.setdefault(affinity, set()).add(place)

    def forget(self, place: str) -> None:
        """The place is gone."""
        for owners in self._owners.values():
            owners.discard(place)

    def _rank(self, affinity: str, place: str) -> int:
        owners = self._owners.get(affinity) if affinity else None
        return 1 if not owners else 0 if place in owners else 2
