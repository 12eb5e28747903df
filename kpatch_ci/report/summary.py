# SPDX-License-Identifier: GPL-2.0-or-later
"""Statistics of one arm's samples as mmtests defines them, and the percentages beside them (docs/statistics.md, Summary rows).

Pure. Facts and formulas are those of mmtests (Stat.pm, Summarise.pm, Compare.pm); where it has a number for what is undefined,
there is None here.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from typing import NamedTuple

HIGHER, LOWER = "higher", "lower"
BEST_PERCENT = 95
Values = Sequence[float]


class Statistic(NamedTuple):
    """A row's name, its formula, and which direction of it is better."""

    name: str
    of: Callable[[Values], float | None]
    better: str


def amean(values: Values) -> float | None:
    """Arithmetic mean; None of nothing."""
    return _finite(statistics.fmean, values) if values else None


def hmean(values: Values) -> float | None:
    """Harmonic mean, n / sum(1/x): the mean of rates over equal work. None of nothing, and where a value is not positive."""
    return _finite(statistics.harmonic_mean, values) if values and min(values) > 0 else None


def stddev(values: Values) -> float | None:
    """Standard deviation of a sample: around the arithmetic mean, over n - 1. None of fewer than two."""
    return _finite(statistics.stdev, values) if len(values) > 1 else None


def coeffvar(values: Values) -> float | None:
    """Coefficient of variation: stddev() in percent of the arithmetic mean. None where that mean is not positive."""
    mean, spread = amean(values), stddev(values)
    return None if mean is None or spread is None or mean <= 0 else 100 * spread / mean


def best(values: Values, better: str) -> list[float]:
    """The best 95 % of ``values``, best first: their count is rounded down, and is one at least."""
    count = max(1, len(values) * BEST_PERCENT // 100)
    return sorted(values, reverse=better == HIGHER)[:count]


def improvement(baseline: float | None, patched: float | None, better: str) -> float | None:
    """Change in percent of ``baseline``, positive where patched is better. None where the baseline is no positive number."""
    if baseline is None or patched is None:
        return None
    if baseline == patched:
        return 0.0
    if baseline <= 0:
        return None
    percent = 100 * (patched / baseline) - 100
    return percent if better == HIGHER else -percent


def rows_for(better: str) -> tuple[Statistic, ...]:
    """The rows of a table, in order. Rates (higher is better) have harmonic means, all else arithmetic ones."""
    letter, mean = ("H", hmean) if better == HIGHER else ("A", amean)
    return (
        Statistic(f"{letter}mean", mean, better),
        Statistic("Min", lambda values: min(values, default=None), better),
        Statistic("Max", lambda values: max(values, default=None), better),
        Statistic("Stddev", stddev, LOWER),
        Statistic("CoeffVar", coeffvar, LOWER),
        Statistic(f"B{letter}mean-{BEST_PERCENT}", lambda values: mean(best(values, better)), better),
    )


def _finite(formula: Callable[[Values], float], values: Values) -> float | None:
    """None where the figure is beyond what a float holds."""
    try:
        result = formula(values)
    except OverflowError:
        return None
    return result if math.isfinite(result) else None
