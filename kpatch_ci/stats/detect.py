# SPDX-License-Identifier: GPL-2.0-or-later
"""The minimum detectable effect: the smallest true change that a comparison like the one made finds in four of five.

"Finds" is what the verdict asks for: the test rejects at its adjusted alpha, and the estimate is no smaller than the practical
threshold. Both depend on the samples only through Walsh averages (unpaired: pairwise differences) of noise with standard
deviation 1, which are drawn once for each size from a fixed stream: a shift d is found where d > sigma a and
d >= T + sigma b, with a the noise's average that the test looks at and b its median, both negated. sigma is not known, only
s, its estimate from as many units: so a and b are divided by s / sigma, drawn independently (root of chi-squared over its
degrees of freedom), and the 0.8 quantile of the larger bound is what the next such comparison finds in four of five, s's own
error included. This is the power of the rank test itself, its steps included, under normal noise; beyond 48 units the
usual normal approximation with the rank tests' efficiency 3/pi (J. L. Hodges, E. L. Lehmann, Ann. Math. Statist. 27 (1956)
324-335).
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from kpatch_ci.stats import ranksum, signedrank
from kpatch_ci.stats.paired import LOG_RATIO, Estimate
from kpatch_ci.stats.signedrank import Floats

POWER = 0.8
DRAWN_UP_TO = 48
"""Units (unpaired: runs an arm) up to which the test's own power is drawn."""
DRAWS = 4000
_SEED = 0x6B706369
_ROWS = 250
_MOST_PERCENT = 1e6
Bounds = tuple[Floats, Floats]


def mde_percent(estimate: Estimate, alpha: float, threshold_percent: float) -> float | None:
    """In percent of the baseline, 0 < alpha < 1 already divided by the number of tests; never below the threshold.

    A change in either direction: the larger of the two percentages that one log ratio has. None where so few units cannot
    reject at all, or their spread is not known.
    """
    if estimate.sigma is None or fewest(estimate, alpha) is not None:
        return None
    logs = estimate.scale == LOG_RATIO
    threshold = math.log1p(threshold_percent / 100) if logs else threshold_percent / 100
    of_test, of_estimate = _paired(estimate.n, alpha) if estimate.arms is None else _unpaired(*estimate.arms, alpha)
    needed = np.maximum(estimate.sigma * of_test, threshold + estimate.sigma * of_estimate)
    rank = math.ceil(POWER * len(needed)) - 1
    found = max(threshold, float(np.partition(needed, rank)[rank]))
    return min(_MOST_PERCENT, 100 * (math.expm1(min(found, 100.0)) if logs else found))


def fewest(estimate: Estimate, alpha: float) -> str | None:
    """How many units, in words, ``alpha`` (divided already) needs where these are too few to reject; None where they can."""
    if estimate.arms is None:
        if signedrank.smallest_p(estimate.n) < alpha:
            return None
        return f"{signedrank.units_needed(alpha)} boots or more"
    if ranksum.smallest_p(*estimate.arms) < alpha:
        return None
    return f"{ranksum.samples_needed(alpha)} an arm or more"


@lru_cache(maxsize=256)
def _paired(n: int, alpha: float) -> Bounds:
    """For each draw, what a shift must be beyond for the test to reject, and what the estimate is off by (negated)."""
    if n > DRAWN_UP_TO:
        return _normal(1 / math.sqrt(n), alpha, n - 1)
    end = signedrank.rejections(n, alpha) - 1
    noise = np.random.default_rng(_SEED).normal(size=(DRAWS, n))
    return _ends([signedrank.unsorted_walsh(rows) for rows in np.split(noise, DRAWS // _ROWS)], end, n - 1)


@lru_cache(maxsize=256)
def _unpaired(m: int, n: int, alpha: float) -> Bounds:
    if max(m, n) > min(DRAWN_UP_TO, ranksum.EXACT_UP_TO):
        return _normal(math.sqrt(1 / m + 1 / n), alpha, m + n - 2)
    end = ranksum.rejections(m, n, alpha) - 1
    noise = np.random.default_rng(_SEED).normal(size=(DRAWS, m + n))
    shifts = [
        (rows[:, m:, None] - rows[:, None, :m]).reshape(len(rows), m * n) for rows in np.split(noise, DRAWS // _ROWS)
    ]
    return _ends(shifts, end, m + n - 2)


def _ends(blocks: list[Floats], end: int, freedom: int) -> Bounds:
    """The ``end``-th smallest of each row's values and their median, negated."""
    size = blocks[0].shape[1]
    middle = (size - 1) // 2, size // 2
    ordered = [np.partition(rows, (end, *middle), axis=1) for rows in blocks]
    of_test = np.concatenate([-rows[:, end] for rows in ordered])
    of_estimate = np.concatenate([-(rows[:, middle[0]] + rows[:, middle[1]]) / 2 for rows in ordered])
    return _unsure(of_test, of_estimate, freedom)


def _normal(error: float, alpha: float, freedom: int) -> Bounds:
    """The same for large samples; ``error``: the mean's standard error for noise of standard deviation 1."""
    error *= math.sqrt(math.pi / 3)
    draws = np.array([NormalDist().inv_cdf((i + 0.5) / DRAWS) for i in range(DRAWS)]) * error
    return _unsure(draws + error * NormalDist().inv_cdf(1 - alpha / 2), draws, freedom)


def _unsure(of_test: Floats, of_estimate: Floats, freedom: int) -> Bounds:
    """Both in estimated standard deviations."""
    estimated = np.sqrt(np.random.default_rng(_SEED + 1).chisquare(freedom, DRAWS) / freedom)
    return of_test / estimated, of_estimate / estimated
