# SPDX-License-Identifier: GPL-2.0-or-later
"""The rule of the verdict and its sentence."""

from __future__ import annotations

import pytest

from kpatch_ci.model.status import Verdict
from kpatch_ci.stats.paired import Estimate, estimate
from kpatch_ci.stats.verdict import Thresholds, decide

T = Thresholds()
SPREAD = (-0.002, 0.001, 0.003, -0.001, 0.002, 0.0005, -0.0015, 0.001)


def of(percent: float, n: int = 8) -> Estimate:
    spread = SPREAD[:n]
    return estimate([100.0] * n, [100 + percent + 100 * s for s in spread], "higher")


def test_significant_and_beyond_the_threshold_is_improved_or_regressed() -> None:
    assert decide(of(5), 0.01, T, 1.0)[0] is Verdict.IMPROVED
    verdict, reason = decide(of(-5), 0.01, T, 1.0, tests=3)
    assert verdict is Verdict.REGRESSED
    assert "worse" in reason
    assert "Holm over 3 tests" in reason


def test_an_interval_within_the_threshold_is_no_change_even_where_significant() -> None:
    assert decide(of(0.4), 0.001, T, 1.0)[0] is Verdict.NO_CHANGE


def test_no_change_says_what_would_have_been_found() -> None:
    _, reason = decide(of(0.1), 0.5, T, 1.0, mde=1.27)
    assert reason.endswith("within the threshold of 1 %; would have found a change of 1.3 % or more in four of five")
    assert "a change of 124 % or more" in decide(of(0.1), 0.5, T, 1.0, mde=123.7)[1]


def test_an_interval_across_the_threshold_is_inconclusive() -> None:
    verdict, reason = decide(of(0.9), 0.001, T, 1.0)
    assert verdict is Verdict.INCONCLUSIVE
    assert "below the threshold of 1 %" in reason
    assert decide(of(5), 0.05, T, 1.0)[0] is Verdict.INCONCLUSIVE


def test_the_threshold_itself_counts_as_reached() -> None:
    e = estimate([1.0] * 6, [2.0] * 6, "higher")
    assert decide(e, 0.03, T, e.change_percent)[0] is Verdict.IMPROVED
    assert decide(e, 0.03, T, e.change_percent + 0.1)[0] is Verdict.NO_CHANGE


def test_three_boots_are_too_few_for_alpha_and_the_reason_says_how_many_are_needed() -> None:
    e = estimate([1.0, 1.0, 1.0], [2.0, 2.1, 2.2], "higher")
    verdict, reason = decide(e, e.p_value, T, 1.0)
    assert verdict is Verdict.INCONCLUSIVE
    assert "3 boots cannot give p below 0.25; alpha 0.05 needs 6 boots or more" in reason
    assert "needs 7 boots or more" in decide(e, 0.75, T, 1.0, tests=3)[1]


def test_three_boots_can_show_that_nothing_changed() -> None:
    verdict, reason = decide(of(0.1, n=3), 0.25, T, 1.0)
    assert verdict is Verdict.NO_CHANGE
    assert reason.endswith("; 3 boots could not have shown one: that needs 6 boots or more")


def test_one_boot_is_inconclusive_even_where_equal() -> None:
    verdict, reason = decide(estimate([1.0], [1.0], "higher"), 1.0, T, 1.0)
    assert verdict is Verdict.INCONCLUSIVE
    assert "no interval from one boot" in reason


def test_equal_boots_are_no_change_even_under_a_threshold_of_zero() -> None:
    verdict, reason = decide(estimate([1.0] * 6, [1.0] * 6, "higher"), 1.0, T, 0.0)
    assert (verdict, reason) == (Verdict.NO_CHANGE, "all 6 boots are equal")


def test_thresholds_that_are_no_probabilities_are_refused() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        Thresholds(alpha=5)
