# SPDX-License-Identifier: GPL-2.0-or-later
"""Made-up nights: as the site's data, any number of them, and as documents of a history."""

from __future__ import annotations

import copy
import datetime
import itertools
import math
from typing import Any

from kpatch_ci.model.nightly import ItemOutcome, ItemState, Night, NightRun
from kpatch_ci.report.site.data import Event, Key, Kind, News, Part, Point, Run, Site, Trend
from tests.fakes.recorded import comparisons, document

BEGIN = datetime.datetime(2026, 1, 1, 2, 0, tzinfo=datetime.UTC)
ITEMS = ("stable", "mainline", "next")
SERIES = ("wakeup-gran", "stack-workqueue")
ARCHES = ("arm64", "x86_64")
WORKLOADS = ("dd", "dbench", "hackbench")
BOOTS = 12
REGRESSED_AT = 3 / 4
"""Share of the nights after which hackbench has regressed."""


def night_name(number: int) -> str:
    """Of night ``number``."""
    return (BEGIN + datetime.timedelta(days=number)).strftime("%Y%m%d-%H%M%S")


def night_run(number: int, item: str) -> NightRun:
    """A run of it; the kernel is a new one each week."""
    started = (BEGIN + datetime.timedelta(days=number)).isoformat()
    shared = {"status": "passed", "mode": "deterministic", "profile": "quick", "tree": f"{item}.git@main"}
    release, commit = f"6.{1 + number // 70}.{number // 7}", f"{number // 7:040x}"
    return NightRun(
        f"{night_name(number)}-{item}",
        item,
        night_name(number),
        "i",
        started,
        release=release,
        commit=commit,
        seconds=60.0,
        **shared,
    )


def made_site(nights: int, *, quiet: bool = False, url: str = "https://ci.example/kpatch", hostile: str = "") -> Site:
    """``nights`` nights of three items, two series, two architectures, three workloads; one regression that is open."""
    runs: list[Run] = []
    points: dict[tuple[Key, str], list[Point]] = {}
    for number in range(nights):
        for item in ITEMS:
            run = night_run(number, item)
            parts = []
            for key in (Key(item, s, a) for s in SERIES for a in ARCHES):
                verdicts = {}
                for workload in WORKLOADS:
                    point = _point(run.run, number, nights, workload)
                    points.setdefault((key, workload), []).append(point)
                    verdicts[workload] = (point.verdict, point.change)
                parts.append(Part(key, "passed", hostile, "port", verdicts))
            before = f"{night_name(number - 1)}-{item}" if number else ""
            differences = (("tree", "old", "new"), ("qemu", hostile, "10.0")) if number % 7 == 0 and number else ()
            runs.append(Run(run, tuple(parts), before, differences, (("qemu", "10.0"), ("gcc", "14"))))
    trends: dict[Key, tuple[Trend, ...]] = {}
    for (key, workload), own in points.items():
        metric = ("time", "s", "lower") if workload == "hackbench" else ("throughput", "MB/s", "higher")
        trends[key] = (*trends.get(key, ()), Trend(workload, *metric, tuple(own)))
    outcomes = tuple(
        ItemOutcome(
            item,
            ItemState.UNCHANGED if quiet else ItemState.RAN,
            runs[-1].run.run,
            "passed",
            "unchanged since x, not run" if quiet else "linux",
        )
        for item in ITEMS
    )
    last = nights - 1
    tonight = Night(night_name(last), runs[-1].run.started, ITEMS, outcomes, finished=True)
    event = made_event(int(nights * REGRESSED_AT), hostile)
    news = () if quiet else (
        News(Kind.REGRESSED, "stable", f"{event.words} -5.00 % {hostile}", f"changed with it: {event.causes}", SERIES[0], event.run),
        News(Kind.VERDICT, "next", "stack-workqueue, arm64: dd was no change, is improved +2.00 %", "", SERIES[1], runs[-1].run.run),
    )  # fmt: skip
    return Site(
        made="2026-11-30T03:00:00+00:00", tonight=tonight, news=news, runs=tuple(runs), trends=trends, events=(event,),
        nights=(tonight,), url=url, items=ITEMS, older_news={tonight.name: news},
    )  # fmt: skip


def made_event(number: int, hostile: str = "") -> Event:
    """A regression of hackbench in night ``number``."""
    return Event(
        item="stable", series=SERIES[0], arch="arm64", workload="hackbench", case="all", metric="time", unit="s", arm="patched",
        run=f"{night_name(number)}-stable", before_run=f"{night_name(number - 1)}-stable", before=1.0, after=1.05, change=-5.0,
        better=False, causes=f"kernel source a -> b{hostile}", range="aaaaaaaaaaaa..bbbbbbbbbbbb", git_range="aaaaaaaaaaaa..bbbbbbbbbbbb",
        standing="open", closed_by="", reason="crosses time: 2 %",
        shows_in=("groups=8 time -7.00 %", f"groups=4 context_switches -9.00 %{hostile}"),
    )  # fmt: skip


def _point(run: str, number: int, nights: int, workload: str) -> Point:
    change = round(2 + math.sin(number / 9) / 4, 3)
    level = 1.05 if workload == "hackbench" and number >= nights * REGRESSED_AT else 1.0
    return Point(run, change, change - 0.4, change + 0.4, "improved", level, level * 0.98)


def night_document(
    number: int, item: str, *, inputs: str = "i", slower: float = 1.0, boots: int = BOOTS, **changes: Any
) -> dict[str, Any]:
    """result.json of an item's run in night ``number``, ``slower`` times as slow in both arms; ``boots`` of one run."""
    run_id = (BEGIN + datetime.timedelta(days=number, minutes=ITEMS.index(item))).strftime("%Y%m%d-%H%M%S")
    made = copy.deepcopy(document(number, run_id, **changes))
    made["fingerprint"] = {
        **made["fingerprint"],
        "nightly": {"item": item, "night": night_name(number), "inputs": inputs},
    }
    for one in comparisons(made):
        for arm in ("baseline", "patched"):
            given = one[arm]
            one[arm] = [value * slower for value, _ in zip(itertools.cycle(given), range(boots), strict=False)]
        one["seeds"] = [f"{boot}.1" for boot in range(1, boots + 1)]
    return made
