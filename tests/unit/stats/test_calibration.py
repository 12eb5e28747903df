# SPDX-License-Identifier: GPL-2.0-or-later
"""Trials from made-up pools: a known rate of false positives, a known power, and figures by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest

from kpatch_ci.model.status import Mode, Status, Verdict
from kpatch_ci.model.workload import Metric, Replicate, Seed
from kpatch_ci.stats import calibration as c
from tests.fakes.pools import PLAN, Arm, arm

TIME = Metric("time", "s", "lower")
METRICS = {"hackbench": (TIME,)}


def seeds(n: int) -> list[Seed]:
    return [Seed(boot, 1) for boot in range(1, n + 1)]


def rates(rows: list[c.FalsePositives], kind: str) -> Mapping[float, c.Rate]:
    return {row.alpha: row.significant for row in rows if row.kind == kind}


def test_a_rate_has_clopper_and_pearsons_interval() -> None:
    # Tables: 5 of 500 is 0.33 % to 2.32 %; none of 10 is 0 to 1 - 0.025^(1/10).
    assert c.Rate(5, 500).interval() == pytest.approx((0.003251, 0.023179), abs=1e-5)
    assert c.Rate(0, 10).interval() == pytest.approx((0, 1 - 0.025 ** (1 / 10)))
    assert c.Rate(10, 10).interval() == pytest.approx((0.025 ** (1 / 10), 1))
    assert c.Rate(5, 500).share == 0.01


def test_a_spread_of_0_77_percent_finds_one_percent_with_ten_seeds() -> None:
    # t(0.975, 9) = 2.262, t(0.95, 9) = 1.833.
    assert c.detectable(0.77, 10) == pytest.approx((2.2622 + 1.8331) * 0.77 / math.sqrt(10), rel=1e-4)
    assert c.detectable(0.77, 10) == pytest.approx(1.0, abs=0.005)
    assert c.detectable(0.77, 1) == math.inf
    assert c.expected_power(c.detectable(0.77, 10), 0.77, 10, 0.05) == pytest.approx(0.95, abs=0.01)
    assert c.expected_power(1, 0, 10, 0.05) == 1


def test_draws_are_without_replacement_and_always_the_same() -> None:
    drawn = c.draw(seeds(12), 10, 50)
    assert all(len(set(one)) == 10 for one in drawn)
    assert drawn == c.draw(seeds(12), 10, 50)
    assert drawn != c.draw(seeds(12), 10, 50, stream=1)
    assert len(set(drawn)) > 40


def test_equal_arms_have_the_nominal_rate_of_false_positives() -> None:
    """A pool so large that the trials hardly share a seed: 600 trials, binomial bounds of four standard errors."""
    trials = c.layout_trials((arm(1, 2000), arm(2, 2000)), (PLAN,), METRICS, c.draw(seeds(2000), 10, 600))
    found = c.false_positives(trials, METRICS)
    primary = rates(found, c.PRIMARY)
    assert (primary[0.05].trials, primary[0.01].trials) == (600, 600)
    assert 0.05 - 4 * math.sqrt(0.05 * 0.95 / 600) < primary[0.05].share < 0.05 + 4 * math.sqrt(0.05 * 0.95 / 600)
    assert primary[0.01].share < 0.01 + 4 * math.sqrt(0.01 * 0.99 / 600)
    # Cases and counters are adjusted within their workload: fewer still.
    assert rates(found, c.COUNTER)[0.05].trials == 2 * 600
    assert rates(found, c.FIGURE)[0.05].share < primary[0.05].share


def test_arms_that_differ_are_false_positives_of_every_trial() -> None:
    trials = c.layout_trials((arm(1, 40), arm(2, 40, slower=5)), (PLAN,), METRICS, c.draw(seeds(40), 10, 20))
    primary = next(row for row in c.false_positives(trials, METRICS) if row.kind == c.PRIMARY and row.alpha == 0.01)
    assert (primary.significant.hits, primary.verdicts.hits) == (20, 20)


def test_what_is_below_the_threshold_is_significant_and_has_no_verdict() -> None:
    trials = c.layout_trials(
        (arm(1, 40, spread=0.01), arm(2, 40, spread=0.01, slower=0.3)), (PLAN,), METRICS, c.draw(seeds(40), 10, 5)
    )
    primary = next(row for row in c.false_positives(trials, METRICS) if row.kind == c.PRIMARY)
    assert (primary.significant.hits, primary.verdicts.hits) == (5, 0)


def test_halves_of_one_pool_are_apart_and_paired_by_chance() -> None:
    one = arm(3, 200)
    drawn = c.draw(seeds(200), 20, 300)
    trials = c.split_trials(one, (PLAN,), METRICS, drawn)
    first = trials[0][0]
    assert first.seeds == tuple(sorted(drawn[0][:10]))
    whole = {key[2]: r.samples["time"] for key, r in c.together(one, PLAN, TIME).items()}
    of = dict(zip(drawn[0][:10], drawn[0][10:], strict=True))
    assert first.baseline == tuple(pytest.approx(whole[seed]) for seed in first.seeds)
    assert first.patched == tuple(pytest.approx(whole[of[seed]]) for seed in first.seeds)
    primary = rates(c.false_positives(trials, METRICS), c.PRIMARY)
    assert primary[0.05].share < 0.05 + 4 * math.sqrt(0.05 * 0.95 / 300)


def test_the_primary_figure_alone_is_that_of_the_whole_comparison() -> None:
    arms = (arm(1, 12), arm(2, 12, slower=1))
    whole = c.layout_trials(arms, (PLAN,), METRICS, [seeds(12)])[0][0]
    alone = c.primary_alone(arms, PLAN, TIME)
    assert alone.change_percent == pytest.approx(whole.change_percent)
    assert alone.ci_percent == pytest.approx(whole.ci_percent)
    assert (alone.p_value, alone.verdict, alone.primary) == (whole.p_value, whole.verdict, True)


def test_power_is_that_of_the_t_test_but_for_the_test_s_own_loss() -> None:
    """Effects of 1 % that spread by 0.77 %: of ten seeds nineteen of twenty trials find it (t); the test of ranks loses a few."""
    spread = 0.77  # of a case in each arm: two cases make it 1/sqrt(2), two arms sqrt(2) again
    arms = (arm(1, 3000, spread=spread), arm(2, 3000, spread=spread, slower=1))
    found = c.power(arms, PLAN, TIME, c.draw(seeds(3000), 10, 400), level_percent=1.0, alpha=0.05)
    assert found.seeds == 10
    assert found.expected == pytest.approx(0.95, abs=0.02)
    assert 0.88 < found.significant.share <= 0.99
    assert found.regressed.share <= found.significant.share
    few = c.power(arms, PLAN, TIME, c.draw(seeds(3000), 5, 50), level_percent=1.0, alpha=0.05)
    assert few.significant.hits == 0  # five pairs have no p below 0.0625


def test_an_improvement_is_no_slow_down_found() -> None:
    arms = (arm(1, 40), arm(2, 40, slower=-5))
    found = c.power(arms, PLAN, TIME, c.draw(seeds(40), 10, 10), level_percent=1.0, alpha=0.05)
    assert (found.significant.hits, found.regressed.hits) == (0, 0)


def test_noise_by_hand() -> None:
    times = ((1.0, 1.01), (1.02, 1.0), (0.98, 1.0))
    arms: tuple[Arm, Arm] = ({}, {})
    for boot, pair in enumerate(times, 1):
        for into, time in zip(arms, pair, strict=True):
            for case in PLAN.cases:
                key = ("hackbench", case.label, Seed(boot, 1))
                into[key] = Replicate(*key, Status.PASSED, Mode.DETERMINISTIC, {"time": time, "migrations": 0})
    rows = c.noise(arms, PLAN, (TIME,), 10)
    logs = [100 * math.log(b / a) for a, b in times]
    mean = sum(logs) / 3
    spread = math.sqrt(sum((x - mean) ** 2 for x in logs) / 2)
    # Counters that are not there, or are zero, have no row.
    assert [(r.case, r.metric) for r in rows] == [("all", "time"), ("groups=1", "time"), ("groups=4", "time")]
    assert all(r.spread_percent == pytest.approx(spread) and r.n == 3 for r in rows)
    assert rows[1].cv_percent == pytest.approx(2.0)
    assert rows[1].detectable_percent == pytest.approx(c.detectable(spread, 10))


def test_a_replicate_that_failed_is_in_no_figure() -> None:
    broken = arm(1, 12)
    key = ("hackbench", "groups=1", Seed(3, 1))
    broken[key] = Replicate(*key, Status.FAILED, Mode.DETERMINISTIC, reason="crashed")
    assert Seed(3, 1) not in {k[2] for k in c.together(broken, PLAN, TIME)}
    assert len(c.primary_effects((broken, arm(2, 12)), PLAN, TIME)) == 11
    assert c.primary_alone((broken, arm(2, 12)), PLAN, TIME).verdict is not Verdict.ERROR
