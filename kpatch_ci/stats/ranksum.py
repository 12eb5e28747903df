# SPDX-License-Identifier: GPL-2.0-or-later
"""The rank-sum test of two independent samples (Wilcoxon 1945; Mann and Whitney 1947), and the shifts that it does not reject.

Up to 25 a sample the test is exact, ties included: its null distribution is that of the rank sum over all ways to deal
the observed (mid-)ranks to the arms, counted by the shift algorithm (B. Streitberg, J. Roehmel, Comput. Stat. Quart. 1
(1986) 23-27). The normal approximation is not used there: with ties and few samples it gives p below what any deal can.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]

EXACT_UP_TO = 25
"""Samples in the larger arm up to which all deals are counted: C(50, 25) is still a whole number to a float."""


def is_exact(m: int, n: int) -> bool:
    """Whether samples of these sizes are tested exactly."""
    return max(m, n) <= EXACT_UP_TO


@lru_cache(maxsize=256)
def _deals(ranks: tuple[int, ...], size: int) -> Floats:
    """``[s]``: in how many ways ``size`` of the ranks (whole numbers) sum to s."""
    largest = sum(sorted(ranks)[len(ranks) - size :])
    ways = np.zeros((size + 1, largest + 1))
    ways[0, 0] = 1
    for rank in ranks:
        ways[1:, rank:] += ways[:-1, : largest + 1 - rank].copy()
    counts: Floats = ways[size]
    counts.setflags(write=False)
    return counts


def p_value(a: Floats, b: Floats) -> float:
    """Two-sided p that both samples (one value or more each) come from one distribution, in (0, 1].

    Exact: twice the smaller tail of the rank sum, at most 1. Larger samples: the normal approximation, with corrections for
    ties and continuity.
    """
    m, n = len(a), len(b)
    if not is_exact(m, n):
        p = float(stats.mannwhitneyu(a, b, alternative="two-sided", method="asymptotic").pvalue)
        return p if 0 < p <= 1 else 1.0  # no spread at all: 0/0
    doubled = np.rint(2 * stats.rankdata(np.concatenate((a, b)))).astype(int)  # mid-ranks are halves
    deals = _deals(tuple(sorted(doubled.tolist())), m)
    total = int(doubled[:m].sum())
    tail = min(deals[: total + 1].sum(), deals[total:].sum())
    return min(1.0, 2 * float(tail) / math.comb(m + n, m))


def rank_of_end(m: int, n: int, confidence: float) -> int:
    """k: the k-th smallest and k-th largest of the m n pairwise differences are the ends of the interval; 0: there is none.

    The largest k with P(U < k) <= (1 - confidence)/2, U the Mann-Whitney statistic under no ties (E. L. Lehmann,
    Ann. Math. Statist. 34 (1963) 1507-1512). With ties the closed interval covers at least as often (G. E. Noether,
    J. Amer. Statist. Assoc. 62 (1967) 184-188).
    """
    tail = (1 - confidence) / 2
    if not is_exact(m, n):
        spread = math.sqrt(m * n * (m + n + 1) / 12)
        return max(0, math.floor(m * n / 2 - float(stats.norm.ppf(1 - tail)) * spread))
    counts = _deals(tuple(range(1, m + n + 1)), m)[m * (m + 1) // 2 :]
    # The small addend keeps a tail that is exactly reached from being missed by rounding.
    return int(np.searchsorted(np.cumsum(counts), (tail + 1e-12) * math.comb(m + n, m), side="right"))


def rejections(m: int, n: int, alpha: float) -> int:
    """How many of the values 0, 1, 2... of U (one tail, no ties, exact) have a two-sided p below alpha."""
    counts = _deals(tuple(range(1, m + n + 1)), m)[m * (m + 1) // 2 :]
    return int(np.searchsorted(2 * np.cumsum(counts), alpha * (1 - 1e-12) * math.comb(m + n, m), side="left"))


def smallest_p(m: int, n: int) -> float:
    """The smallest p that arms of m and n samples can give: all of one below all of the other."""
    return min(1.0, 2 / math.comb(m + n, m))


def samples_needed(alpha: float, tests: int = 1) -> int:
    """Fewest samples in each arm whose smallest p, times ``tests`` (Holm's first step), is below alpha."""
    n = 1
    while smallest_p(n, n) * tests >= alpha:
        n += 1
    return n
