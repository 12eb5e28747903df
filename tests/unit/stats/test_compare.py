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

SEEDS = [Seed(boot, run) for boot in (1, 2, 3) for run in (1, 2, 3, 4)]
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
            {name: times(case, seed), "context_switches": 100.0 + seed.run, "migrations": 0.0},
        )
        for case in plan.cases
        for seed in seeds
    }


def base(case: Case, seed: Seed) -> float:
    return float(case.get("groups")) * (1 + 0.1 * seed.boot + 0.01 * seed.run)


def better(case: Case, seed: Seed) -> float:
    return base(case, seed) * (0.95 + 0.001 * seed.run)


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
        assert "dropped groups=8 seed 2.2: patched failed (exit status 1)" in c.reason
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


def test_three_seeds_of_one_boot_never_give_a_significant_verdict() -> None:
    few = SEEDS[:3]
    found = compare_arch(arm(base, seeds=few), arm(better, seeds=few), [PLAN], METRICS, T)
    assert found[0].verdict is Verdict.INCONCLUSIVE
    assert "needs 6 or more" in found[0].reason
    assert found[0].boot_variance_share is None
    assert one(found, "groups=1", "migrations").verdict is Verdict.NO_CHANGE


def test_the_share_of_variance_between_boots_is_estimated() -> None:
    by_boot = compare_arch(arm(base), arm(lambda c, s: base(c, s) * (1 + 0.01 * s.boot)), [PLAN], METRICS, T)
    by_run = compare_arch(arm(base), arm(better), [PLAN], METRICS, T)
    assert by_boot[0].boot_variance_share == pytest.approx(1)
    assert by_run[0].boot_variance_share == 0


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
