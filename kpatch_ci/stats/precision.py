# SPDX-License-Identifier: GPL-2.0-or-later
"""Precision on demand: boots are added until intervals are narrow enough. Only their width is looked at, never a p-value.

Still, samples whose spread came out too small stop first, so an interval that was waited for covers less often than it says,
and its test rejects more often: measured, up to 1.4 times as often as alpha (docs/statistics.md). Hence ``stricter()``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from kpatch_ci.model.comparison import Comparison
from kpatch_ci.stats.paired import rounded
from kpatch_ci.stats.verdict import Thresholds

DEFAULT_MOST = 48
"""Boots an arm at most, unless told otherwise."""
STRICTER = 1.5
"""What alpha and 1 - confidence are divided by where precision is asked for."""
_FEWEST_MORE = 4
"""Boots that a round adds at least: each look at the width costs a round's overhead."""


@dataclass(frozen=True, slots=True)
class Precision:
    """What is asked for. ``percent``: half the width of every primary figure's interval. ``most``: boots an arm at most."""

    percent: float
    most: int = DEFAULT_MOST


def stricter(thresholds: Thresholds) -> Thresholds:
    """What is tested with, and how wide intervals are, for the error rates of ``thresholds`` in spite of the stopping."""
    doubt = _two_digits((1 - thresholds.confidence) / STRICTER)
    return Thresholds(alpha=_two_digits(thresholds.alpha / STRICTER), confidence=round(1 - doubt, 12))


def _two_digits(value: float) -> float:
    """Rounded down, for people to read."""
    scale = 10.0 ** (math.floor(math.log10(value)) - 1)
    return float(f"{math.floor(value / scale + 1e-9) * scale:.12g}")


def half_width(comparison: Comparison) -> float | None:
    """In percent; infinite where there are too few boots for an exact interval, None where nothing was compared.

    Student's and Welch's intervals of a few boots vary too much in width to stop at.
    """
    if comparison.change_percent is None:
        return None
    ends = comparison.ci_percent
    if ends is None or comparison.ci_method.startswith(("Student", "Welch")):
        return math.inf
    return (ends[1] - ends[0]) / 2


def too_wide(comparisons: Iterable[Comparison], asked: Precision) -> dict[str, float]:
    """Workloads whose primary figure's interval is wider than asked, each with its half-width."""
    found = {c.workload: half_width(c) for c in comparisons if c.primary}
    return {name: width for name, width in found.items() if width is not None and width > asked.percent}


def next_boots(boots: int, widest: float, asked: Precision) -> int:
    """How many boots the next round has: what the width, which falls with the root of their number, makes likely to be enough.

    At least four more, at most twice as many, and no more than the cap.
    """
    guess = 2 * boots if math.isinf(widest) else math.ceil(boots * (widest / asked.percent) ** 2)
    return min(asked.most, max(boots + _FEWEST_MORE, min(guess, 2 * boots)))


def told(comparison: Comparison, asked: Precision) -> str:
    """What a primary figure's reason says of the precision that was asked for; empty where nothing was compared."""
    width = half_width(comparison)
    if width is None:
        return ""
    boots = len({seed.boot for seed in comparison.seeds})
    if width <= asked.percent:
        return f"±{asked.percent:g} % asked for, ±{rounded(width)} % reached with {boots} boots"
    short = "no exact interval" if math.isinf(width) else f"±{rounded(width)} %"
    end = (
        f"at the cap of {boots} boots"
        if boots >= asked.most
        else f"with {boots} boots, and more gave no more to compare"
    )
    return f"±{asked.percent:g} % asked for, {short} {end}"
