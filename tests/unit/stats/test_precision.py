# SPDX-License-Identifier: GPL-2.0-or-later
"""Precision on demand: what is too wide, how many boots come next, what is said of it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from kpatch_ci.model.comparison import Comparison
from kpatch_ci.model.workload import Seed
from kpatch_ci.stats.paired import from_log_ratios
from kpatch_ci.stats.precision import Precision, half_width, next_boots, stricter, told, too_wide
from kpatch_ci.stats.verdict import Thresholds
from tests.fakes.results import comparison

HALF = Precision(0.5, most=48)


def primary(low: float, high: float, boots: int = 12, workload: str = "hackbench") -> Comparison:
    seeds = tuple(Seed(boot, 1) for boot in range(1, boots + 1))
    values = (1.0,) * boots
    made = comparison(workload, case="all", primary=True, seeds=seeds, baseline=values, patched=values)
    return replace(made, change_percent=(low + high) / 2, ci_percent=(low, high))


def test_the_width_is_half_of_the_interval_wherever_it_lies() -> None:
    assert half_width(primary(7.0, 8.0)) == 0.5
    assert half_width(replace(primary(0, 0), ci_percent=None)) == math.inf
    assert half_width(replace(primary(-0.1, 0.1, 3), ci_method="Student t of log ratios")) == math.inf
    assert half_width(replace(primary(0, 0), ci_percent=None, change_percent=None)) is None


def test_primary_figures_alone_are_looked_at_and_never_their_p() -> None:
    wide, narrow = primary(-1, 1), primary(4.6, 5.5, workload="dd")
    case = replace(primary(-9, 9, workload="dbench"), primary=False)
    assert too_wide([wide, narrow, case], HALF) == {"hackbench": 1.0}
    for p in (0.0001, 1.0):
        assert too_wide([replace(wide, p_value=p, p_adjusted=p)], HALF) == {"hackbench": 1.0}


def test_what_gave_nothing_to_compare_is_not_waited_for() -> None:
    assert too_wide([replace(primary(0, 0), ci_percent=None, change_percent=None)], HALF) == {}


@pytest.mark.parametrize(
    ("boots", "widest", "most", "expected"),
    [
        (12, 0.6, 48, 18),  # 12 (0.6 / 0.5)^2 = 17.3
        (12, 0.51, 48, 16),  # at least four more
        (12, 5.0, 48, 24),  # at most twice as many
        (24, 5.0, 30, 30),  # and never beyond the cap
        (1, math.inf, 48, 5),
    ],
)
def test_the_next_round_is_as_large_as_the_width_makes_likely(
    boots: int, widest: float, most: int, expected: int
) -> None:
    assert next_boots(boots, widest, Precision(0.5, most)) == expected


def test_what_was_reached_is_said() -> None:
    assert told(primary(-0.4, 0.5, 24), HALF) == "±0.5 % asked for, ±0.45 % reached with 24 boots"
    assert told(primary(-1, 1, 48), HALF) == "±0.5 % asked for, ±1 % at the cap of 48 boots"
    lost = told(primary(-1, 1, 7), HALF)
    assert lost == "±0.5 % asked for, ±1 % with 7 boots, and more gave no more to compare"
    assert "no exact interval" in told(replace(primary(0, 0, 1), ci_percent=None), HALF)


def test_stopping_on_width_keeps_the_false_positives_at_alpha() -> None:
    rng = np.random.default_rng(8)
    trials, hits, covered, asked = 2500, 0, 0, Precision(0.45, most=48)
    sizes, level = set(), stricter(Thresholds())
    for _ in range(trials):
        noise, boots = rng.normal(0, 0.01, size=48), 12
        while True:
            made = from_log_ratios(noise[:boots], "higher", level.confidence)
            assert made.ci_percent is not None
            width = (made.ci_percent[1] - made.ci_percent[0]) / 2
            if width <= asked.percent or boots == asked.most:
                break
            boots = next_boots(boots, width, asked)
        sizes.add(boots)
        hits += made.p_value < level.alpha
        covered += made.ci_percent[0] <= 0 <= made.ci_percent[1]
    assert len(sizes) > 5
    # At most 125 in the long run, 11 its standard deviation; far fewer would be a test that was made too strict.
    assert 60 <= hits <= 150
    assert covered >= 0.94 * trials


def test_the_level_is_divided_and_readable() -> None:
    assert stricter(Thresholds()) == Thresholds(alpha=0.033, confidence=0.967)
    assert stricter(Thresholds(0.01, 0.99)) == Thresholds(alpha=0.0066, confidence=0.9934)
