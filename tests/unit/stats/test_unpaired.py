# SPDX-License-Identifier: GPL-2.0-or-later
"""Unpaired comparison: change, interval and verdict, with values by hand and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from kpatch_ci.model.status import Verdict
from kpatch_ci.stats.unpaired import estimate, from_logs
from kpatch_ci.stats.verdict import Thresholds, decide

T = Thresholds()


def test_the_change_is_the_median_of_all_ratios() -> None:
    # 2/1, 8/1, 2/2, 8/2: the median of 1, 2, 4, 8 is that of their logarithms, sqrt(8).
    assert estimate([1, 2], [2, 8], "higher").change_percent == pytest.approx(100 * (math.sqrt(8) - 1))
    assert estimate([1, 2], [2, 8], "lower").change_percent == pytest.approx(100 * (1 - math.sqrt(8)))
    assert estimate([4, 4, 4], [2, 2, 2], "lower").change_percent == pytest.approx(50)


def test_the_order_of_samples_does_not_matter() -> None:
    assert estimate([1, 2, 3, 4], [5, 2, 9, 1], "lower") == estimate([4, 1, 3, 2], [1, 9, 5, 2], "lower")


def test_four_and_four_have_the_range_of_all_ratios_as_their_interval() -> None:
    found = estimate([1, 1, 1, 1], [2, 2, 2, 4], "higher")
    assert found.ci_method == "Hodges-Lehmann (exact rank sum) of log ratios"
    assert found.ci_percent == pytest.approx((100, 300))
    assert found.notes == ()
    assert found.p_value == pytest.approx(2 / 70)


def test_five_and_five_leave_out_two_ratios_at_each_end() -> None:
    logs = np.log([1.0, 1.1, 1.2, 1.3, 1.4]), np.log([2.0, 2.3, 2.6, 2.9, 3.2])
    shifts = np.sort(np.subtract.outer(logs[1], logs[0]), axis=None)
    found = from_logs(*logs, "higher")
    assert found.ci_percent == pytest.approx((100 * math.expm1(shifts[2]), 100 * math.expm1(shifts[-3])))


def test_three_and_three_have_welchs_interval() -> None:
    b, p = np.array([1.0, 1.2, 1.1]), np.array([1.3, 1.6, 1.2])
    wanted = stats.ttest_ind(np.log(p), np.log(b), equal_var=False).confidence_interval(0.95)
    found = estimate(b.tolist(), p.tolist(), "higher")
    assert found.ci_method == "Welch t of log ratios"
    assert found.ci_percent == pytest.approx((100 * math.expm1(wanted.low), 100 * math.expm1(wanted.high)))


def test_one_run_has_no_interval_and_no_evidence() -> None:
    found = estimate([1], [2], "lower")
    assert (found.ci_percent, found.ci_method, found.p_value) == (None, "none", 1.0)
    assert decide(found, 1.0, T, 1.0)[0] is Verdict.INCONCLUSIVE


def test_unequal_numbers_of_runs() -> None:
    found = estimate([10, 11], [20, 21, 22, 23, 24], "lower")
    assert found.arms == (2, 5)
    assert found.p_value == pytest.approx(2 / 21)
    assert found.counted == "2 and 5 runs"


def test_zeros_compare_differences() -> None:
    found = estimate([0, 0, 0, 0], [0, 0, 2, 2], "lower")
    # The larger arm's mean is 1; half of the 16 differences are 0, half are 2.
    assert found.change_percent == pytest.approx(-100)
    assert found.ci_method == "Hodges-Lehmann (exact rank sum) of differences"
    assert any("zeros among the values" in note for note in found.notes)


def test_all_zero_and_all_equal_are_no_change() -> None:
    for value in (0.0, 3.0):
        found = estimate([value] * 4, [value] * 5, "lower")
        assert (found.change_percent, found.ci_percent, found.p_value) == (0.0, (0.0, 0.0), 1.0)
        assert decide(found, 1.0, T, 1.0) == (Verdict.NO_CHANGE, "all 4 and 5 runs are equal")


def test_no_spread_and_a_shift_is_a_change() -> None:
    found = estimate([1.0] * 4, [1.1] * 4, "higher")
    assert found.change_percent == pytest.approx(10)
    assert found.ci_percent == pytest.approx((10, 10))
    assert decide(found, found.p_value, T, 1.0)[0] is Verdict.IMPROVED


def test_what_is_too_few_is_said() -> None:
    found = estimate([1, 1.1, 1.2], [2, 2.1, 2.2], "lower")
    verdict, why = decide(found, min(1.0, found.p_value * 3), T, 1.0, tests=3)
    assert verdict is Verdict.INCONCLUSIVE
    assert why.startswith("3 and 3 runs cannot give p below 0.3 with 3 tests; alpha 0.05 needs 5 an arm or more")


def test_many_runs_are_asymptotic_and_say_so() -> None:
    rng = np.random.default_rng(3)
    found = from_logs(rng.normal(0, 0.1, 40), rng.normal(0.2, 0.1, 40), "higher")
    assert found.notes == ("p and interval from the rank sum's normal approximation",)
    assert found.ci_method == "Hodges-Lehmann (asymptotic rank sum) of log ratios"
    assert found.ci_percent is not None
    assert found.ci_percent[0] < 100 * math.expm1(0.2) < found.ci_percent[1]


@pytest.mark.parametrize(
    ("b", "p", "better"),
    [([], [1], "lower"), ([1], [], "lower"), ([-1], [1], "lower"), ([math.inf], [1], "lower"), ([1], [1], "less")],
)
def test_what_cannot_be_compared_is_refused(b: list[float], p: list[float], better: str) -> None:
    with pytest.raises(ValueError, match=r"each arm|finite|better"):
        estimate(b, p, better)


def test_exchanging_the_arms_negates_the_shift() -> None:
    rng = np.random.default_rng(11)
    b, p = rng.normal(size=6), rng.normal(size=7)
    one, other = from_logs(b, p, "higher"), from_logs(p, b, "higher")
    assert math.log1p(one.change_percent / 100) == pytest.approx(-math.log1p(other.change_percent / 100))
    assert one.p_value == pytest.approx(other.p_value)


@pytest.mark.parametrize("shift", [0.0, 0.1])
def test_false_positives_and_coverage_are_as_promised(shift: float) -> None:
    """400 runs of 8 against 8: the rejections of what is true, and the intervals that miss, are at most 5 % (3 sigma more)."""
    rng = np.random.default_rng(2026)
    rejected = missed = 0
    for _ in range(400):
        b, p = rng.exponential(0.1, 8), rng.exponential(0.1, 8) + shift
        found = from_logs(b, p, "higher")
        assert found.ci_percent is not None
        rejected += from_logs(b, p - shift, "higher").p_value < 0.05
        missed += not found.ci_percent[0] <= 100 * math.expm1(shift) <= found.ci_percent[1]
    most = 400 * 0.05 + 3 * math.sqrt(400 * 0.05 * 0.95)
    assert rejected <= most
    assert missed <= most
    assert rejected + missed > 0
