# SPDX-License-Identifier: GPL-2.0-or-later
"""Deterministic mode: a sample is a function of its conditions, so two nights differ only where a condition does.

Every such difference is told, with what changed. Not every one is news: another kernel takes other paths, and its figures
come out a little different on any seeds. So an alert is what crosses its limit, would show on other seeds too (a test over the
boots, as between a run's arms), and is larger than such changes usually are on this line (where it has seen enough of them).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from kpatch_ci.model.history import Change, Limit, Line, Night, Standing
from kpatch_ci.stats import signedrank
from kpatch_ci.stats.attribution import causes

METHOD = "exact: same seeds, night against night"
ALPHA = 0.05
"""Of the signed-rank test over six boots and more: six that go one way pass it."""
ALPHA_FEW = 0.01
"""Of Student's t over fewer, which takes their effects for normal."""
USUAL_FROM = 8
"""Other differences that a line must have before one is held against them."""
USUAL_TIMES = 4.0
"""Times their robust standard deviation (1.4826 median |step|: F. R. Hampel, J. Amer. Statist. Assoc. 69 (1974) 383-393)."""
UNEXPLAINED = "nothing that is recorded changed: ./kpatch-ci verify-determinism"
_MAD = 1.4826


@dataclass(frozen=True, slots=True)
class _Step:
    """From one night to the next, over the seeds of both.

    ``effects``: one a boot (of one boot alone: one a run), on the log scale, or as differences where a value is 0.
    """

    before: float
    after: float
    effects: tuple[float, ...]

    @property
    def size(self) -> float:
        return abs(math.fsum(self.effects) / len(self.effects))

    @property
    def exact(self) -> bool:
        """Whether there are enough effects for the signed-rank test."""
        return signedrank.smallest_p(len(self.effects)) < ALPHA

    @property
    def p(self) -> float | None:
        """That other seeds would not show it; None where there is one effect alone."""
        if self.exact:
            return signedrank.p_value(np.array(self.effects))
        if len(self.effects) < 2:
            return None
        spread = float(np.std(self.effects, ddof=1))
        if spread <= 1e-12 * self.size:
            return 0.0
        return float(2 * student.sf(self.size * math.sqrt(len(self.effects)) / spread, len(self.effects) - 1))


def exact_changes(line: Line, nights: Sequence[Night], limit: Limit) -> list[Change]:
    """Every difference between consecutive nights; those that are alerts say so, and are closed where the figure came back."""
    steps = {index: step for index in range(1, len(nights)) if (step := _step(nights[index - 1], nights[index]))}
    found = []
    for index, step in steps.items():
        others = [other.size for at, other in steps.items() if at != index]
        found.append(_change(line, nights, index, step, limit, held=_held(step, limit, others)))
    return found


def _step(before: Night, after: Night) -> _Step | None:
    """None where the nights share no seed, or nothing differs on those they share."""
    seeds = sorted(before.values.keys() & after.values.keys())
    pairs = [(before.values[s], after.values[s]) for s in seeds]
    if all(a == b for a, b in pairs):
        return None
    positive = all(a > 0 and b > 0 for a, b in pairs)
    by_boot: dict[str, list[float]] = defaultdict(list)
    for seed, (a, b) in zip(seeds, pairs, strict=True):
        by_boot[seed.partition(".")[0]].append(math.log(b / a) if positive else b - a)
    units = list(by_boot.values())
    effects = tuple(math.fsum(some) / len(some) for some in units) if len(units) > 1 else tuple(units[0])
    before_mean, after_mean = (math.fsum(pair[arm] for pair in pairs) / len(pairs) for arm in (0, 1))
    return _Step(before_mean, after_mean, effects)


def _held(step: _Step, limit: Limit, usual: Sequence[float]) -> str:
    """Why it is no alert; empty where it is one."""
    if not limit.crossed(step.before, step.after):
        return f"below {limit.words}"
    p, alpha = step.p, ALPHA if step.exact else ALPHA_FEW
    if p is None:
        return f"crosses {limit.words}, on one seed: no telling whether others would show it"
    if p >= alpha:
        return f"crosses {limit.words}, but not surely on other seeds (p = {p:.2g}, not below {alpha:g})"
    if len(usual) >= USUAL_FROM:
        spread = _MAD * float(np.median(usual))
        if step.size <= USUAL_TIMES * spread:
            return (
                f"crosses {limit.words}, but is no larger than what changes of conditions do to this figure"
                f" ({step.size / spread:.1f} times the robust standard deviation of {len(usual)} others, not {USUAL_TIMES:g})"
            )
    return ""


def _change(line: Line, nights: Sequence[Night], index: int, step: _Step, limit: Limit, *, held: str) -> Change:
    before, after = nights[index - 1], nights[index]
    found = causes(before.conditions, after.conditions, of_host=False)
    percent = better_percent(step.before, step.after, line.better)
    worse = (step.after > step.before) == (line.better == "lower")
    closed = next((n.run for n in nights[index + 1 :] if _is_back(before, n, line, limit)), "") if worse else ""
    return Change(
        line=line,
        run=after.run,
        started=after.started,
        before_run=before.run,
        before=step.before,
        after=step.after,
        change_percent=percent,
        causes=found,
        method=METHOD,
        p_value=step.p,
        threshold=limit.words,
        alert=not held,
        standing=standing(worse=worse, held=bool(held), closed=bool(closed)),
        reason=(held or f"crosses {limit.words}, p = {step.p:.2g}") + ("" if found else f"; {UNEXPLAINED}"),
        closed_by="" if held else closed,
    )


def _is_back(before: Night, later: Night, line: Line, limit: Limit) -> bool:
    """Whether ``later`` is as good again as ``before``, but for less than the limit."""
    seeds = before.values.keys() & later.values.keys()
    if not seeds:
        return False
    old, new = (math.fsum(night.values[s] for s in seeds) / len(seeds) for night in (before, later))
    return not limit.crossed(old, new) or (new < old) == (line.better == "lower")


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
