# SPDX-License-Identifier: GPL-2.0-or-later
"""Cases and counters over nights: what they say of their workload's alerts. They are adjusted within it, and are never alerts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from kpatch_ci.model.history import Change, Limit, Line, Night
from kpatch_ci.model.status import Mode
from kpatch_ci.stats.changepoint_exact import METHOD, adjusted, by_night, change_of, held, p_words, steps_of
from kpatch_ci.stats.changepoint_noisy import SHORTEST, distinct, noisy_changes

EXPLAINS = "it explains, and is no alert itself"
Lines = Mapping[Line, Sequence[Night]]
Limits = Callable[[Line], Limit]


def explained(found: Sequence[Change], cases: Lines, limit: Limits, *, everything: bool) -> list[Change]:
    """``found`` (of primary figures), each alert with what it shows in; with ``everything`` also each case's own changes."""
    workloads: dict[Line, dict[Line, Sequence[Night]]] = defaultdict(dict)
    for line, nights in cases.items():
        workloads[_workload(line)][line] = nights
    alerts: dict[Line, list[Change]] = defaultdict(list)
    for change in found:
        if change.alert:
            alerts[_workload(change.line)].append(change)
    shows: dict[tuple[Line, str], tuple[Change, ...]] = {}
    others: list[Change] = []
    for workload, own in workloads.items():
        methods = {alert.method for alert in alerts[workload]}
        exact = _exact(own, limit) if everything or METHOD in methods else []
        shifts = _shifts(own, limit) if everything or methods - {METHOD} else []
        others += [*(change for change, _ in exact), *shifts]
        sure = [change for change, is_sure in exact if is_sure]
        for alert in alerts[workload]:
            with_it = [c for c in (sure if alert.method == METHOD else shifts) if _is_of(alert, c, own[c.line])]
            shows[alert.line, alert.run] = tuple(sorted(with_it, key=lambda c: -abs(c.change_percent or 0.0)))
    whole = [replace(c, shows_in=shows.get((c.line, c.run), ())) if c.alert else c for c in found]
    return [*whole, *others] if everything else whole


def _workload(line: Line) -> Line:
    """What a line has in common with the primary figure that it explains."""
    return replace(line, case="", metric="", cases=())


def _exact(own: Lines, limit: Limits) -> list[tuple[Change, bool]]:
    """Differences of a workload's cases and counters, and whether each is sure; those of one night are a family."""
    if any(line.mode != Mode.DETERMINISTIC for line in own):
        return []
    steps = {line: steps_of(line, nights) for line, nights in own.items()}
    found = []
    for family in by_night(own, steps, limit).values():
        for one in adjusted(family):
            why = held(one, {})
            said = why or f"crosses {one.limit.words}, {p_words(one)} of {one.line.workload}; {EXPLAINS}"
            found.append((change_of(one, said, alert=False), not why))
    return found


def _shifts(own: Lines, limit: Limits) -> list[Change]:
    """Shifts of level of a workload's cases and counters."""
    found = []
    for line, nights in own.items():
        units = distinct(nights) if line.mode == Mode.DETERMINISTIC else nights
        found += noisy_changes(line, units, limit(line), len(own), alert=False)
    return [replace(change, reason=f"{change.reason}; {EXPLAINS}") for change in found]


def _is_of(alert: Change, other: Change, nights: Sequence[Night]) -> bool:
    """Of the alert's night; shifts of level, whose first night noise may move, of the nights beside it."""
    if alert.run == other.run or alert.method == METHOD:
        return alert.run == other.run
    order = {night.run: index for index, night in enumerate(nights)}
    return alert.run in order and abs(order[alert.run] - order[other.run]) < SHORTEST
