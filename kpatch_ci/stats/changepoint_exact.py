# SPDX-License-Identifier: GPL-2.0-or-later
"""Deterministic mode: a sample is a function of its conditions, so two nights differ only where a condition does.

Every such difference is real, and not every one is news: another kernel takes other paths, and its figures come out a
little different on any seeds. So figures are tested in families, as the arms of a run are: Holm over all that could be
alerts. An alert crosses its limit, would show on other seeds too (the signed-rank test over boots), and is larger than such
changes usually are on its line (where it has seen enough of them).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kpatch_ci.model.history import Change, Limit, Line, Night, Standing
from kpatch_ci.stats import signedrank
from kpatch_ci.stats.attribution import causes
from kpatch_ci.stats.detect import fewest
from kpatch_ci.stats.holm import holm
from kpatch_ci.stats.nightpair import Step, step_of

METHOD = "exact: same seeds, night against night"
ALPHA = 0.05
"""Of a whole family: the chance of any false alert among its figures."""
USUAL_FROM = 8
"""Other differences that a line must have before one is held against them."""
USUAL_TIMES = 4.0
"""Times their robust standard deviation (1.4826 median |step|: F. R. Hampel, J. Amer. Statist. Assoc. 69 (1974) 383-393)."""
UNEXPLAINED = "nothing that is recorded changed: ./kpatch-ci verify-determinism"
_MAD = 1.4826


@dataclass(frozen=True, slots=True)
class Tested:
    """One line's difference between two nights, adjusted over its family. ``tests``: figures of it; 0 where it was not tested."""

    line: Line
    nights: Sequence[Night]
    index: int
    step: Step
    limit: Limit
    p_adjusted: float = 1.0
    tests: int = 0

    @property
    def alpha(self) -> float:
        """Of Holm's first step, were this figure the one that changed."""
        return ALPHA / max(self.tests, 1)

    @property
    def needed(self) -> str | None:
        """How many boots the test needs, in words, where it has too few to tell anything."""
        return fewest(self.step.estimate, self.alpha)


def steps_of(line: Line, nights: Sequence[Night]) -> dict[int, Step]:
    """Number of the later night -> the difference from the one before it."""
    found = ((index, step_of(line, nights[index - 1], nights[index])) for index in range(1, len(nights)))
    return {index: step for index, step in found if step}


def by_night(
    lines: Mapping[Line, Sequence[Night]], steps: Mapping[Line, Mapping[int, Step]], limit: Callable[[Line], Limit]
) -> dict[str, list[Tested]]:
    """Later night -> the differences of all ``lines`` that end in it, not tested yet."""
    found: dict[str, list[Tested]] = defaultdict(list)
    for line, own in steps.items():
        for index, step in own.items():
            found[lines[line][index].run].append(Tested(line, lines[line], index, step, limit(line)))
    return found


def adjusted(family: Sequence[Tested]) -> list[Tested]:
    """The family's figures, tested together: those that could cross their limit at all, whatever their signs."""
    able = [one.step.could_cross(one.limit) for one in family]
    p = iter(holm([one.step.estimate.p_value for one, is_able in zip(family, able, strict=True) if is_able]))
    tests = sum(able)
    return [
        replace(one, p_adjusted=next(p), tests=tests) if is_able else one
        for one, is_able in zip(family, able, strict=True)
    ]


def held(one: Tested, steps: Mapping[int, Step]) -> str:
    """Why it is no alert; empty where it is one. ``steps``: all of its line."""
    if not one.tests or not one.step.crosses(one.limit):
        return f"below {one.limit.words}"
    if one.p_adjusted >= ALPHA:
        return f"crosses {one.limit.words}, but {_unsure(one)}"
    usual = [other.size for at, other in steps.items() if at != one.index]
    if len(usual) >= USUAL_FROM:
        spread = _MAD * float(np.median(usual))
        if one.step.size <= USUAL_TIMES * spread:
            return (
                f"crosses {one.limit.words}, but is no larger than what changes of conditions do to this figure"
                f" ({one.step.size / spread:.1f} times the robust standard deviation of {len(usual)} others, not {USUAL_TIMES:g})"
            )
    return ""


def _unsure(one: Tested) -> str:
    if one.needed:
        over = f" with {one.tests} figures" if one.tests > 1 else ""
        return f"{one.step.estimate.counted} cannot tell whether others would show it{over}: that needs {one.needed}"
    return f"not surely on other seeds ({p_words(one)}, not below {ALPHA:g})"


def p_words(one: Tested) -> str:
    """``p = 0.02 after Holm over 40 figures``."""
    return f"p = {one.p_adjusted:.2g}" + (f" after Holm over {one.tests} figures" if one.tests > 1 else "")


def change_of(one: Tested, why: str, *, alert: bool) -> Change:
    """As it is told. An alert is closed where the figure came back. ``why``: its reason."""
    before, after = one.nights[one.index - 1], one.nights[one.index]
    found = causes(before.conditions, after.conditions, of_host=False)
    better = one.step.estimate.change_percent > 0
    later = one.nights[one.index + 1 :] if alert and not better else ()
    closed = next((night.run for night in later if _is_back(before, night, one.line, one.limit)), "")
    return Change(
        line=one.line,
        run=after.run,
        started=after.started,
        before_run=before.run,
        before=one.step.before,
        after=one.step.after,
        change_percent=None if one.step.before == 0 else one.step.estimate.change_percent,
        causes=found,
        method=METHOD,
        p_value=one.step.estimate.p_value,
        threshold=one.limit.words,
        alert=alert,
        standing=standing(worse=not better, held=not alert, closed=bool(closed)),
        reason=why + ("" if found else f"; {UNEXPLAINED}"),
        closed_by=closed,
    )


def _is_back(before: Night, later: Night, line: Line, limit: Limit) -> bool:
    """Whether ``later`` is as good again as ``before``, but for less than the limit."""
    step = step_of(line, before, later)
    if step is None:
        return bool(before.values.keys() & later.values.keys())
    return step.estimate.change_percent > 0 or not step.crosses(limit)


def better_percent(before: float, after: float, better: str) -> float | None:
    """Percent of ``before``, positive where ``after`` is better; None where ``before`` is 0."""
    if before == 0:
        return None
    return 100 * (after - before) / abs(before) * (1 if better == "higher" else -1)


def standing(*, worse: bool, held: bool, closed: bool) -> Standing:
    """What became of a change."""
    if held:
        return Standing.NOTED
    if not worse:
        return Standing.IMPROVED
    return Standing.RECOVERED if closed else Standing.OPEN


def boots_needed(tests: int) -> int:
    """Fewest boots with which one figure of ``tests`` could be an alert."""
    return signedrank.units_needed(ALPHA, max(tests, 1))
