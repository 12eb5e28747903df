# SPDX-License-Identifier: GPL-2.0-or-later
"""The signed-rank test of paired differences (Wilcoxon 1945), Hodges and Lehmann's estimate, and the shifts that the test does not reject.

All three look at the n (n + 1) / 2 Walsh averages (d_i + d_j) / 2, i <= j: the statistic counts those above 0 (J. W. Tukey,
1949), the estimate is their median (J. L. Hodges, E. L. Lehmann, Ann. Math. Statist. 34 (1963) 598-611), the interval's ends
are two of them. Under "the patch changes nothing" each difference is as likely to have come out with the other sign; nothing
else is assumed. The null distribution counts all 2^n sign patterns of the observed ranks, ties and zeros too, with the
shift algorithm (B. Streitberg, J. Roehmel, Comput. Stat. Quart. 1 (1986) 23-27): exact for any n.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_TIE = 1e-10
"""Values closer than this share of the largest are ties: their order would be rounding's, not the data's."""
_ZERO = 1e-12
"""Differences below it are none."""


@lru_cache(maxsize=1024)
def _distribution(doubled: tuple[int, ...]) -> Floats:
    """``[s]``: chance that the doubled ranks whose sign comes out positive sum to s."""
    chances = np.ones(1)
    for rank in doubled:
        wider = np.zeros(len(chances) + rank)
        wider[: len(chances)] = chances
        wider[rank:] += chances
        chances = wider / 2
    chances.setflags(write=False)
    return chances


def _doubled_ranks(sizes: Floats) -> NDArray[np.int64]:
    """Twice the mid-ranks of ``sizes`` (none negative), whole numbers."""
    order = np.argsort(sizes, kind="stable")
    sorted_sizes = sizes[order]
    tie = max(_ZERO, _TIE * float(sorted_sizes[-1]))
    starts = np.flatnonzero(np.concatenate(([True], np.diff(sorted_sizes) > tie)))
    ends = np.append(starts[1:], len(sizes))
    ranks = np.empty(len(sizes), dtype=np.int64)
    ranks[order] = np.repeat(starts + ends + 1, ends - starts)
    return ranks


def p_value(differences: Floats) -> float:
    """Two-sided p of ``differences`` (n >= 1), in (0, 1]: the share of sign patterns whose rank sum is as far from its mean.

    Equal sizes share their mean rank. A zero has a rank and no sign (J. W. Pratt, J. Amer. Statist. Assoc. 54 (1959)
    655-667), so it makes no pattern more extreme: n equal arms give 1.
    """
    sizes = np.abs(differences)
    ranks = _doubled_ranks(sizes)
    there = sizes > max(_ZERO, _TIE * float(sizes.max()))
    chances = _distribution(tuple(sorted(ranks[there].tolist())))
    total = int(ranks[there & (differences > 0)].sum())
    smaller = min(total, len(chances) - 1 - total)
    return min(1.0, 2 * float(chances[: smaller + 1].sum()))


def walsh(differences: Floats) -> Floats:
    """The n (n + 1) / 2 averages of two (the same or not), in order."""
    return np.sort(unsorted_walsh(differences))


def unsorted_walsh(differences: Floats) -> Floats:
    """The averages of each row of ``differences``, in no order."""
    first, second = _index(differences.shape[-1])
    averages: Floats = (differences[..., first] + differences[..., second]) / 2
    return averages


@lru_cache(maxsize=64)
def _index(n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    first, second = np.triu_indices(n)
    return first, second


@lru_cache(maxsize=256)
def rank_of_end(n: int, confidence: float) -> int:
    """k: the k-th smallest and k-th largest Walsh averages are the ends of the interval; 0: there is none.

    The largest k with P(T < k) <= (1 - confidence)/2, T the rank sum without ties (Hollander, Wolfe and Chicken,
    Nonparametric Statistical Methods, 3rd ed., section 3.3). With ties the closed interval covers at least as often.
    """
    below = np.cumsum(_distribution(tuple(range(2, 2 * n + 1, 2)))[::2])
    # The small addend keeps a tail that is exactly reached from being missed by rounding.
    return int(np.searchsorted(below, (1 - confidence) / 2 + 1e-12, side="right"))


def interval(averages: Floats, n: int, confidence: float) -> tuple[float, float] | None:
    """The shifts that the test does not reject at 1 - confidence, from ``walsh()``; None where n are too few to reject any."""
    k = rank_of_end(n, confidence)
    return (float(averages[k - 1]), float(averages[-k])) if k else None


@lru_cache(maxsize=256)
def rejections(n: int, alpha: float) -> int:
    """How many of the rank sums 0, 1, 2... (one tail, no ties) have a two-sided p below alpha."""
    below = np.cumsum(_distribution(tuple(range(2, 2 * n + 1, 2)))[::2])
    return int(np.searchsorted(2 * below, alpha * (1 - 1e-12), side="left"))


def smallest_p(n: int) -> float:
    """The smallest p that n differences can give."""
    return min(1.0, 2.0 ** (1 - n))


def units_needed(alpha: float, tests: int = 1) -> int:
    """Fewest differences whose smallest p, times ``tests`` (Holm's first step), is below alpha."""
    return next(n for n in range(1, 1100) if smallest_p(n) * tests < alpha)


def median(averages: Floats) -> float:
    """Hodges and Lehmann's estimate, from ``walsh()``."""
    half = len(averages) // 2
    return float(averages[half]) if len(averages) % 2 else math.fsum(averages[half - 1 : half + 1]) / 2
