# SPDX-License-Identifier: GPL-2.0-or-later
"""A night: a list of items (a tree and its series), each measured, found unchanged, or not possible."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ItemState(StrEnum):
    """What became of an item in a night."""

    RAN = "ran"
    UNCHANGED = "unchanged"
    """Everything that it depends on is as it was in its last good night: the figures would be the same."""
    NOT_DONE = "not done"
    """Tree, machine or configuration would not have it: nothing is known of this item tonight."""


@dataclass(frozen=True, slots=True)
class ItemOutcome:
    """One item in one night."""

    name: str
    state: ItemState
    run: str = ""
    """Name in the history: of this night's run, or (unchanged) of the one that still holds."""
    status: str = ""
    """The run's own."""
    said: str = ""
    """One line: why it was not run, or could not be."""
    recorded: bool = True
    """False: it was measured, and the history would not take it."""
    reports: str = ""
    """Directory with its reports; empty where it did not run."""


@dataclass(frozen=True, slots=True)
class Night:
    """One night. ``name`` is its start, as run ids are: it sorts by time."""

    name: str
    started: str
    """UTC, ISO 8601."""
    items: tuple[str, ...]
    """All that were asked for."""
    outcomes: tuple[ItemOutcome, ...] = ()
    finished: bool = False
    troubles: tuple[str, ...] = ()
    """What beside the items could not be done: the site, the mail."""

    def outcome(self, item: str) -> ItemOutcome | None:
        """That of an item; None where it has none yet."""
        return next((one for one in self.outcomes if one.name == item), None)


@dataclass(frozen=True, slots=True)
class NightRun:
    """A run that the history has of an item. Times are UTC, ISO 8601."""

    run: str
    item: str
    night: str
    inputs: str
    """Digest of everything that the item depends on."""
    started: str
    status: str
    mode: str
    profile: str
    tree: str
    release: str
    commit: str
    seconds: float
