# SPDX-License-Identifier: GPL-2.0-or-later
"""The rule that gives a measured commit its class, and how many boots it takes. Pure; docs/bisection.md has the reasons.

Half-way between the ends, on the scale of log ratios, is the threshold. A commit whose interval against the good end lies
entirely on one side of it has that side's class. Otherwise more boots are added, LOOKS times at most, then it is undecided.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy import stats

from kpatch_ci.model.bisect import Change, Class

ERROR = 0.001
"""Probability, at most, that a step gets the wrong class: that its true change lies on the other side of the threshold."""
LOOKS = 3
"""How often a step may be looked at, each time with twice the boots of the last."""
CONFIDENCE = 1 - 2 * ERROR / LOOKS
"""Of the interval at each look: either end is wrong with ERROR / LOOKS, so all looks together with ERROR (Bonferroni)."""
DECIDED = 0.9
"""Probability with which the first look of a step at one of the ends is to decide it."""
FEWEST = 3
"""Boots of a step: fewer have no spread to speak of."""
_DETECTED = 0.8
_SPREAD_LEVEL = 0.1


def to_log(change_percent: float, better: str) -> float:
    """A change in percent as a log ratio, positive where it is better (docs/statistics.md, Change)."""
    if better == "higher":
        return math.log1p(change_percent / 100)
    return -math.log1p(-change_percent / 100)


def to_percent(log_ratio: float, better: str) -> float:
    """The inverse of ``to_log``."""
    return 100 * (math.expm1(log_ratio) if better == "higher" else -math.expm1(-log_ratio))


def half_way(change_percent: float, better: str) -> float:
    """The threshold, in percent, for ends that differ by ``change_percent``."""
    return to_percent(to_log(change_percent, better) / 2, better)


def separated(change: Change) -> bool:
    """Whether the interval of the ends' difference leaves out 0."""
    ci = change.ci_percent
    return ci is not None and (ci[0] > 0 or ci[1] < 0)


def side(change: Change, half_percent: float) -> Class | None:
    """The class that the interval says; None where the threshold is in it, or there is none."""
    ci = change.ci_percent
    if ci is None or ci[0] <= half_percent <= ci[1]:
        return None
    below = ci[1] < half_percent
    return Class.BAD if below == (half_percent < 0) else Class.GOOD


def effects(before: Sequence[float], after: Sequence[float], better: str) -> list[float]:
    """Log ratios of paired samples, all of them positive; better is positive."""
    sign = 1.0 if better == "higher" else -1.0
    return [sign * math.log(a / b) for b, a in zip(before, after, strict=True)]


def spread(values: Sequence[float]) -> float:
    """Standard deviation; 0 of fewer than two."""
    if len(values) < 2:
        return 0.0
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1))


def boots_needed(effect: float, sd: float, known: int, most: int) -> int:
    """Boots with which the first look at a commit like one of the ends decides it with probability DECIDED.

    Where not even ``most`` would, half of those: luck may decide at them, and all of them are the second look.

    ``effect`` and ``sd`` are log ratios: the ends' difference, and the paired effects' spread over ``known`` boots. The spread
    is taken at its upper 90 % bound (chi-square), for a few boots may have looked more alike than they are.
    """
    if known > 1:
        sd *= math.sqrt((known - 1) / float(stats.chi2.ppf(_SPREAD_LEVEL, known - 1)))
    room = abs(effect) / 2
    for count in range(FEWEST, most):
        half_width = float(stats.t.ppf((1 + CONFIDENCE) / 2, count - 1)) + float(stats.norm.ppf(DECIDED))
        if half_width * sd / math.sqrt(count) <= room:
            return count
    return max(FEWEST, most // 2)


def detectable_percent(sd: float, boots: int) -> float | None:
    """Smallest change, percent of a ratio, that ``boots`` boots would tell from none in four of five; None for fewer than two."""
    if boots < 2:
        return None
    reach = float(stats.t.ppf((1 + CONFIDENCE) / 2, boots - 1)) + float(stats.t.ppf(_DETECTED, boots - 1))
    return 100 * math.expm1(reach * sd / math.sqrt(boots))


def boots_to_see(seen: int, of: int, most: int) -> int:
    """Boots after which a failure that the bad end showed in ``seen`` of ``of`` is missed with probability ERROR at most.

    The rate is taken as (seen + 1) / (of + 2), Laplace's: six of six is no proof that it always fails.
    """
    rate = (seen + 1) / (of + 2)
    return min(most, max(1, math.ceil(math.log(ERROR) / math.log1p(-rate))))


def next_look(boots: int, most: int) -> int | None:
    """Boots of the next look; None where ``boots`` are all that there may be."""
    return min(2 * boots, most) if boots < most else None
