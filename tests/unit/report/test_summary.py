# SPDX-License-Identifier: GPL-2.0-or-later
"""mmtests' statistics: by hand, and against scipy and numpy."""

from __future__ import annotations

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from kpatch_ci.report.summary import amean, best, coeffvar, hmean, improvement, rows_for, stddev

POSITIVE = st.lists(st.floats(1e-3, 1e6), min_size=2, max_size=40)


def test_means_by_hand() -> None:
    assert amean([1.0, 2.0, 6.0]) == 3.0
    assert hmean([1.0, 2.0, 2.0]) == 1.5
    assert hmean([40.0, 60.0]) == pytest.approx(48.0)


def test_the_spread_is_a_samples_not_a_populations() -> None:
    assert stddev([2.0, 4.0]) == pytest.approx(2**0.5)
    assert stddev([1.0, 2.0, 3.0, 4.0, 5.0]) == pytest.approx(2.5**0.5)
    assert coeffvar([1.0, 2.0, 3.0, 4.0, 5.0]) == pytest.approx(100 * 2.5**0.5 / 3)


@pytest.mark.parametrize(("n", "kept"), [(1, 1), (2, 1), (3, 2), (12, 11), (19, 18), (20, 19), (21, 19), (40, 38)])
def test_the_best_95_percent_are_rounded_down_but_one_at_least(n: int, kept: int) -> None:
    values = [float(v) for v in range(1, n + 1)]
    assert best(values, "lower") == values[:kept]
    assert best(values, "higher") == values[::-1][:kept]


def test_a_table_of_times_and_one_of_rates_by_hand() -> None:
    values = [4.0, 1.0, 2.0]
    assert [(r.name, r.of(values)) for r in rows_for("lower")] == [
        ("Amean", pytest.approx(7 / 3)),
        ("Min", 1.0),
        ("Max", 4.0),
        ("Stddev", pytest.approx((7 / 3) ** 0.5)),
        ("CoeffVar", pytest.approx(100 * (7 / 3) ** 0.5 / (7 / 3))),
        ("BAmean-95", 1.5),
    ]
    rates = {r.name: r.of(values) for r in rows_for("higher")}
    assert list(rates) == ["Hmean", "Min", "Max", "Stddev", "CoeffVar", "BHmean-95"]
    assert rates["Hmean"] == pytest.approx(3 / 1.75)
    assert rates["BHmean-95"] == pytest.approx(2 / 0.75)
    assert rates["Stddev"] == pytest.approx((7 / 3) ** 0.5)


@pytest.mark.parametrize(
    ("baseline", "patched", "better", "percent"),
    [
        (0.8033, 0.7107, "lower", 11.5274),
        (392.92, 1024.22, "higher", 160.669),
        (2.0, 4.0, "lower", -100.0),
        (4.0, 2.0, "higher", -50.0),
        (3.0, 3.0, "lower", 0.0),
        (0.0, 0.0, "higher", 0.0),
        (5.0, 0.0, "higher", -100.0),
        (5.0, 0.0, "lower", 100.0),
    ],
)
def test_percentages_are_of_the_baseline_and_positive_where_patched_is_better(
    baseline: float, patched: float, better: str, percent: float
) -> None:
    assert improvement(baseline, patched, better) == pytest.approx(percent, abs=1e-3)


def test_a_smaller_spread_is_better_whatever_the_metric() -> None:
    for better in ("higher", "lower"):
        assert [r.better for r in rows_for(better) if r.name in ("Stddev", "CoeffVar")] == ["lower", "lower"]
        assert [r.better for r in rows_for(better) if r.name in ("Min", "Max")] == [better, better]


def test_what_is_undefined_is_none() -> None:
    assert amean([]) is None
    assert hmean([]) is None
    assert hmean([1.0, 0.0]) is None
    assert hmean([1.0, -2.0]) is None
    assert stddev([1.0]) is None
    assert coeffvar([0.0, 0.0]) is None
    assert amean([1e308, 1e308]) is None
    assert [r.of([]) for r in rows_for("lower")] == [None] * 6
    assert improvement(None, 1.0, "lower") is None
    assert improvement(1.0, None, "lower") is None
    assert improvement(0.0, 1.0, "lower") is None


@given(POSITIVE)
def test_formulas_agree_with_scipy_and_numpy(values: list[float]) -> None:
    assert amean(values) == pytest.approx(numpy.mean(values))
    assert hmean(values) == pytest.approx(stats.hmean(values))
    assert stddev(values) == pytest.approx(numpy.std(values, ddof=1), rel=1e-6, abs=1e-6)
    assert coeffvar(values) == pytest.approx(100 * stats.variation(values, ddof=1), rel=1e-6, abs=1e-6)
