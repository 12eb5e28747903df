# SPDX-License-Identifier: GPL-2.0-or-later
"""The site's pages: name -> HTML. Complete without their script, which filters and sorts; their policy forbids every request."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from kpatch_ci.model.digest import digest
from kpatch_ci.model.nightly import ItemState, Night
from kpatch_ci.report.clean import visible
from kpatch_ci.report.html.templates import Templates
from kpatch_ci.report.site import trend
from kpatch_ci.report.site.data import BAD, GOOD, Event, Key, Kind, News, Part, Point, Run, Site
from kpatch_ci.report.view import figure, percent

FEED = "feed.xml"
SHOWN = 60
"""Nights that a table shows one by one; older ones are folded by month."""
NIGHTS = 30
"""Nights that the index lists; older ones have a page a month."""
BASELINE = "baseline"
_PLAIN = re.compile(r"[\w+-][\w.+-]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the index's table."""

    key: Key
    part: Part
    run: Run
    sparks: dict[str, Markup]
    rank: int
    """Sorts by how bad it is."""


def slug(*names: str) -> str:
    """A file name of ``names``; what is not plain is told apart by a digest."""
    if all(_PLAIN.fullmatch(name) for name in names):
        return "--".join(names)
    return (
        "--".join(re.sub(r"[^\w+-]+", "-", name, flags=re.ASCII)[:40] for name in names) + f"-{digest(list(names))[:8]}"
    )


def series_page(item: str, series: str) -> str:
    """Its path from the site's root."""
    return f"series/{slug(item, series)}.html"


def run_page(run: str) -> str:
    """Its path from the site's root."""
    return f"runs/{slug(run)}.html"


def report_page(run: str) -> str:
    """Path of its report.html, for the newest runs."""
    return f"runs/{slug(run)}.report.html"


def news_page(news: News) -> str:
    """The page that tells most of it."""
    if news.series and news.series != BASELINE:
        return series_page(news.item, news.series)
    return run_page(news.run) if news.run else "index.html"


