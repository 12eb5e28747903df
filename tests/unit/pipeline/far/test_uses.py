# SPDX-License-Identifier: GPL-2.0-or-later
"""What a run reports of its hosts."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

from kpatch_ci.model.hosts import HostUse
from kpatch_ci.pipeline.run import _uses


def session(*places: Any) -> Any:
    return SimpleNamespace(every_place=places, counted={})


def engine(done: dict[str, int], lost: dict[str, str] | None = None) -> Any:
    return SimpleNamespace(done_at=Counter(done), lost=lost or {})


def place(name: str, sent: int, received: int, lost: str = "") -> Any:
    return SimpleNamespace(name=name, moved=(sent, received), lost=lost)


def test_a_run_without_other_places_reports_none() -> None:
    assert _uses(session(), engine({"here": 5})) == ()


def test_stages_and_bytes_are_counted_by_place_and_the_reason_of_a_loss_is_told() -> None:
    mine = session(place("a", 100, 10), place("b", 50, 5, "the connection ended"))
    uses = _uses(mine, engine({"here": 5, "a": 7, "b": 1}, {"b": "no sign of life"}))
    assert uses == (HostUse("here", 5), HostUse("a", 7, 100, 10), HostUse("b", 1, 50, 5, "no sign of life"))


def test_a_host_that_was_lost_before_the_run_is_told_too() -> None:
    assert _uses(session(place("b", 1, 1, "gone")), engine({}))[1] == HostUse("b", 0, 1, 1, "gone")


def test_the_second_run_of_a_session_counts_only_its_own_bytes() -> None:
    mine = session(place("a", 100, 10))
    _uses(mine, engine({}))
    mine.every_place = (place("a", 130, 12),)
    assert _uses(mine, engine({}))[1] == HostUse("a", 0, 30, 2)
