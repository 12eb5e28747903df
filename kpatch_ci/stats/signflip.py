# SPDX-License-Identifier: GPL-2.0-or-later
"""The sign-flip (one-sample permutation) test of paired differences, and the interval that inverts it.

Under "the patch changes nothing" each difference is as likely to have come out with the other sign, so the observed sum
is one of 2^n equally likely ones (R. A. Fisher, The Design of Experiments, 1935, section 21; E. L. Lehmann and
J. P. Romano, Testing Statistical Hypotheses, 3rd ed., section 5.10). Nothing is assumed of the differences' distribution but
its symmetry.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

EXACT_UP_TO = 16
"""Pairs up to which all 2^n flips are counted."""
SAMPLES = 1 << 14
"""Flips that are drawn beyond; each is used with its complement, which has the same |sum|."""
_SEED = 0x6B706369
_TIE = 1e-10
"""Sums closer than this share of sum |d| are ties: their order would be rounding's, not the data's."""


@lru_cache(maxsize=8)
def _drawn(n: int) -> Floats:
    """Rows of 0 and 1: the fixed sample of subsets of n pairs, neither empty nor full."""
    rows = np.random.default_rng(_SEED).integers(0, 2, size=(SAMPLES, n)).astype(np.float64)
    rows = rows[rows.any(axis=1) & ~rows.all(axis=1)]
    rows.setflags(write=False)
    return rows


@lru_cache(maxsize=64)
def _sizes(n: int) -> Floats:
    """How many pairs each subset has, in the order of _sums."""
    sizes = _sums(np.ones(n))
    sizes.setflags(write=False)
    return sizes


def _sums(differences: Floats) -> Floats:
    """Sum of ``differences`` over each of the 2^n - 1 subsets that are not empty, or over the sample and its complements.

    The full set is the last of them.
    """
    if len(differences) > EXACT_UP_TO:
        # einsum, not BLAS: its threads cost more than the product where the cores are busy.
        drawn = np.einsum("ij,j->i", _drawn(len(differences)), differences)
        total = differences.sum()
        return np.concatenate((drawn, total - drawn, [total]))
    sums = np.zeros(1)
    for difference in differences:
        sums = np.concatenate((sums, sums + difference))
    return sums[1:]


def p_value(differences: Floats) -> float:
    """Two-sided p of the sum of ``differences`` (n >= 1), in (0, 1].

    Exact up to 16 pairs: the share of the 2^n sign patterns whose |sum| is no smaller than the observed one. Beyond:
    (1 + hits) / (1 + samples) over a fixed sample (B. Phipson, G. K. Smyth, Stat. Appl. Genet. Mol. Biol. 9 (2010) 39).
    """
    sums = _sums(differences)
    total = float(sums[-1])
    flipped = np.abs(total - 2 * sums)
    hits = int(np.count_nonzero(flipped >= abs(total) - _TIE * float(np.abs(differences).sum())))
    return (1 + hits) / (1 + len(flipped))


def interval(differences: Floats, confidence: float) -> tuple[float, float] | None:
    """The shifts that the test does not reject at 1 - confidence; None where there are too few pairs for any rejection.

    Flipping the pairs in S leaves sum(d - t) above the observed one exactly where mean(d over S) < t: the p of a shift t is
    a count of subset means below t, so the ends are order statistics of the 2^n - 1 subset means (J. A. Hartigan,
    J. Amer. Statist. Assoc. 64 (1969) 1303-1317). Beyond 16 pairs: of a fixed sample of subsets and their complements.
    """
    sizes = _sizes(len(differences))
    # The small addend keeps 0.05 / 2 * 2^n whole where it is whole but for rounding.
    k = math.floor((1 - confidence) / 2 * (len(sizes) + 1) + 1e-9)
    if k < 1:
        return None
    means = _sums(differences) / sizes
    ends = np.partition(means, (k - 1, len(means) - k))
    return float(ends[k - 1]), float(ends[len(means) - k])


def smallest_p(n: int) -> float:
    """The smallest p that n pairs can give."""
    return 2.0 ** (1 - n) if n <= EXACT_UP_TO else 1 / (1 + SAMPLES)


def pairs_needed(alpha: float, tests: int = 1) -> int:
    """Fewest pairs whose smallest p, times ``tests`` (Holm's first step), is below alpha."""
    return next((n for n in range(1, EXACT_UP_TO + 1) if smallest_p(n) * tests < alpha), EXACT_UP_TO + 1)
