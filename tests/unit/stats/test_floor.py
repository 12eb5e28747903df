# SPDX-License-Identifier: GPL-2.0-or-later
"""Few migrations more or less are no change, however many percent they are; many are one, down to none at all."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kpatch_ci.model.comparison import Comparison
from kpatch_ci.model.status import Mode, Status, Verdict
from kpatch_ci.model.workload import Case, Metric, Replicate, Seed, WorkloadPlan
from kpatch_ci.stats import Replicates, Thresholds, compare_arch, estimate
from kpatch_ci.stats.floor import migration_floor

SEEDS = [Seed(boot, 1) for boot in range(1, 13)]
PLAN = WorkloadPlan("dd-dsync", "dd", (Case((("fs", "xfs"),)), Case((("fs", "ext4"),))), threshold_percent=1.0)
METRICS = {"dd": (Metric("throughput", "MB/s", "higher"),)}


def arm(migrations: Sequence[float], switches: float | None = 3060.0) -> Replicates:
    counted = {} if switches is None else {"context_switches": switches}
    return {
        (PLAN.name, case.label, seed): Replicate(
            PLAN.name,
            case.label,
            seed,
            Status.PASSED,
            Mode.DETERMINISTIC,
            {"throughput": 14.4, **counted, "migrations": value, "wakeups": 1530.0},
        )
        for case in PLAN.cases
        for seed, value in zip(SEEDS, migrations, strict=True)
    }


def migrations(before: Sequence[float], after: Sequence[float], switches: float | None = 3060.0) -> Comparison:
    found = compare_arch(arm(before, switches), arm(after, switches), [PLAN], METRICS, Thresholds())
    return next(c for c in found if (c.case, c.metric) == ("fs=xfs", "migrations"))


def test_from_many_to_none_is_all_of_it_and_certain() -> None:
    c = migrations([305, 306, 307, 305] * 3, [0] * 12)
    assert c.change_percent == pytest.approx(100)
    assert c.ci_percent == pytest.approx((100, 100), abs=0.4)
    assert c.p_adjusted == pytest.approx(8 * 2 / 2**12)
    assert c.verdict is Verdict.IMPROVED


def test_from_many_to_few_is_nearly_all_of_it() -> None:
    c = migrations([305, 306, 307, 305] * 3, [5, 2, 8, 11] * 3)
    assert c.change_percent == pytest.approx(98.2, abs=0.1)
    assert c.verdict is Verdict.IMPROVED


def test_from_none_to_many_is_a_regression() -> None:
    c = migrations([0] * 12, [305] * 12)
    assert c.change_percent == pytest.approx(-100)
    assert c.verdict is Verdict.REGRESSED


def test_none_in_both_arms_is_no_change() -> None:
    c = migrations([0] * 12, [0] * 12)
    assert (c.change_percent, c.p_value, c.verdict) == (0, 1, Verdict.NO_CHANGE)


@pytest.mark.parametrize(
    ("before", "after"), [([1.0] * 12, [3.0] * 12), ([3.0] * 12, [1.0] * 12), ([0, 1, 0, 2] * 3, [8, 6, 8, 5] * 3)]
)
def test_a_few_more_or_less_are_no_change_though_certain(before: list[float], after: list[float]) -> None:
    c = migrations(before, after)
    assert c.p_adjusted is not None
    assert c.p_adjusted < 0.01
    assert c.change_percent is not None
    assert abs(c.change_percent) > 60
    assert c.verdict is Verdict.NO_CHANGE
    assert "within the threshold of 15.3 migrations a run (5 per 1000 switches)" in c.reason


def test_just_above_the_floor_is_a_change() -> None:
    assert migrations([20.0] * 12, [36.0] * 12).verdict is Verdict.REGRESSED
    assert migrations([20.0] * 12, [35.0] * 12).verdict is Verdict.NO_CHANGE


def test_a_run_of_few_switches_has_a_floor_too() -> None:
    c = migrations([1.0] * 12, [5.0] * 12, switches=144.0)
    assert c.verdict is Verdict.NO_CHANGE
    assert "threshold of 5 migrations a run" in c.reason
    assert "per 1000" not in c.reason
    assert migrations([1.0] * 12, [7.0] * 12, switches=144.0).verdict is Verdict.REGRESSED


def test_without_counted_switches_the_floor_is_five_a_run() -> None:
    assert migrations([1.0] * 12, [3.0] * 12, switches=None).verdict is Verdict.NO_CHANGE
    assert migrations([1.0] * 12, [30.0] * 12, switches=None).verdict is Verdict.REGRESSED


def test_a_change_across_the_floor_is_inconclusive() -> None:
    c = migrations([1.0] * 12, [30.0, 2.0] * 6)
    assert c.verdict is Verdict.INCONCLUSIVE
    assert "threshold of 15.3 migrations" in c.reason


def test_where_tasks_migrate_much_the_percentage_rules() -> None:
    assert migrations([2000.0] * 12, [1970.0] * 12, switches=20_000).verdict is Verdict.NO_CHANGE
    assert migrations([20_000.0] * 12, [19_790.0] * 12, switches=20_000).verdict is Verdict.IMPROVED


def test_other_counters_have_no_floor() -> None:
    found = compare_arch(arm([0] * 12, switches=3.0), arm([0] * 12, switches=1.0), [PLAN], METRICS, Thresholds())
    assert [c.verdict for c in found if c.metric == "context_switches"] == [Verdict.IMPROVED] * 2


def test_the_floor_is_in_percent_of_what_the_change_is() -> None:
    pairs = {SEEDS[0]: (10.0, 20.0), SEEDS[1]: (40.0, 80.0)}
    switches = {SEEDS[0]: (3000.0, 1.0), SEEDS[1]: (5000.0, 1.0)}
    found = migration_floor(estimate([10, 40], [20, 80], "lower"), pairs, switches)
    assert found.percent == pytest.approx(100 * 20 / 20)
    pairs = {SEEDS[0]: (0.0, 20.0), SEEDS[1]: (40.0, 80.0)}
    found = migration_floor(estimate([0, 40], [20, 80], "lower"), pairs, switches)
    assert found.percent == pytest.approx(100 * 20 / 50)