def pages(site: Site, reports: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Every page, the index last: where it is, all that it links to is. ``reports``: runs that have a report page."""
    months, ran = month_names(site), by_night(site)
    for run in site.runs:
        yield run_page(run.run.run), _render("run.html.j2", "../", site, run=run, has_report=run.run.run in reports)
    for item, series in dict.fromkeys((key.item, key.series) for key in all_keys(site)):
        yield series_page(item, series), _series(site, item, series)
    for month in months:
        nights = [night for night in nights_of(site) if night.name.startswith(month.replace("-", ""))]
        yield f"nights/{month}.html", _render("month.html.j2", "../", site, month=month, nights=nights, ran=ran)
    newest = nights_of(site)[:NIGHTS]
    shared = {
        "rows": rows(site),
        "nights": newest,
        "months": months,
        "open_events": open_events(site),
        "ran": ran,
        "reach": reach(site),
    }
    yield "index.html", _render("index.html.j2", "", site, **shared, summary=summary(site))


def all_keys(site: Site) -> list[Key]:
    """Rows of all runs, those of the newest run first."""
    return list(dict.fromkeys(part.key for run in reversed(site.runs) for part in run.parts))


def _series(site: Site, item: str, series: str) -> str:
    runs = [run for run in site.runs if run.run.item == item and any(part.key.series == series for part in run.parts)]
    keys = sorted({p.key for run in runs for p in run.parts if p.key.series == series}, key=lambda key: key.arch)
    arches = {key.arch for key in keys}
    own = [e for e in site.events if e.item == item and e.series in (series, BASELINE) and e.arch in arches]
    return _render(
        "series.html.j2", "../", site,
        item=item, series=series, keys=keys, runs=runs, latest=runs[-1],
        events=list(enumerate(own, 1)), kernels={run.run.run: run.run.release for run in runs},
        by_run={run.run.run: run for run in runs},
    )  # fmt: skip


def rows(site: Site) -> list[Row]:
    """The latest of each item, series and architecture of the pipeline file; bad ones first."""
    found: dict[Key, Row] = {}
    for run in reversed(site.runs):
        for part in run.parts:
            if part.key not in found and (not site.items or part.key.item in site.items):
                sparks = {t.workload: trend.spark(t.points) for t in site.trends.get(part.key, ())}
                found[part.key] = Row(part.key, part, run, sparks, rank(part))
    return sorted(found.values(), key=lambda row: (row.rank, row.key.item, row.key.series, row.key.arch))


_RANK = ("error", "failed", "regressed", "inconclusive", "improved", "no change", "skipped", "passed")


def rank(part: Part) -> int:
    """By the worst of status and verdicts."""
    return min(
        _RANK.index(word) if word in _RANK else len(_RANK)
        for word in (part.status, *(v for v, _ in part.verdicts.values()))
    )


def open_events(site: Site) -> list[Event]:
    """Regressions that have not come back, newest first."""
    return [event for event in reversed(site.events) if event.standing == "open"]


def reach(site: Site) -> list[str]:
    """What tonight could have told of each item that ran: without it "nothing changed" says more than was measured."""
    tonight = site.tonight.name if site.tonight else ""
    return [f"{one.run.item}, {one.reach}" for one in site.runs if one.run.night == tonight and one.reach]


def summary(site: Site) -> str:
    """Tonight in one sentence."""
    night = site.tonight
    if night is None:
        return "No night has been held yet."
    count = {state: sum(o.state is state for o in night.outcomes) for state in ItemState}
    if not night.outcomes:
        return f"{len(night.items)} items ran."
    words = [f"{count[ItemState.RAN]} ran", f"{count[ItemState.UNCHANGED]} unchanged"]
    if count[ItemState.NOT_DONE]:
        words.append(f"{count[ItemState.NOT_DONE]} could not be done")
    bad = sum(one.kind in BAD for one in site.news)
    head = (
        f"{bad} need{'s' if bad == 1 else ''} a look"
        if bad
        else "nothing got worse"
        if site.news
        else "nothing changed"
    )
    return f"{head[0].upper()}{head[1:]}: {len(night.items)} item{'s' if len(night.items) != 1 else ''}, {', '.join(words)}."


def nights_of(site: Site) -> list[Night]:
    """Every night, newest first: this machine's log, and what the history has beside it."""
    known = {night.name: night for night in site.nights}
    for run in site.runs:
        if run.run.night not in known:
            known[run.run.night] = Night(run.run.night, run.run.started, (), finished=True)
    return [known[name] for name in sorted(known, reverse=True)]


def month_names(site: Site) -> list[str]:
    """``2026-11``, newest first."""
    return list(dict.fromkeys(f"{n.name[:4]}-{n.name[4:6]}" for n in nights_of(site)))


def by_night(site: Site) -> dict[str, list[Run]]:
    """Night -> its runs."""
    found: dict[str, list[Run]] = {}
    for run in site.runs:
        found.setdefault(run.run.night, []).append(run)
    return found


def folded(points: Sequence[Point]) -> list[tuple[str, int, str, str]]:
    """Older nights by month, newest first: month, how many, median change with its ends, the last verdict."""
    months: dict[str, list[Point]] = {}
    for point in points:
        months.setdefault(f"{point.run[:4]}-{point.run[4:6]}", []).append(point)
    found = []
    for month, own in reversed(months.items()):
        there = [p.change for p in own if p.change is not None]
        words = f"{statistics.median(there):+.2f} ({min(there):+.2f} to {max(there):+.2f})" if there else "-"
        found.append((month, len(own), words, own[-1].verdict))
    return found


def when(text: str) -> str:
    """A time for people: ``2026-11-30 02:00``."""
    return text[:16].replace("T", " ")


def word_class(word: str) -> str:
    """A verdict, status or kind as a class."""
    return re.sub(r"[^a-z0-9]+", "-", str(word).lower())


def tone(kind: Kind) -> str:
    """Class of a piece of news."""
    return "bad" if kind in BAD else "good" if kind in GOOD else "even"


_FUNCTIONS = (
    series_page, run_page, report_page, news_page, folded, when, word_class, tone, figure, percent, visible,
    trend.changes, trend.levels,
)  # fmt: skip


def _render(template: str, root: str, site: Site, **values: Any) -> str:
    return Templates(__package__, _FUNCTIONS).render(template, root=root, site=site, shown=SHOWN, **values)
