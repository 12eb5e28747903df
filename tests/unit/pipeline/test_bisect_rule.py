# SPDX-License-Identifier: GPL-2.0-or-later
"""The rule that classifies a measured commit."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpatch_ci.model.bisect import Change, Class
from kpatch_ci.pipeline.bisect import rule


def change(low: float, high: float) -> Change:
    return Change((low + high) / 2, (low, high), 6, 0.99, "t")


def test_half_way_is_the_geometric_mean_of_the_ratio() -> None:
    assert rule.half_way(-100.0, "lower") == pytest.approx(100 * (1 - math.sqrt(2)))  # a time that doubles: x 1.414
    assert rule.half_way(75.0, "lower") == pytest.approx(50.0)  # a time of a quarter: half
    assert rule.half_way(-75.0, "higher") == pytest.approx(-50.0)
    assert rule.half_way(300.0, "higher") == pytest.approx(100.0)


@given(st.floats(-0.99, 3.0), st.sampled_from(["lower", "higher"]))
def test_percent_and_log_ratio_are_each_other_s_inverse(log_ratio: float, better: str) -> None:
    assert rule.to_log(rule.to_percent(log_ratio, better), better) == pytest.approx(log_ratio, abs=1e-9)


@pytest.mark.parametrize(
    ("low", "high", "half", "cls"),
    [
        (-1, 1, -10, Class.GOOD),
        (-25, -15, -10, Class.BAD),
        (-12, -8, -10, None),
        (-10, -5, -10, None),
        (5, 9, -10, Class.GOOD),
        (-1, 1, 10, Class.GOOD),
        (15, 25, 10, Class.BAD),
        (8, 12, 10, None),
        (-30, -20, 10, Class.GOOD),
    ],
)
def test_a_class_needs_the_whole_interval_on_one_side(low: float, high: float, half: float, cls: Class | None) -> None:
    assert rule.side(change(low, high), half) is cls


def test_without_an_interval_nothing_is_decided() -> None:
    blank = Change(-20.0, None, 1, 0.99, "none")
    assert rule.side(blank, -10) is None
    assert not rule.separated(blank)


def test_ends_are_apart_when_zero_is_outside() -> None:
    assert rule.separated(change(0.1, 2))
    assert rule.separated(change(-2, -0.1))
    assert not rule.separated(change(-1, 1))
    assert not rule.separated(change(0, 1))


def test_a_smaller_effect_takes_more_boots_and_no_spread_the_fewest() -> None:
    counts = [rule.boots_needed(effect, 0.02, 6, 200) for effect in (0.4, 0.2, 0.1, 0.05)]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]
    assert rule.boots_needed(0.01, 0.0, 6, 48) == rule.FEWEST
    assert rule.boots_needed(0.001, 0.5, 6, 48) == 24, "half of the most"


def test_boots_needed_leave_room_for_the_interval() -> None:
    """By hand, known spread of many boots: (t + 1.2816) sd / sqrt(n) <= effect / 2."""
    effect, sd = 0.2, 0.03
    count = rule.boots_needed(effect, sd, 10**6, 100)
    from scipy import stats  # noqa: PLC0415

    def reach(n: int) -> float:
        return float((stats.t.ppf((1 + rule.CONFIDENCE) / 2, n - 1) + 1.28155) * sd / math.sqrt(n))

    assert reach(count) <= effect / 2 * 1.002
    assert reach(count - 1) > effect / 2 * 0.998


def test_a_rare_failure_takes_as_many_boots_as_make_missing_it_unlikely() -> None:
    for seen, of in ((6, 6), (3, 6), (1, 6), (1, 48)):
        count = rule.boots_to_see(seen, of, 10_000)
        rate = (seen + 1) / (of + 2)
        assert (1 - rate) ** count <= rule.ERROR < (1 - rate) ** (count - 1)
    assert rule.boots_to_see(1, 48, 48) == 48


def test_looks_double_up_to_the_most() -> None:
    assert rule.next_look(6, 48) == 12
    assert rule.next_look(40, 48) == 48
    assert rule.next_look(48, 48) is None


def test_the_detectable_change_shrinks_with_boots() -> None:
    few, many = rule.detectable_percent(0.02, 6), rule.detectable_percent(0.02, 48)
    assert few is not None
    assert many is not None
    assert few > 2 * many > 0
    assert rule.detectable_percent(0.02, 1) is None


def test_effects_are_positive_where_it_is_better() -> None:
    assert rule.effects([1.0, 2.0], [2.0, 2.0], "lower") == pytest.approx([-math.log(2), 0])
    assert rule.effects([1.0], [2.0], "higher") == pytest.approx([math.log(2)])
    assert rule.spread([1.0]) == 0.0
    numbers = [random.Random(1).gauss(0, 1) for _ in range(50)]  # noqa: S311
    import statistics  # noqa: PLC0415

    assert rule.spread(numbers) == pytest.approx(statistics.stdev(numbers))
