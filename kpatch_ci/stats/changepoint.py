# SPDX-License-Identifier: GPL-2.0-or-later
"""Where a figure changed over nights. Pure. Method and sources: docs/history.md.

In deterministic mode every difference between two nights is real and is told. In any mode a change is also what a change-point
search over the nights finds and a permutation test confirms. An alert has crossed its limit, in either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from kpatch_ci.model.history import Change, Limit, Line, Night
from kpatch_ci.model.status import Mode
from kpatch_ci.stats.changepoint_exact import exact_changes
from kpatch_ci.stats.changepoint_noisy import SHORTEST, noisy_changes
from kpatch_ci.stats.limits import limit_for


@dataclass(frozen=True, slots=True)
class Judge:
    """``limits``: by ``workload.metric``, metric or ``default``, in front of our own."""

    limits: Mapping[str, Limit] = field(default_factory=dict)


def find_changes(line: Line, nights: Sequence[Night], judge: Judge = Judge()) -> list[Change]:
    """Every change of one line, oldest first. ``nights``: oldest first."""
    limit = limit_for(judge.limits, line.workload, line.metric)
    if line.mode != Mode.DETERMINISTIC:
        return noisy_changes(line, nights, limit)
    exact = exact_changes(line, nights, limit)
    order = {night.run: index for index, night in enumerate(nights)}
    told = [order[change.run] for change in exact if change.alert]
    levels = [
        change
        for change in noisy_changes(line, distinct(nights), limit)
        if all(abs(order[change.run] - at) >= SHORTEST for at in told)
    ]
    kept = [change for change in exact if change.run not in {level.run for level in levels}]
    return sorted((*kept, *levels), key=lambda change: order[change.run])


def distinct(nights: Sequence[Night]) -> list[Night]:
    """Nights whose samples are others than those of the night before, over the newest night's seeds.

    In deterministic mode a night with the conditions of the last one is the same measurement again: to count it would make any
    difference between two kernels look certain, if only each was measured often enough.
    """
    if not nights:
        return []
    seeds = nights[-1].values.keys()
    found: list[Night] = []
    for night in nights:
        if seeds <= night.values.keys():
            values = {seed: night.values[seed] for seed in sorted(seeds)}
            if not found or values != found[-1].values:
                found.append(replace(night, values=values))
    return found
