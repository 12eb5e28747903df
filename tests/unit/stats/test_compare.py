# SPDX-License-Identifier: GPL-2.0-or-later
"""Replicates of two arms to comparisons."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from kpatch_ci.model.comparison import Comparison
from kpatch_ci.model.status import Mode, Status, Verdict
from kpatch_ci.model.workload import Case, Metric, Replicate, Seed, WorkloadPlan
from kpatch_ci.stats import Thresholds, compare_arch, compare_series

SEEDS = [Seed(boot, 1) for boot in range(1, 13)]
IN_THREE = [Seed(boot, run) for boot in (1, 2, 3) for run in (1, 2, 3, 4)]
"""As many pairs, of three boots."""
CASES = (Case((("groups", 1),)), Case((("groups", 8),)))
PLAN = WorkloadPlan("hackbench", "hackbench", CASES, threshold_percent=1.0)
METRICS = {"hackbench": (Metric("time", "s", "lower"),), "dd": (Metric("throughput", "MB/s", "higher"),)}
T = Thresholds()
Arm = dict[tuple[str, str, Seed], Replicate]
Times = Callable[[Case, Seed], float]


def arm(times: Times, plan: WorkloadPlan = PLAN, seeds: list[Seed] = SEEDS) -> Arm:
    name = METRICS[plan.kind][0].name
    return {
        (plan.name, case.label, seed): Replicate(
            plan.name,
            case.label,
            seed,
            Status.PASSED,
            Mode.DETERMINISTIC,
            {name: times(case, seed), "context_switches": 100.0 + seed.boot, "migrations": 0.0},
        )
        for case in plan.cases
        for seed in seeds
    }


def base(case: Case, seed: Seed) -> float:
    return float(case.get("groups")) * (1 + 0.01 * seed.boot + 0.01 * seed.run)


def better(case: Case, seed: Seed) -> float:
    return base(case, seed) * (0.95 + 0.001 * seed.boot + 0.001 * seed.run)


def fail(replicates: Arm, case: Case, seed: Seed, status: Status = Status.FAILED) -> None:
    key = ("hackbench", case.label, seed)
    replicates[key] = replace(replicates[key], status=status, samples={}, reason="exit status 1")


def one(found: list[Comparison], case: str, metric: str) -> Comparison:
    (comparison,) = [c for c in found if (c.case, c.metric) == (case, metric)]
    return comparison


def test_a_workload_gives_a_primary_then_its_cases_with_their_counters() -> None:
    found = compare_arch(arm(base), arm(better), [PLAN], METRICS, T)
    assert [(c.case, c.metric, c.primary) for c in found] == [
        ("all", "time", True),
        *(
            (case, metric, False)
            for case in ("groups=1", "groups=8")
            for metric in ("time", "context_switches", "migrations", "wakeups")
        ),
    ]
    assert {c.mode for c in found} == {Mode.DETERMINISTIC}


def test_the_primary_is_the_geometric_mean_of_the_paired_ratios_over_cases() -> None:
    def patched(case: Case, seed: Seed) -> float:
        return base(case, seed) / (4 if case.get("groups") == 8 else 1)

    primary = compare_arch(arm(base), arm(patched), [PLAN], METRICS, T)[0]
    # sqrt(1 * 4) = 2: half the time for every seed.
    assert primary.change_percent == pytest.approx(50)
    first = (base(CASES[0], SEEDS[0]) * base(CASES[1], SEEDS[0])) ** 0.5
    assert primary.baseline[0] == pytest.approx(first)
    assert primary.patched[0] == pytest.approx(first / 2)
    assert primary.seeds == tuple(SEEDS)
    assert primary.verdict is Verdict.IMPROVED


def test_pairs_are_made_by_seed_and_not_by_position() -> None:
    backwards = dict(reversed(arm(base).items()))
    found = compare_arch(arm(base), backwards, [PLAN], METRICS, T)
    assert all(c.verdict is Verdict.NO_CHANGE for c in found if c.metric != "wakeups")
    assert one(found, "groups=1", "time").baseline == one(found, "groups=1", "time").patched


def test_a_lost_seed_leaves_its_case_and_the_primary_and_is_named() -> None:
    patched = arm(better)
    fail(patched, CASES[1], SEEDS[5])
    found = compare_arch(arm(base), patched, [PLAN], METRICS, T)
    for c in (found[0], one(found, "groups=8", "time")):
        assert SEEDS[5] not in c.seeds
        assert len(c.seeds) == len(c.baseline) == len(c.patched) == 11
        assert "dropped groups=8 seed 6.1: patched failed (exit status 1)" in c.reason
        assert c.verdict is Verdict.IMPROVED
    assert len(one(found, "groups=1", "time").seeds) == 12


def test_a_seed_that_one_arm_never_ran_is_named_too() -> None:
    baseline = arm(base)
    del baseline["hackbench", "groups=1", SEEDS[0]]
    assert (
        "dropped groups=1 seed 1.1: baseline no run"
        in compare_arch(baseline, arm(better), [PLAN], METRICS, T)[0].reason
    )


@pytest.mark.parametrize(
    ("which", "status", "verdict"),
    [
        ("patched", Status.FAILED, Verdict.FAILED),
        ("patched", Status.ERROR, Verdict.ERROR),
        ("patched", Status.SKIPPED, Verdict.SKIPPED),
        ("baseline", Status.FAILED, Verdict.ERROR),
    ],
)
def test_with_no_pair_left_the_verdict_says_whose_fault_it_is(which: str, status: Status, verdict: Verdict) -> None:
    arms = {"baseline": arm(base), "patched": arm(better)}
    for seed in SEEDS:
        fail(arms[which], CASES[1], seed, status)
    found = compare_arch(arms["baseline"], arms["patched"], [PLAN], METRICS, T)
    for c in (found[0], one(found, "groups=8", "time")):
        assert (c.verdict, c.seeds, c.change_percent, c.p_adjusted) == (verdict, (), None, None)
        assert f"{which} {status}" in c.reason
    assert one(found, "groups=1", "time").verdict is Verdict.IMPROVED


def test_no_runs_at_all_are_an_error() -> None:
    found = compare_arch({}, {}, [PLAN], METRICS, T)
    assert {(c.verdict, c.reason) for c in found} == {(Verdict.ERROR, "no runs to compare")}


def test_unlike_modes_are_not_compared() -> None:
    patched = {key: replace(r, mode=Mode.TCG) for key, r in arm(better).items()}
    found = compare_arch(arm(base), patched, [PLAN], METRICS, T)
    assert {c.verdict for c in found} == {Verdict.ERROR}
    assert "unlike modes are not compared: deterministic, tcg" in found[0].reason


def test_a_counter_that_the_guest_could_not_read_is_an_error_that_says_so() -> None:
    c = one(compare_arch(arm(base), arm(better), [PLAN], METRICS, T), "groups=1", "wakeups")
    assert c.verdict is Verdict.ERROR
    assert "no wakeups" in c.reason


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_a_figure_that_cannot_be_is_dropped_and_named(value: float) -> None:
    patched = arm(lambda case, seed: value if seed == SEEDS[3] else better(case, seed))
    primary = compare_arch(arm(base), patched, [PLAN], METRICS, T)[0]
    assert len(primary.seeds) == 11
    assert f"patched time is {value:g}" in primary.reason


def test_primaries_are_adjusted_together_over_workloads_and_architectures() -> None:
    dd = WorkloadPlan("dd-slow", "dd", CASES, 1.0)
    baseline, patched = arm(base) | arm(base, dd), arm(better) | arm(base, dd)
    alone = compare_arch(baseline, patched, [PLAN, dd], METRICS, T)
    primaries = [c for c in alone if c.primary]
    assert [c.workload for c in primaries] == ["hackbench", "dd-slow"]
    assert [c.p_adjusted for c in primaries] == [2 * 2 / 2**12, 1.0]
    both = compare_series(dict.fromkeys(("arm64", "x86_64"), (baseline, patched)), [PLAN, dd], METRICS, T)
    assert [c.p_adjusted for c in both["x86_64"] if c.primary] == [4 * 2 / 2**12, 1.0]
    assert [c.p_adjusted for c in both["x86_64"] if not c.primary] == [c.p_adjusted for c in alone if not c.primary]


def test_cases_and_counters_are_adjusted_within_their_workload() -> None:
    found = compare_arch(arm(base), arm(better), [PLAN], METRICS, T)
    # Six tests: two times, two context_switches, two migrations (wakeups cannot be tested).
    assert one(found, "groups=8", "time").p_adjusted == pytest.approx(6 * 2 / 2**12)
    assert found[0].p_adjusted == 2 / 2**12


def test_three_boots_never_give_a_significant_verdict() -> None:
    few = SEEDS[:3]
    found = compare_arch(arm(base, seeds=few), arm(better, seeds=few), [PLAN], METRICS, T)
    assert found[0].verdict is Verdict.INCONCLUSIVE
    assert "3 boots cannot give p below 0.25; alpha 0.05 needs 6 boots or more" in found[0].reason
    assert (found[0].boot_variance_share, found[0].mde_percent) == (None, None)
    assert one(found, "groups=1", "migrations").verdict is Verdict.NO_CHANGE


def test_the_test_is_over_boots_however_many_runs_they_have() -> None:
    # Each boot's runs have the same effect: four times as many samples, and not one that is new.
    def patched(case: Case, seed: Seed) -> float:
        return base(case, seed) * (0.95 + 0.001 * seed.boot)

    once = compare_arch(arm(base), arm(patched), [PLAN], METRICS, T)[0]
    often = [Seed(boot, run) for boot in range(1, 13) for run in (1, 2, 3, 4)]
    many = compare_arch(arm(base, seeds=often), arm(patched, seeds=often), [PLAN], METRICS, T)[0]
    assert (len(once.seeds), len(many.seeds), once.units, many.units) == (12, 48, 12, 12)
    for name in ("change_percent", "ci_percent", "p_value", "mde_percent"):
        assert getattr(many, name) == pytest.approx(getattr(once, name)), name


def test_twelve_runs_of_three_boots_are_three_units() -> None:
    found = compare_arch(arm(base, seeds=IN_THREE), arm(better, seeds=IN_THREE), [PLAN], METRICS, T)[0]
    assert (found.units, found.p_value, found.verdict) == (3, 0.25, Verdict.INCONCLUSIVE)
    assert "3 boots cannot give p below 0.25" in found.reason


def test_a_boot_counts_once_though_it_lost_runs() -> None:
    seeds = [Seed(1, run) for run in range(1, 11)] + [Seed(boot, 1) for boot in range(2, 8)]

    def patched(case: Case, seed: Seed) -> float:
        return base(case, seed) * (2 if seed.boot == 1 else 1)

    found = compare_arch(arm(base, seeds=seeds), arm(patched, seeds=seeds), [PLAN], METRICS, T)[0]
    # Ten of sixteen pairs doubled, but one boot of seven: the median of the Walsh averages is that of six that did not change.
    assert (found.units, found.change_percent, found.p_value) == (7, 0, 1)
    assert found.verdict is Verdict.INCONCLUSIVE


def test_the_spread_between_boots_and_within_is_estimated() -> None:
    three = (arm(base, seeds=IN_THREE), arm(lambda c, s: base(c, s) * float(np.exp(-0.01 * s.boot)), seeds=IN_THREE))
    by_boot = compare_arch(*three, [PLAN], METRICS, T)[0]
    # Boots' effects are .01, .02, .03: their standard deviation is .01, and runs of a boot do not differ.
    assert by_boot.boot_variance_share == pytest.approx(1)
    assert by_boot.spread_between_percent == pytest.approx(1)
    assert by_boot.spread_within_percent == 0
    two = (arm(base, seeds=IN_THREE), arm(lambda c, s: base(c, s) * float(np.exp(0.01 * s.run)), seeds=IN_THREE))
    by_run = compare_arch(*two, [PLAN], METRICS, T)[0]
    # Runs' effects are .01 to .04 in every boot: variance 5/3 of 1e-4.
    assert by_run.boot_variance_share == 0
    assert by_run.spread_between_percent == 0
    assert by_run.spread_within_percent == pytest.approx((5 / 3) ** 0.5)
    single = compare_arch(arm(base), arm(better), [PLAN], METRICS, T)[0]
    assert (single.boot_variance_share, single.spread_between_percent, single.spread_within_percent) == (None,) * 3


def test_what_was_not_found_is_told_by_how_large_it_would_have_had_to_be() -> None:
    rng = np.random.default_rng(1)
    noise = {seed: float(np.exp(rng.normal(0, 0.02))) for seed in SEEDS}
    found = compare_arch(arm(base), arm(lambda c, s: base(c, s) * noise[s]), [PLAN], METRICS, T)[0]
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.mde_percent is not None
    # Noncentral t with 12 units at 0.05: 0.89 standard deviations, which are about 2 %.
    assert 1.2 < found.mde_percent < 2.6
    assert f"would have found a change of {found.mde_percent:.2g} % or more in four of five" in found.reason


def test_identical_kernels_under_noise_are_rarely_called_changed() -> None:
    rng = np.random.default_rng(7)
    trials = 400
    hits = 0
    for _ in range(trials):
        one_arm, other = (arm(lambda _c, _s: float(np.exp(rng.normal(0, 0.05)))) for _ in range(2))
        hits += compare_arch(one_arm, other, [PLAN], METRICS, Thresholds(alpha=0.1))[0].verdict in (
            Verdict.IMPROVED,
            Verdict.REGRESSED,
        )
    # At most alpha: 40 expected, 6 its standard deviation. Not far below either, or the test would have no power.
    assert 15 <= hits <= 58
