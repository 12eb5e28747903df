# SPDX-License-Identifier: GPL-2.0-or-later
"""The rank-sum test: by hand where that is possible, against scipy's where not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from kpatch_ci.stats.ranksum import EXACT_UP_TO, is_exact, p_value, rank_of_end, samples_needed, smallest_p


def p(a: list[float], b: list[float]) -> float:
    return p_value(np.array(a, dtype=float), np.array(b, dtype=float))


@pytest.mark.parametrize(
    ("a", "b", "by_hand"),
    [
        ([1, 2, 3], [4, 5, 6], 2 / 20),
        ([4, 5, 6], [1, 2, 3], 2 / 20),
        ([1, 2], [3, 4], 2 / 6),
        ([1], [2], 1.0),
        ([1], [2, 3, 4], 2 / 4),
        ([1, 1, 1], [1, 1], 1.0),
        # Doubled ranks 2, 6, 6, 6, 10, 12: the sum 14 of the first arm is the least, and 3 deals of 20 have it.
        ([1, 2, 2], [2, 3, 4], 2 * 3 / 20),
        # U = 1 of 4 and 4: two deals of 70.
        ([1, 2, 3, 5], [4, 6, 7, 8], 2 * 2 / 70),
    ],
)
def test_small_samples_by_hand(a: list[float], b: list[float], by_hand: float) -> None:
    assert p(a, b) == pytest.approx(by_hand, rel=1e-12)


def test_ties_give_no_p_below_what_any_deal_can() -> None:
    a, b = [1.0, 1.0, 1.0], [2.0, 2.0, 2.0]
    normal = stats.mannwhitneyu(a, b, method="asymptotic").pvalue
    assert normal < 0.05  # what the normal approximation makes of three against three
    assert p(a, b) == pytest.approx(0.1)


@pytest.mark.parametrize(("m", "n"), [(4, 4), (3, 7), (12, 12), (25, 24)])
def test_without_ties_it_is_scipys_exact_test(m: int, n: int) -> None:
    rng = np.random.default_rng(m * 100 + n)
    for _ in range(20):
        a, b = rng.normal(size=m), rng.normal(0.5, size=n)
        assert p_value(a, b) == pytest.approx(stats.mannwhitneyu(a, b, method="exact").pvalue, rel=1e-9)


def test_with_ties_it_is_the_permutation_test_of_the_rank_sum() -> None:
    rng = np.random.default_rng(7)
    for _ in range(10):
        a, b = rng.integers(0, 4, size=5).astype(float), rng.integers(0, 5, size=4).astype(float)
        ranks = stats.rankdata(np.concatenate((a, b)))
        found = stats.permutation_test(
            (ranks[:5], ranks[5:]), lambda x, _y, axis=0: np.sum(x, axis=axis), vectorized=True, n_resamples=np.inf
        )
        assert p_value(a, b) == pytest.approx(min(1.0, found.pvalue), rel=1e-9)


def test_beyond_25_it_is_scipys_asymptotic_test() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=EXACT_UP_TO + 1), rng.normal(0.7, size=10)
    assert not is_exact(len(a), len(b))
    assert p_value(a, b) == pytest.approx(stats.mannwhitneyu(a, b, method="asymptotic").pvalue)
    assert p([1.0] * 30, [1.0] * 30) == 1.0


@pytest.mark.parametrize(
    ("m", "n", "k"),
    # One more than the critical values of U (two-sided 5 %) in the usual tables; 3 and 3 have none.
    [(3, 3, 0), (4, 4, 1), (5, 5, 3), (8, 8, 14), (10, 10, 24), (12, 12, 38), (20, 20, 128), (5, 8, 7)],
)
def test_the_intervals_ends_are_those_of_the_tables(m: int, n: int, k: int) -> None:
    assert rank_of_end(m, n, 0.95) == k
    assert rank_of_end(n, m, 0.95) == k


def test_exact_and_asymptotic_ends_agree_where_they_meet() -> None:
    exact = rank_of_end(EXACT_UP_TO, EXACT_UP_TO, 0.95)
    assert exact == 212  # the tables: 211
    assert 0 < rank_of_end(EXACT_UP_TO + 1, EXACT_UP_TO, 0.95) - exact < 15


def test_what_few_samples_can_give() -> None:
    assert [round(smallest_p(n, n), 4) for n in (1, 2, 3, 4)] == [1.0, 0.3333, 0.1, 0.0286]
    assert smallest_p(2, 3) == 0.2
    assert [samples_needed(0.05, tests) for tests in (1, 2, 3)] == [4, 5, 5]
    assert smallest_p(5, 5) * 3 < 0.05 <= smallest_p(4, 4) * 2
