# SPDX-License-Identifier: GPL-2.0-or-later
"""Where figures changed over nights. Pure. Method and sources: docs/history.md.

As in a run, primary figures carry the alert, and cases and counters explain it: an alert is a change of a workload's figure
over all its cases. In deterministic mode every difference between two nights is real and is told; all primary figures of a night
are tested together (Holm). In any mode a change is also what a change-point search over the nights finds and a permutation
test confirms, which allows for the number of figures.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kpatch_ci.model.history import Change, Limit, Line, Night, Reach
from kpatch_ci.model.status import Mode
from kpatch_ci.stats.changepoint_cases import explained
from kpatch_ci.stats.changepoint_exact import (
    Tested,
    adjusted,
    boots_needed,
    by_night,
    change_of,
    held,
    p_words,
    steps_of,
)
from kpatch_ci.stats.changepoint_noisy import SHORTEST, distinct, noisy_changes
from kpatch_ci.stats.compare import ALL_CASES
from kpatch_ci.stats.limits import limit_for

Lines = Mapping[Line, Sequence[Night]]


@dataclass(frozen=True, slots=True)
class Judge:
    """``limits``: by ``workload.metric``, metric or ``default``, in front of our own."""

    limits: Mapping[str, Limit] = field(default_factory=dict)

    def limit(self, line: Line) -> Limit:
        """The one of ``line``."""
        return limit_for(self.limits, line.workload, line.metric)


@dataclass(frozen=True, slots=True)
class Found:
    """``changes``: those of one line oldest first. ``reach``: what each night could have told in which a primary figure differs."""

    changes: list[Change]
    reach: dict[str, Reach]


def find_changes(lines: Lines, judge: Judge = Judge(), *, everything: bool = False) -> Found:
    """Alerts of the primary figures among ``lines``, each with what it shows in; ``everything``: and all that is no alert.

    The primary figures of one tree, mode and profile are looked at together, so give all that there are: among fewer an
    alert comes more easily. Nights are oldest first.
    """
    together: dict[tuple[str, ...], dict[Line, Sequence[Night]]] = defaultdict(dict)
    for line in sorted(lines):
        together[line.tree, line.mode, line.profile][line] = lines[line]
    changes: list[Change] = []
    reach: dict[str, Reach] = {}
    for own in together.values():
        primaries = {line: nights for line, nights in own.items() if line.case == ALL_CASES}
        cases = {line: nights for line, nights in own.items() if line.case != ALL_CASES}
        found, told = _primaries(primaries, judge.limit)
        changes += explained(found, cases, judge.limit, everything=everything)
        reach |= told
    shown = changes if everything else [change for change in changes if change.alert]
    return Found(shown, reach)


def _primaries(primaries: Lines, limit: Callable[[Line], Limit]) -> tuple[list[Change], dict[str, Reach]]:
    """Their differences and shifts, and each night's reach. No family is smaller than what is read as one."""
    tests = len(primaries)
    if any(line.mode != Mode.DETERMINISTIC for line in primaries):
        of_line = (noisy_changes(line, nights, limit(line), tests) for line, nights in primaries.items())
        return [change for own in of_line for change in own], {}
    exact, reach = _exact(primaries, limit)
    found: list[Change] = []
    for line, nights in primaries.items():
        order = {night.run: index for index, night in enumerate(nights)}
        told = [order[change.run] for change in exact[line] if change.alert]
        shifts = noisy_changes(line, distinct(nights), limit(line), tests)
        levels = [shift for shift in shifts if all(abs(order[shift.run] - at) >= SHORTEST for at in told)]
        again = {level.run for level in levels}
        found += [*(change for change in exact[line] if change.run not in again), *levels]
    return found, reach


def _exact(primaries: Lines, limit: Callable[[Line], Limit]) -> tuple[dict[Line, list[Change]], dict[str, Reach]]:
    steps = {line: steps_of(line, nights) for line, nights in primaries.items()}
    found: dict[Line, list[Change]] = defaultdict(list)
    reach = {}
    for run, family in by_night(primaries, steps, limit).items():
        tested = adjusted(family)
        reach[run] = _reach(run, tested)
        for one in tested:
            why = held(one, steps[one.line])
            found[one.line].append(change_of(one, why or f"crosses {one.limit.words}, {p_words(one)}", alert=not why))
    return found, reach


def _reach(run: str, tested: Sequence[Tested]) -> Reach:
    """Of each figure as if it were the one that had changed, beside the others."""
    boots = max(one.step.estimate.n for one in tested)
    tests = max(1, *(one.tests for one in tested))
    needed = boots_needed(tests)
    percent: dict[str, float] = {}
    too_few: dict[str, None] = {}
    for one in tested if boots >= needed else ():
        beside = replace(one, tests=tests if one.tests else tests + 1)
        size = one.step.detectable(one.limit, beside.alpha)
        if size is None:
            too_few[one.line.workload] = None
        else:
            percent[one.line.workload] = max(size, percent.get(one.line.workload, 0.0))
    return Reach(run, boots, tests, needed, percent, tuple(too_few))
