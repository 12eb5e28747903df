# SPDX-License-Identifier: GPL-2.0-or-later
"""The signed-rank test, its estimate and its interval: by hand, against scipy, by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from kpatch_ci.stats.signedrank import (
    Floats,
    interval,
    median,
    p_value,
    rank_of_end,
    rejections,
    smallest_p,
    units_needed,
    walsh,
)

DIFFERENCES = st.lists(st.floats(-2, 2), min_size=1, max_size=12)
SMALL = st.lists(st.integers(-3, 3), min_size=2, max_size=9).filter(any)


def ends(d: Floats, confidence: float = 0.95) -> tuple[float, float] | None:
    return interval(walsh(d), len(d), confidence)


def test_known_values_by_hand() -> None:
    # Ranks 1 2 3, all positive: 6 or 0 is reached by 2 of 8 patterns.
    assert p_value(np.array([1.0, 2.0, 3.0])) == 2 / 8
    # The smallest negative: rank sum 5 or more by {2,3} and {1,2,3}, and as many below: 4 of 8.
    assert p_value(np.array([-1.0, 2.0, 4.0])) == 4 / 8
    assert p_value(np.array([0.0, 0.0])) == 1.0
    assert p_value(np.array([5.0])) == 1.0


def test_ties_share_their_mean_rank_by_hand() -> None:
    # Ranks 1.5, 1.5, 3 and signs + - +: 4.5. Sums of the 8 patterns: 0 1.5 1.5 3 3 4.5 4.5 6; 3 are 4.5 or more.
    assert p_value(np.array([1.0, -1.0, 2.0])) == 6 / 8


def test_zeros_take_a_rank_and_no_side_by_hand() -> None:
    # 0 0 1 2 -3: ranks 3, 4, 5 flip. Positive: 7 of 12. Sums: 0 3 4 5 7 8 9 12; 7 or more: 4 of 8. Twice that: 1.
    assert p_value(np.array([0.0, 0.0, 1.0, 2.0, -3.0])) == 1.0
    # Ten equal boots, two that differ: no more than 2 of 4 patterns can be as extreme, whatever the number of boots.
    assert p_value(np.array([0.0] * 10 + [1.0, 2.0])) == 0.5


@pytest.mark.parametrize("n", [3, 7, 12, 25])
def test_without_ties_it_is_wilcoxon_s_exact_test_of_scipy(n: int) -> None:
    d = np.random.default_rng(n).normal(0.4, 1, size=n)
    assert p_value(d) == pytest.approx(stats.wilcoxon(d, method="exact").pvalue)


@given(SMALL)
def test_with_ties_and_zeros_it_is_scipy_s_permutation_test_of_the_same_ranks(values: list[int]) -> None:
    d = np.array(values, dtype=float)
    ranks = stats.rankdata(np.abs(d))

    def rank_sum(x: Floats, axis: int = -1) -> Floats:
        total: Floats = np.sum(np.sign(x) * ranks, axis=axis)
        return total

    theirs = stats.permutation_test(
        (d,), rank_sum, permutation_type="samples", n_resamples=np.inf, vectorized=True, alternative="two-sided"
    )
    assert p_value(d) == pytest.approx(theirs.pvalue)


def test_the_statistic_counts_positive_walsh_averages() -> None:
    d = np.random.default_rng(2).normal(0.3, 1, size=11)
    ranks = stats.rankdata(np.abs(d))
    assert int((walsh(d) > 0).sum()) == int(ranks[d > 0].sum())


def test_equal_differences_give_the_smallest_p_in_spite_of_rounding() -> None:
    assert p_value(np.full(12, 0.1)) == 2 / 2**12 == smallest_p(12)
    # 0.1 + 0.2 is not 0.3: a tie all the same, so the negative one shares rank 1.5 with it.
    assert p_value(np.array([0.1 + 0.2, -0.3, 0.7])) == p_value(np.array([3.0, -3.0, 7.0]))


@given(DIFFERENCES)
def test_p_is_a_probability_and_no_smaller_than_the_smallest(differences: list[float]) -> None:
    p = p_value(np.array(differences))
    assert smallest_p(len(differences)) <= p <= 1
    assert p_value(-np.array(differences)) == p


def test_hodges_and_lehmann_s_estimate_by_hand() -> None:
    assert median(walsh(np.array([1.0, 2.0, 6.0]))) == 2.75  # of 1 1.5 2 3.5 4 6
    assert median(walsh(np.array([1.0, 2.0]))) == 1.5
    assert median(walsh(np.array([4.0]))) == 4.0


def test_with_six_pairs_the_95_percent_interval_is_their_range() -> None:
    d = np.array([0.3, -0.1, 0.5, 0.2, 0.9, 0.4])
    assert ends(d) == pytest.approx((-0.1, 0.9))
    assert ends(d[:5]) is None


def test_ranks_of_the_ends_are_those_of_the_usual_table() -> None:
    # Critical values of the signed rank at two-sided 0.05 are 0 2 3 5 8 10 13 for n = 6..12; the end is one further.
    assert [rank_of_end(n, 0.95) - 1 for n in range(6, 13)] == [0, 2, 3, 5, 8, 10, 13]
    # At two-sided 0.01: 0 1 3 5 7 for n = 8..12; `rejections` counts from none.
    assert [rejections(n, 0.01) - 1 for n in range(8, 13)] == [0, 1, 3, 5, 7]
    assert rejections(7, 0.01) == 0


@pytest.mark.parametrize("n", [6, 8, 11, 20])
def test_the_interval_holds_exactly_the_shifts_that_the_test_does_not_reject(n: int) -> None:
    d = np.random.default_rng(n).normal(0.2, 1, size=n)
    found = ends(d)
    assert found is not None
    low, high = found
    for inside in (low + 1e-6, high - 1e-6, median(walsh(d))):
        assert p_value(d - inside) > 0.05
    for outside in (low - 1e-6, high + 1e-6):
        assert p_value(d - outside) <= 0.05


def test_one_wild_boot_does_not_carry_estimate_or_interval_away() -> None:
    d = np.random.default_rng(4).normal(0.02, 0.01, size=12)
    wild = np.append(d[:11], 5.0)
    assert median(walsh(wild)) == pytest.approx(median(walsh(d)), abs=0.005)
    found = ends(wild)
    assert found is not None
    assert found[1] < 0.1


def test_large_samples_are_exact_and_near_the_normal_approximation() -> None:
    d = np.random.default_rng(5).normal(0.1, 1, size=200)
    assert p_value(d) == pytest.approx(stats.wilcoxon(d, method="approx").pvalue, abs=0.002)
    assert p_value(np.ones(1000)) == pytest.approx(2.0**-999, rel=1e-9)


def test_units_needed_for_an_alpha() -> None:
    assert [units_needed(a) for a in (0.5, 0.05, 0.01)] == [3, 6, 8]
    assert units_needed(0.05, tests=3) == 7


def test_false_positives_stay_at_alpha() -> None:
    rng = np.random.default_rng(11)
    trials = 2000
    hits = sum(p_value(rng.normal(size=8)) <= 0.05 for _ in range(trials))
    # Rank sums 0 to 3 by 1, 1, 1 and 2 patterns, and as many above: 10 of 256, so 3.9 %.
    assert stats.binomtest(hits, trials, 10 / 256).pvalue > 0.001


def test_the_interval_covers_as_often_as_it_says() -> None:
    rng = np.random.default_rng(12)
    trials, shift = 2000, 0.7
    covered = 0
    for _ in range(trials):
        found = ends(shift + rng.normal(size=8))
        covered += found is not None and found[0] <= shift <= found[1]
    assert stats.binomtest(covered, trials, 246 / 256).pvalue > 0.001


def test_what_no_rank_reaches_is_no_rejection() -> None:
    assert rejections(5, 0.05) == 0
    assert math.isclose(smallest_p(5), 0.0625)
