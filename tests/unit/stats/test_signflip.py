# SPDX-License-Identifier: GPL-2.0-or-later
"""The sign-flip test and its interval: by hand, against scipy, by simulation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from kpatch_ci.stats.signflip import EXACT_UP_TO, SAMPLES, interval, p_value, pairs_needed, smallest_p

DIFFERENCES = st.lists(st.floats(-2, 2), min_size=1, max_size=12)


def test_known_values_by_hand() -> None:
    # Sums of +-1 +-2 +-3: |6| twice of 8.
    assert p_value(np.array([1.0, 2.0, 3.0])) == 2 / 8
    # +-1 +-2 +-4 reach |5| by (1,4,any 2): -1+2+4=5, 1-2-4=-5, and |7| twice: 4 of 8.
    assert p_value(np.array([-1.0, 2.0, 4.0])) == 4 / 8
    assert p_value(np.array([0.0, 0.0])) == 1.0
    assert p_value(np.array([5.0])) == 1.0


def test_it_agrees_with_the_permutation_test_of_scipy() -> None:
    d = np.random.default_rng(3).normal(0.4, 1, size=9)
    theirs = stats.permutation_test((d,), np.sum, permutation_type="samples", n_resamples=np.inf)
    assert p_value(d) == pytest.approx(theirs.pvalue)


def test_equal_differences_give_the_smallest_p_in_spite_of_rounding() -> None:
    assert p_value(np.full(12, 0.1)) == 2 / 2**12 == smallest_p(12)


def test_ties_in_sums_count_in_spite_of_rounding() -> None:
    # 0.1 + 0.2 and 0.3 differ in floating point: the pattern that swaps them is a tie, not a smaller sum.
    d = np.array([0.3, -0.1, -0.2, 0.7])
    exact = [
        abs(sum(s * v for s, v in zip(signs, (3, -1, -2, 7), strict=True)))
        for signs in itertools.product((1, -1), repeat=4)
    ]
    assert p_value(d) == sum(v >= 7 for v in exact) / 16


@given(DIFFERENCES)
def test_p_is_a_probability_and_no_smaller_than_the_smallest(differences: list[float]) -> None:
    p = p_value(np.array(differences))
    assert smallest_p(len(differences)) <= p <= 1
    assert p_value(-np.array(differences)) == p


def test_with_six_pairs_the_95_percent_interval_is_their_range() -> None:
    d = np.array([0.3, -0.1, 0.5, 0.2, 0.9, 0.4])
    assert interval(d, 0.95) == pytest.approx((-0.1, 0.9))
    assert interval(d[:5], 0.95) is None


@pytest.mark.parametrize("n", [6, 8, 11])
def test_the_interval_holds_exactly_the_shifts_that_the_test_does_not_reject(n: int) -> None:
    d = np.random.default_rng(n).normal(0.2, 1, size=n)
    ends = interval(d, 0.95)
    assert ends is not None
    low, high = ends
    for inside in (low + 1e-6, high - 1e-6, float(d.mean())):
        assert p_value(d - inside) > 0.05
    for outside in (low - 1e-6, high + 1e-6):
        assert p_value(d - outside) <= 0.05


def test_beyond_sixteen_pairs_flips_are_sampled_and_repeat() -> None:
    d = np.random.default_rng(5).normal(0.1, 1, size=EXACT_UP_TO + 4)
    assert p_value(d) == p_value(d.copy())
    assert p_value(d) == pytest.approx(stats.ttest_1samp(d, 0).pvalue, abs=0.02)
    assert p_value(np.ones(20)) == pytest.approx(1 / (1 + SAMPLES), rel=0.2)
    ends, theirs = interval(d, 0.95), stats.ttest_1samp(d, 0).confidence_interval(0.95)
    assert ends == pytest.approx((theirs.low, theirs.high), abs=0.1)


def test_pairs_needed_for_an_alpha() -> None:
    assert [pairs_needed(a) for a in (0.5, 0.05, 0.01)] == [3, 6, 8]
    assert pairs_needed(0.05, tests=3) == 7


def test_false_positives_stay_at_alpha() -> None:
    rng = np.random.default_rng(11)
    trials = 2000
    hits = sum(p_value(rng.normal(size=8)) <= 0.05 for _ in range(trials))
    # Exact test: 12 of 256 patterns, so 4.69 %.
    assert stats.binomtest(hits, trials, 12 / 256).pvalue > 0.001


def test_the_interval_covers_as_often_as_it_says() -> None:
    rng = np.random.default_rng(12)
    trials, shift = 2000, 0.7
    covered = 0
    for _ in range(trials):
        ends = interval(shift + rng.normal(size=8), 0.95)
        covered += ends is not None and ends[0] <= shift <= ends[1]
    # k = floor(.025 * 256) = 6 subset means are cut on each side: 244 of 256.
    assert stats.binomtest(covered, trials, 244 / 256).pvalue > 0.001
