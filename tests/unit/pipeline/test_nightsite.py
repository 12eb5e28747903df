# SPDX-License-Identifier: GPL-2.0-or-later
"""From a history of nights to the site's data and news."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kpatch_ci.model.history import Limit
from kpatch_ci.model.nightly import ItemOutcome, ItemState, Night
from kpatch_ci.pipeline.nightnews import news_of
from kpatch_ci.pipeline.nightsite import gather
from kpatch_ci.report.site.data import Kind, Site
from kpatch_ci.store.history.database import Database
from kpatch_ci.store.history.nights import night_runs
from kpatch_ci.store.history.place import find_place
from kpatch_ci.store.history.record import record
from tests.fakes.recorded import document
from tests.fakes.site import ITEMS, made_event, night_document, night_name

NIGHTS = 24
SLOW, WELL = 10, 18
"""Nights in which `stable` regresses, and is back."""


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Database:
    """Two items; `stable` is a tenth slower for some nights. A run of a person lies between, far slower."""
    made = Database(find_place(str(tmp_path_factory.mktemp("h") / "h.db")))
    for number in range(NIGHTS):
        slower = 1.1 if SLOW <= number < WELL else 1.0
        tree = {
            "label": "/srv/linux@main",
            "release": f"6.1.{number}",
            "commit": f"{number:040x}",
            "tree_id": f"t{number}",
        }
        record(made, night_document(number, "stable", slower=slower, tree=tree))
        record(made, night_document(number, "mainline"))
    byhand = night_document(5, "next", slower=3.0)
    del byhand["fingerprint"]["nightly"]
    record(made, byhand)
    return made


def gathered(database: Database, *nights: Night, **limits: Limit) -> Site:
    return gather(database, nights, limits, ITEMS)


def test_runs_of_nights_are_told_from_others(database: Database) -> None:
    found = night_runs(database)
    assert len(found) == 2 * NIGHTS
    assert [run.night for run in night_runs(database, "stable")] == [night_name(n) for n in range(NIGHTS)]
    assert {run.item for run in found} == {"stable", "mainline"}
    assert night_runs(database, "none") == []


def test_the_planted_change_is_found_where_it_is_and_nowhere_else(database: Database) -> None:
    site = gathered(database)
    nights = {run.run.run: run.run.night for run in site.runs}
    assert {(e.item, nights[e.run], e.better) for e in site.events if e.metric == "time"} == {
        ("stable", night_name(SLOW), False), ("stable", night_name(WELL), True),
    }  # fmt: skip
    slower = next(e for e in site.events if not e.better and e.metric == "time")
    assert (slower.standing, nights[slower.closed_by]) == ("recovered", night_name(WELL))
    assert slower.git_range == f"{SLOW - 1:040x}"[:12] + ".." + f"{SLOW:040x}"[:12]
    assert slower.change == pytest.approx(-10, abs=0.2)


def test_the_limits_of_the_pipeline_file_count(database: Database) -> None:
    high = gathered(database, default=Limit("default", percent=50), context_switches=Limit("c", percent=50),
                    wakeups=Limit("w", percent=50), migrations=Limit("m", percent=50))  # fmt: skip
    assert high.events == ()


def test_news_of_each_night(database: Database) -> None:
    news = gathered(database).older_news
    assert [str(one.kind) for one in news[night_name(3)]] == []
    (bad, *_) = news[night_name(SLOW)]
    assert (bad.kind, bad.item) == (Kind.REGRESSED, "stable")
    assert "changed with it: " in bad.detail
    assert "\nshows in: groups=8 time -10.00 %" in bad.detail
    assert Kind.RECOVERED in {one.kind for one in news[night_name(WELL)]}
    assert {one.item for one in news[night_name(WELL)]} == {"stable"}
    first = news[night_name(0)]
    assert {one.kind for one in first} == {Kind.FAILED, Kind.FIRST}


def test_what_differs_from_the_night_before_leaves_the_night_itself_out(database: Database) -> None:
    site = gathered(database)
    run = next(r for r in site.runs if r.run.item == "stable" and r.run.night == night_name(4))
    assert [key for key, _, _ in run.differences] == ["tree"]
    same = next(r for r in site.runs if r.run.item == "mainline" and r.run.night == night_name(4))
    assert (same.differences, bool(same.before)) == ((), True)


def test_alerts_are_of_primary_figures_and_name_what_they_show_in(database: Database) -> None:
    site = gathered(database)
    assert {event.case for event in site.events} == {"all"}
    slower = next(e for e in site.events if not e.better and e.series == "baseline")
    assert slower.words == "baseline, arm64: hackbench time"
    assert slower.shows_in == ("groups=8 time -10.00 %", "groups=8,mode=process-pipes context_switches -10.00 %")
    run = next(r for r in site.runs if r.run.run == slower.run)
    assert run.reach == "12 boots: a change would be told in four of five: dd from 2 %, hackbench from 2 %"
    assert [r.reach for r in site.runs if r.run.item == "mainline" and r.reach] == []


def test_three_boots_are_no_alert_and_the_site_says_so(tmp_path: Path) -> None:
    made = Database(find_place(str(tmp_path / "h.db")))
    for number in range(2):
        record(made, night_document(number, "stable", slower=1 + number, boots=3))
    site = gathered(made)
    assert site.events == ()
    assert (
        site.runs[-1].reach
        == "3 boots: no test of 6 figures together can tell any change from noise; 8 boots or more can"
    )


def test_what_the_log_knows_is_at_the_top(database: Database) -> None:
    outcomes = (
        ItemOutcome("stable", ItemState.NOT_DONE, said="tree: no such tree\nlook there"),
        ItemOutcome("mainline", ItemState.UNCHANGED, "x", "passed", "unchanged since y, not run"),
        ItemOutcome("next", ItemState.RAN, "z", "passed", recorded=False, reports="results/z"),
    )
    tonight = Night("20260901-020000", "2026-09-01T02:00:00+00:00", ITEMS, outcomes, True, ("the disk is full",))
    site = gathered(database, tonight)
    assert [(one.kind, one.item, one.words) for one in site.news] == [
        (Kind.NOT_DONE, "stable", "tree: no such tree"),
        (Kind.NOT_DONE, "next", "measured, but not in the history: its reports are in results/z"),
        (Kind.NOT_DONE, "", "the disk is full"),
    ]


def test_a_history_without_nights_gives_an_empty_site(tmp_path: Path) -> None:
    database = Database(find_place(str(tmp_path / "h.db")))
    record(database, document())
    site = gathered(database)
    assert (site.tonight, site.runs, site.news) == (None, (), ())


def test_a_shift_that_is_certain_nights_later_is_news_then(database: Database) -> None:
    """In real time a level must last before it is one, and until then nobody has heard of it."""
    run = next(r for r in gathered(database).runs if r.run.item == "stable" and r.run.night == night_name(4))
    event = replace(made_event(1), told=run.run.run)
    (told,) = (one for one in news_of(None, night_name(4), [run], [event]) if one.kind is Kind.REGRESSED)
    assert told.words.endswith(f"-5.00 % since {event.run}, certain only now")
    ended = replace(event, told="another", closed_by="earlier", closed_told=run.run.run)
    assert Kind.RECOVERED in {one.kind for one in news_of(None, night_name(4), [run], [ended])}
    silent = news_of(None, night_name(4), [run], [replace(event, told="another", run=run.run.run)])
    assert Kind.REGRESSED not in {one.kind for one in silent}
