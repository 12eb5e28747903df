# SPDX-License-Identifier: GPL-2.0-or-later
"""What was news in a night: against the last night of each item, and against the trend. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kpatch_ci.model.nightly import ItemState, Night
from kpatch_ci.model.status import Status, Verdict
from kpatch_ci.report.site.data import Event, Kind, News, Part, Run

_WORSE = (Status.FAILED, Status.ERROR)
_ORDER = list(Kind)
SHOWN = 6
"""Cases and counters that a piece of news names; the series' page has all."""


def news_of(night: Night | None, name: str, runs: Sequence[Run], events: Sequence[Event]) -> tuple[News, ...]:
    """Of the night called ``name``, what is bad first. ``night``: its log, where there is one. ``runs``: all, oldest first."""
    found = [*_not_done(night)]
    for index, run in enumerate(runs):
        if run.run.night == name:
            before = next((r for r in reversed(runs[:index]) if r.run.item == run.run.item), None)
            found += [*_against(run, before), *_alerts(run, events)]
    return tuple(sorted(found, key=lambda one: _ORDER.index(one.kind)))


def _not_done(night: Night | None) -> Iterator[News]:
    for one in night.outcomes if night else ():
        if one.state is ItemState.NOT_DONE:
            first, _, rest = one.said.partition("\n")
            yield News(Kind.NOT_DONE, one.name, first, rest)
        elif not one.recorded:
            words = f"measured, but not in the history: its reports are in {one.reports}"
            yield News(Kind.NOT_DONE, one.name, words, f"./kpatch-ci history record {one.reports}", run="")
    for trouble in night.troubles if night else ():
        first, _, rest = trouble.partition("\n")
        yield News(Kind.NOT_DONE, "", first, rest)


def _against(run: Run, before: Run | None) -> Iterator[News]:
    """How each part ended, against the item's night before."""
    known = {part.key: part for part in before.parts} if before else {}
    fresh = []
    for part in run.parts:
        last = known.get(part.key)
        if last is None:
            fresh.append(part)
        yield from _part(run, part, last)
    if fresh:
        names = ", ".join(dict.fromkeys(part.key.series for part in fresh))
        yield News(Kind.FIRST, run.run.item, f"{names}: no night before to compare with", run=run.run.run)


def _part(run: Run, part: Part, last: Part | None) -> Iterator[News]:
    where = {"series": part.key.series, "run": run.run.run}
    name = f"{part.key.series}, {part.key.arch}"
    if part.status in _WORSE and (last is None or (last.status, last.reason) != (part.status, part.reason)):
        yield News(Kind.FAILED, part.key.item, f"{name}: {part.reason or part.status}", **where)
    elif last is not None and last.status in _WORSE and part.status == Status.PASSED:
        yield News(Kind.PASSED, part.key.item, f"{name}: passes again; it was {last.status}: {last.reason}", **where)
    for workload, (verdict, change) in part.verdicts.items():
        old = last.verdicts.get(workload) if last else None
        if old is not None and old[0] != verdict:
            words = f"{name}: {workload} was {old[0]}{_percent(old[1])}, is {verdict}{_percent(change)}"
            kind = Kind.REGRESSED if verdict == Verdict.REGRESSED else Kind.VERDICT
            yield News(kind, part.key.item, words, **where)


def _alerts(run: Run, events: Sequence[Event]) -> Iterator[News]:
    """Change points that are certain since this night: one cause often moves many figures, so those of a series and architecture
    that appeared in one night are one piece of news.
    """
    groups: dict[tuple[str, str, bool, str], list[Event]] = {}
    for event in events:
        if event.item == run.run.item and (event.told or event.run) == run.run.run:
            groups.setdefault((event.series, event.arch, event.better, event.run), []).append(event)
    for (series, _, better, since), members in groups.items():
        largest = max(members, key=lambda event: abs(event.change or 0))
        others = len(members) - 1
        more = f" and {others} more workload{'s' if others > 1 else ''}" if others else ""
        when = "against the night before" if since == run.run.run else f"since {since}, certain only now"
        words = f"{largest.words}{_percent(largest.change)} {when}{more}"
        detail = f"changed with it: {largest.causes}" + (f" ({largest.range})" if largest.range else "")
        detail += _shows(largest)
        yield News(Kind.IMPROVED if better else Kind.REGRESSED, run.run.item, words, detail, series, run.run.run)
    closed = [e for e in events if e.item == run.run.item and (e.closed_told or e.closed_by) == run.run.run]
    for event in closed:
        words = f"{event.words}: back to where it was before {event.run}"
        yield News(Kind.RECOVERED, run.run.item, words, "", event.series, run.run.run)


def _shows(event: Event) -> str:
    """A line of its own: the cases and counters that moved."""
    if not event.shows_in:
        return ""
    more = len(event.shows_in) - SHOWN
    return "\nshows in: " + ", ".join(event.shows_in[:SHOWN]) + (f" and {more} more" if more > 0 else "")


def _percent(change: float | None) -> str:
    return "" if change is None else f" {change:+.2f} %"
