# SPDX-License-Identifier: GPL-2.0-or-later
"""From the history to what the site shows."""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from kpatch_ci.model.history import Change, Limit, Line, Reach, Standing
from kpatch_ci.model.history import Night as LineNight
from kpatch_ci.model.nightly import Night, NightRun
from kpatch_ci.model.workload import MIGRATIONS_PER_1000
from kpatch_ci.pipeline.nightnews import news_of
from kpatch_ci.report.site.data import Event, Key, Part, Point, Run, Site, Trend
from kpatch_ci.stats.attribution import cause_words
from kpatch_ci.stats.changepoint import Judge, find_changes
from kpatch_ci.stats.compare import ALL_CASES
from kpatch_ci.store.history.database import Database
from kpatch_ci.store.history.figures import Figure, figures, lines
from kpatch_ci.store.history.nights import night_fingerprints, night_parts, night_runs
from kpatch_ci.store.history.query import Filter

CASE_NIGHTS = 60
"""Single cases and counters explain the alerts of so many nights of the newest; primary figures are followed over all."""
FEED_NIGHTS = 30
_OURS = "kpatch_ci"


def gather(
    database: Database, nights: Sequence[Night], limits: Mapping[str, Limit], items: Sequence[str], url: str = ""
) -> Site:
    """All of the history's nights. Raises KpatchError where it cannot be read."""
    runs = night_runs(database)
    events, reach = _events(database, runs, limits)
    whole = _runs(database, runs, reach)
    tonight = nights[-1] if nights else _from_history(runs)
    told = {one.name: one for one in nights}
    names = sorted({run.night for run in runs} | set(told))[-FEED_NIGHTS:]
    news = {name: news_of(told.get(name), name, whole, events) for name in names}
    return Site(
        made=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        tonight=tonight,
        news=news.get(tonight.name, ()) if tonight else (),
        runs=whole,
        trends=_trends(figures(database, Filter(case=ALL_CASES)), runs),
        events=events,
        nights=tuple(nights),
        url=url,
        items=tuple(items),
        older_news=news,
    )


def _from_history(runs: Sequence[NightRun]) -> Night | None:
    """The last night as far as the history knows it: without what was not run."""
    if not runs:
        return None
    last = max(run.night for run in runs)
    own = [run for run in runs if run.night == last]
    return Night(last, own[0].started, tuple(run.item for run in own), finished=True)


def _runs(database: Database, runs: Sequence[NightRun], reach: Mapping[str, Reach]) -> tuple[Run, ...]:
    prints, figures_of = night_fingerprints(database), defaultdict(dict)  # type: ignore[var-annotated]
    for one in figures(database, Filter(case=ALL_CASES)):
        figures_of[one.run, one.series, one.arch][one.workload] = (one.verdict, one.change_percent)
    items = {run.run: run.item for run in runs}
    parts: dict[str, list[Part]] = defaultdict(list)
    for row in night_parts(database):
        key = Key(items[row.run], row.series, row.arch)
        verdicts = figures_of[row.run, row.series, row.arch]
        parts[row.run].append(Part(key, row.status, row.reason, row.applied, verdicts))
    before: dict[str, NightRun] = {}
    found = []
    for run in runs:
        last = before.get(run.item)
        whole = _run(run, last, tuple(parts[run.run]), prints)
        found.append(replace(whole, reach=reach[run.run].words) if run.run in reach else whole)
        before[run.item] = run
    return tuple(found)


def _run(run: NightRun, last: NightRun | None, parts: tuple[Part, ...], prints: Mapping[str, Mapping[str, str]]) -> Run:
    mine = {**prints.get(run.run, {}), "tree": f"{run.release} {run.commit}"}
    if last is None:
        return Run(run, parts, fingerprint=tuple(mine.items()))
    theirs = {**prints.get(last.run, {}), "tree": f"{last.release} {last.commit}"}
    keys = [key for key in dict.fromkeys((*mine, *theirs)) if mine.get(key) != theirs.get(key)]
    differences = tuple((key, theirs.get(key, "-"), mine.get(key, "-")) for key in keys)
    return Run(run, parts, last.run, differences, tuple(mine.items()))


