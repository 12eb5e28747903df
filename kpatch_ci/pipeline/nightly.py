# SPDX-License-Identifier: GPL-2.0-or-later
"""One night: each item prepared, found unchanged or measured; what fails costs that item alone. Resumes where it was killed."""

from __future__ import annotations

import datetime
import errno
import itertools
import logging
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from kpatch_ci import process
from kpatch_ci.config.nightly import Item
from kpatch_ci.model.errors import KpatchError
from kpatch_ci.model.nightly import ItemOutcome, ItemState, Night, NightRun
from kpatch_ci.model.status import Mode, Status
from kpatch_ci.store.nights import NightLog

log = logging.getLogger("kpatch_ci")


@dataclass(frozen=True, slots=True)
class Measured:
    """``run``: its name in the history, or its run id where that would not take it (``recorded``: False)."""

    run: str
    status: str
    reports: str
    recorded: bool = True


@dataclass(frozen=True, slots=True)
class Prepared:
    """An item at its tip. ``repeats``: its figures are a function of ``inputs`` (deterministic mode)."""

    inputs: str
    repeats: bool
    tip: str
    """The tree's release and commit, for people."""
    measure: Callable[[], Measured]
    """Runs the pipeline, writes the reports, records. Raises KpatchError."""


class Work(Protocol):
    """What a night does with an item; a fake in the tests of the night itself."""

    def prepare(self, item: Item, night: Night) -> Prepared:
        """Bring the tree to its tip and read the series. Raises KpatchError."""

    def newer(self, item: Item) -> str:
        """What ``prepare`` would have to fetch, for people; empty where nothing. Raises KpatchError."""

    def last_good(self, item: Item) -> NightRun | None:
        """The item's last night that its figures can be believed of; None where there is none."""


@dataclass(frozen=True, slots=True)
class Asked:
    """``force``: run what is unchanged too. ``items``: those of tonight."""

    items: Sequence[Item]
    force: bool = False


NO_NIGHT = Night("dry-run", "", ())


def hold_night(asked: Asked, work: Work, kept: NightLog, told: Callable[[ItemOutcome], None]) -> Night:
    """Hold a night, or the rest of one that was killed. ``told`` of each item as soon as it has its outcome.

    Each outcome is kept before the next item begins. Raises InfrastructureError where the log cannot be written.
    """
    night = _begin(asked, kept)
    for item in asked.items:
        if night.outcome(item.name) is None:
            outcome = _outcome(item, asked, work, night)
            night = replace(night, outcomes=(*night.outcomes, outcome))
            kept.write(night)
            told(outcome)
    return night


def _begin(asked: Asked, kept: NightLog) -> Night:
    now = datetime.datetime.now(datetime.UTC)
    names = tuple(item.name for item in asked.items)
    resumed = kept.unfinished(names, now)
    if resumed is not None:
        done = ", ".join(one.name for one in resumed.outcomes) or "none"
        log.info("night %s was not finished: it goes on (done: %s)", resumed.name, done)
        # What could not be done deserves another try.
        return replace(resumed, outcomes=tuple(o for o in resumed.outcomes if o.state is not ItemState.NOT_DONE))
    start, known = now.strftime("%Y%m%d-%H%M%S"), {one.name for one in kept.read()}
    every = itertools.chain([start], (f"{start}-{count}" for count in itertools.count(2)))
    name = next(one for one in every if one not in known)  # two quiet nights may fit into a second
    night = Night(name, now.isoformat(timespec="seconds"), names)
    kept.write(night)
    return night


def look_ahead(item: Item, work: Work, *, force: bool) -> ItemOutcome:
    """What a night would do with an item; nothing is built, booted or recorded."""
    return _guarded(item, lambda: _foreseen(item, work, force=force))


def _foreseen(item: Item, work: Work, *, force: bool) -> ItemOutcome:
    fetched = work.newer(item)
    if fetched:
        return ItemOutcome(item.name, ItemState.RAN, said=f"after fetching {fetched}")
    prepared = work.prepare(item, NO_NIGHT)
    last = work.last_good(item)
    same = _unchanged(item, prepared, last)
    if same is not None and not force:
        return same
    why = "its first night" if last is None else "asked for by --force" if same else f"not as in {last.night}"
    return ItemOutcome(item.name, ItemState.RAN, said=f"{prepared.tip}; {why}")


def _unchanged(item: Item, prepared: Prepared, last: NightRun | None) -> ItemOutcome | None:
    if last is None or last.inputs != prepared.inputs or not prepared.repeats or last.mode != Mode.DETERMINISTIC:
        return None
    return ItemOutcome(item.name, ItemState.UNCHANGED, last.run, last.status, f"unchanged since {last.night}, not run")


def _outcome(item: Item, asked: Asked, work: Work, night: Night) -> ItemOutcome:
    return _guarded(item, lambda: _done(item, asked, work, night))


def _done(item: Item, asked: Asked, work: Work, night: Night) -> ItemOutcome:
    prepared = work.prepare(item, night)
    last = work.last_good(item)
    if last is not None and last.night == night.name and last.inputs == prepared.inputs:
        said = f"{prepared.tip}; measured before the night was killed"
        return ItemOutcome(item.name, ItemState.RAN, last.run, last.status, said)
    same = _unchanged(item, prepared, last)
    if same is not None and not asked.force:
        return same
    done = prepared.measure()
    said = prepared.tip if last is not None else f"{prepared.tip}; its first night: nothing to compare with"
    return ItemOutcome(item.name, ItemState.RAN, done.run, done.status, said, done.recorded, done.reports)


def _guarded(item: Item, work: Callable[[], ItemOutcome]) -> ItemOutcome:
    """What one item cannot do costs no other."""
    try:
        return work()
    except KpatchError as error:
        said = str(error)
    except OSError as error:
        what = "no space left on the disk" if error.errno in (errno.ENOSPC, errno.EDQUOT) else str(error)
        said = f"{what} ({error.filename or 'no file named'})"
    except Exception as error:
        log.error("%s", "".join(traceback.format_exception(error)).rstrip())
        said = f"a bug in kpatch-ci: {type(error).__name__}: {error}"
    finally:
        process.go_on()  # an item that failed ended its children, and forbade more
    return ItemOutcome(item.name, ItemState.NOT_DONE, said=said)


def exit_status(night: Night, *, news: bool) -> int:
    """3: part of the night could not be done; 1: something ran and failed, or regressed; 0: quiet."""
    if night.troubles or any(
        o.state is ItemState.NOT_DONE or not o.recorded or o.status == Status.ERROR for o in night.outcomes
    ):
        return 3
    failed = any(o.state is ItemState.RAN and o.status == Status.FAILED for o in night.outcomes)
    return 1 if failed or news else 0
