# SPDX-License-Identifier: GPL-2.0-or-later
"""Pairs of samples to a change with its interval."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpatch_ci.stats.paired import DIFFERENCE, LOG_RATIO, estimate, from_log_ratios

PAIRS = st.lists(st.tuples(st.floats(0.5, 2), st.floats(0.5, 2)), min_size=1, max_size=9)
COUNTS = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=9)
BETTER = st.sampled_from(["lower", "higher"])


def test_the_change_is_the_median_of_the_walsh_averages_by_hand() -> None:
    # d = 0, .02, .10: averages 0, .01, .02, .05, .06, .10; the two in the middle are .02 and .05.
    e = from_log_ratios([0.10, 0.0, 0.02], "higher")
    assert e.change_percent == pytest.approx(100 * math.expm1(0.035))
    # One wild pair moves it little: averages of 0, 0, 0, 0, 1 are ten 0, four .5 and one 1.
    assert from_log_ratios([0.0, 0.0, 1.0, 0.0, 0.0], "lower").change_percent == 0


def test_runs_of_a_boot_are_averaged_and_every_boot_weighs_the_same() -> None:
    # Boot 7: .1 and .3; boot 9: .4. Averages of .2 and .4: .2, .3, .4.
    e = from_log_ratios([0.1, 0.4, 0.3], "higher", boots=[7, 9, 7])
    assert e.effects == pytest.approx((0.2, 0.4))
    assert e.pairs == (0.1, 0.4, 0.3)
    assert e.change_percent == pytest.approx(100 * math.expm1(0.3))
    assert (e.n, e.counted, e.p_value) == (2, "2 boots", 0.5)
    with pytest.raises(ValueError, match="3 pairs of 2 boots"):
        from_log_ratios([0.1, 0.4, 0.3], "higher", boots=[7, 7])


def test_two_pairs_change_by_the_ratio_of_geometric_means() -> None:
    e = estimate([100, 400], [110, 440], "higher")
    assert e.change_percent == pytest.approx(10)
    # Time: geometric mean sqrt(2 * 8) = 4 against sqrt(1 * 4) = 2: half the time, 50 % better; the other way 100 % worse.
    assert estimate([2, 8], [1, 4], "lower").change_percent == pytest.approx(50)
    assert estimate([1, 4], [2, 8], "lower").change_percent == pytest.approx(-100)


def test_student_s_interval_below_six_pairs_by_hand() -> None:
    # d = 0, .1, .2: mean .1, s = .1, t(.975, 2) = 4.302653, half width = 4.302653 * .1 / sqrt(3) = .248414.
    e = from_log_ratios([0.0, 0.1, 0.2], "higher")
    assert e.ci_method == "Student t of log ratios"
    assert e.ci_percent == pytest.approx((100 * math.expm1(-0.148414), 100 * math.expm1(0.348414)), rel=1e-4)


def test_six_pairs_get_the_exact_interval() -> None:
    e = estimate([1.0] * 6, [1.01, 1.02, 1.03, 1.04, 1.05, 1.06], "higher")
    assert e.ci_method == "Hodges-Lehmann (exact signed rank) of log ratios"
    assert e.ci_percent == pytest.approx((1.0, 6.0))
    assert e.p_value == 2 / 64


def test_where_the_confidence_is_too_high_for_the_pairs_student_steps_in() -> None:
    assert (
        estimate([1.0] * 6, [1.01, 1.02, 1.03, 1.04, 1.05, 1.06], "higher", 0.99).ci_method == "Student t of log ratios"
    )


def test_five_boots_have_an_exact_interval_at_a_confidence_that_they_can_give() -> None:
    e = estimate([1.0] * 5, [1.01, 1.02, 1.03, 1.04, 1.05], "higher", 0.9)
    assert e.ci_method == "Hodges-Lehmann (exact signed rank) of log ratios"
    assert e.ci_percent == pytest.approx((1.0, 5.0))


def test_more_than_sixteen_pairs_are_exact_too() -> None:
    e = estimate([1.0] * 20, [1.1] * 20, "higher")
    assert (e.ci_method, e.notes) == ("Hodges-Lehmann (exact signed rank) of log ratios", ())
    assert e.p_value == 2.0**-19


def test_one_pair_has_no_interval_and_p_one() -> None:
    e = estimate([1], [2], "higher")
    assert e.change_percent == pytest.approx(100)
    assert (e.ci_percent, e.ci_method, e.p_value) == (None, "none", 1.0)


def test_equal_arms_have_no_change_and_an_interval_of_zero_width() -> None:
    for n in (2, 6, 12):
        e = estimate([3.7] * n, [3.7] * n, "lower")
        assert (e.change_percent, e.ci_percent, e.p_value) == (0, (0, 0), 1)


def test_zero_spread_that_is_not_zero_collapses_the_interval() -> None:
    e = estimate([2.0] * 12, [2.5] * 12, "higher")
    assert e.p_value == 2 / 2**12
    assert e.ci_percent == pytest.approx((25, 25))


def test_counts_that_are_all_zero_do_not_change() -> None:
    e = estimate([0] * 6, [0] * 6, "lower")
    assert (e.change_percent, e.ci_percent, e.p_value, e.notes) == (0, (0, 0), 1, ())


def test_zero_on_one_side_is_compared_by_differences_and_says_so() -> None:
    gone = estimate([700, 710, 690, 705, 695, 700], [0] * 6, "lower")
    assert gone.scale == DIFFERENCE
    assert gone.change_percent == pytest.approx(100)
    assert gone.reference == 700  # the middle of its Walsh averages
    assert gone.ci_method == "Hodges-Lehmann (exact signed rank) of differences"
    assert "zeros" in gone.notes[0]
    assert estimate([0] * 6, [700] * 6, "lower").change_percent == pytest.approx(-100)


def test_what_makes_no_pairs_is_refused() -> None:
    for b, p, better in (
        ([], [], "lower"),
        ([1], [1, 2], "lower"),
        ([1], [-1], "lower"),
        ([1], [math.nan], "lower"),
        ([1], [1], "up"),
    ):
        with pytest.raises(ValueError, match=r"pairs|finite|better"):
            estimate(b, p, better)


@given(PAIRS, BETTER)
def test_swapping_the_arms_mirrors_change_and_interval(pairs: list[tuple[float, float]], better: str) -> None:
    b, p = zip(*pairs, strict=True)
    one, other = estimate(b, p, better), estimate(p, b, better)
    sign = 1 if better == "higher" else -1

    def log(change: float) -> float:
        return sign * math.log1p(sign * change / 100)

    assert log(one.change_percent) == pytest.approx(-log(other.change_percent), abs=1e-9)
    assert one.p_value == other.p_value
    if len(pairs) >= 6:
        assert one.ci_percent is not None
        assert other.ci_percent is not None
        assert log(one.ci_percent[0]) == pytest.approx(-log(other.ci_percent[1]), abs=1e-9)


@given(PAIRS, st.floats(1e-3, 1e3))
def test_the_unit_does_not_matter(pairs: list[tuple[float, float]], scale: float) -> None:
    b, p = zip(*pairs, strict=True)
    one, other = estimate(b, p, "higher"), estimate([v * scale for v in b], [v * scale for v in p], "higher")
    assert other.scale == LOG_RATIO
    assert other.change_percent == pytest.approx(one.change_percent, abs=1e-6)
    assert other.ci_method == one.ci_method


@given(COUNTS, BETTER)
def test_no_result_is_nan_or_infinite(pairs: list[tuple[int, int]], better: str) -> None:
    b, p = zip(*pairs, strict=True)
    e = estimate(b, p, better)
    assert all(math.isfinite(v) for v in (e.change_percent, *(e.ci_percent or ()), *e.effects))
    assert 0 < e.p_value <= 1
    assert e.scale == LOG_RATIO or abs(e.change_percent) <= 100 + 1e-9
    if e.ci_percent:
        assert e.ci_percent[0] - 1e-9 <= e.change_percent <= e.ci_percent[1] + 1e-9


def test_enormous_ratios_stay_finite() -> None:
    e = estimate([1e-300, 1e300], [1e300, 1e-300], "higher")
    assert e.ci_percent is not None
    assert all(math.isfinite(v) for v in e.ci_percent)