def _trends(found: Sequence[Figure], runs: Sequence[NightRun]) -> dict[Key, tuple[Trend, ...]]:
    items = {run.run: run.item for run in runs}
    trends: dict[Key, dict[tuple[str, str], Trend]] = defaultdict(dict)
    points: dict[tuple[Key, str, str], list[Point]] = defaultdict(list)
    for one in found:
        if one.run not in items or not one.primary:
            continue
        key = Key(items[one.run], one.series, one.arch)
        trends[key][one.workload, one.metric] = Trend(one.workload, one.metric, one.unit, one.better, ())
        levels = (one.baseline_mean, one.patched_mean)
        point = Point(one.run, one.change_percent, one.ci_low, one.ci_high, one.verdict, *levels)
        points[key, one.workload, one.metric].append(point)
    return {
        key: tuple(replace(t, points=tuple(points[key, t.workload, t.metric])) for t in own.values())
        for key, own in trends.items()
    }


def _events(
    database: Database, runs: Sequence[NightRun], limits: Mapping[str, Limit]
) -> tuple[tuple[Event, ...], dict[str, Reach]]:
    """Alerts of every item, oldest first; and what each run could have told against the night before."""
    by_run = {run.run: run for run in runs}
    items: dict[str, dict[Line, list[LineNight]]] = defaultdict(dict)
    for wanted in (Filter(since=_since(runs)), Filter(case=ALL_CASES)):  # primary figures last: over all nights
        for line, nights in lines(database, wanted).items():
            for item, own in _by_item(nights, by_run).items():
                if line.metric != MIGRATIONS_PER_1000.name:
                    items[item][line] = own
    events: list[Event] = []
    reach: dict[str, Reach] = {}
    for own_lines in items.values():
        found = find_changes(own_lines, Judge(limits))
        events += [_event(change, by_run) for change in found.changes]
        reach |= found.reach
    return tuple(sorted(events, key=lambda event: (by_run[event.run].started, event.words))), reach


def _since(runs: Sequence[NightRun]) -> float | None:
    """Start of the oldest of the nights whose single cases are looked at, seconds since 1970."""
    names = sorted({run.night for run in runs})
    if len(names) <= CASE_NIGHTS:
        return None
    first = next(run for run in runs if run.night >= names[-CASE_NIGHTS])
    return datetime.datetime.fromisoformat(first.started).timestamp()


def _by_item(nights: Sequence[LineNight], by_run: Mapping[str, NightRun]) -> dict[str, list[LineNight]]:
    """A line's nights by item; runs that were no item of a night are left out."""
    found: dict[str, list[LineNight]] = defaultdict(list)
    for night in nights:
        if night.run in by_run:
            found[by_run[night.run].item].append(night)
    return found


def _event(change: Change, by_run: Mapping[str, NightRun]) -> Event:
    line, run, before = change.line, by_run[change.run], by_run[change.before_run]
    range_, git_range = _range(before, run)
    return Event(
        item=run.item,
        **{name: getattr(line, name) for name in ("series", "arch", "workload", "case", "metric", "unit", "arm")},
        run=change.run,
        before_run=change.before_run,
        before=change.before,
        after=change.after,
        change=change.change_percent,
        better=_better(change),
        causes="; ".join(map(cause_words, change.causes)) or "nothing that is recorded",
        range=range_,
        git_range=git_range,
        standing=str(change.standing),
        closed_by=change.closed_by,
        reason=change.reason,
        shows_in=tuple(_shown(one) for one in change.shows_in),
        told=change.told,
        closed_told=change.closed_told,
    )


def _shown(one: Change) -> str:
    percent = f"{one.change_percent:+.2f} %" if one.change_percent is not None else f"{one.before:g} -> {one.after:g}"
    return f"{one.line.case} {one.line.metric} {percent}"


def _better(change: Change) -> bool:
    if change.change_percent is not None:
        return change.change_percent > 0
    return change.standing is Standing.IMPROVED


def _range(before: NightRun, run: NightRun) -> tuple[str, str]:
    if before.commit == run.commit:
        return "", ""
    if run.tree.startswith("debian:"):
        return f"linux {before.release} to {run.release}", ""
    ends = f"{before.commit[:12]}..{run.commit[:12]}"
    return ends, ends
