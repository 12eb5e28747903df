# SPDX-License-Identifier: GPL-2.0-or-later
"""Replicates of tcg and kvm: compared as independent samples, by the same rules and in the same families."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kpatch_ci.model.status import Mode, Status, Verdict
from kpatch_ci.model.workload import Seed
from kpatch_ci.stats import compare_arch
from tests.unit.stats.test_compare import CASES, METRICS, PLAN, SEEDS, Arm, T, arm, base, better, fail, one


def live(replicates: Arm, mode: Mode = Mode.KVM) -> Arm:
    return {key: replace(r, mode=mode) for key, r in replicates.items()}


@pytest.mark.parametrize("mode", [Mode.TCG, Mode.KVM])
def test_the_mode_chooses_the_method(mode: Mode) -> None:
    found = compare_arch(live(arm(base), mode), live(arm(better), mode), [PLAN], METRICS, T)
    primary = found[0]
    assert (primary.primary, primary.mode, primary.case) == (True, mode, "all")
    assert primary.ci_method == "Hodges-Lehmann (exact rank sum) of log ratios"
    assert primary.boot_variance_share is None
    assert primary.seeds == tuple(SEEDS)
    paired = compare_arch(arm(base), arm(better), [PLAN], METRICS, T)
    assert [(c.case, c.metric) for c in found] == [(c.case, c.metric) for c in paired]
    assert paired[0].ci_method == "Hodges-Lehmann (exact signed rank) of log ratios"


def test_which_seed_gave_which_sample_does_not_matter() -> None:
    turned = {s: SEEDS[(i + 5) % len(SEEDS)] for i, s in enumerate(SEEDS)}
    other = live(arm(lambda case, seed: better(case, turned[seed])))
    a, b = (compare_arch(live(arm(base)), p, [PLAN], METRICS, T)[0] for p in (live(arm(better)), other))
    assert a.change_percent == pytest.approx(b.change_percent)
    assert a.p_value == b.p_value


def test_the_primary_is_that_of_geometric_means_over_cases() -> None:
    def halved(case, seed):  # type: ignore[no-untyped-def]
        return base(case, seed) / (4 if case.get("groups") == 8 else 1)

    primary = compare_arch(live(arm(base)), live(arm(halved)), [PLAN], METRICS, T)[0]
    assert primary.change_percent == pytest.approx(50)
    assert primary.verdict is Verdict.IMPROVED


def test_a_run_that_failed_costs_its_own_arm_only() -> None:
    patched = live(arm(better))
    fail(patched, CASES[0], SEEDS[0])
    found = compare_arch(live(arm(base)), patched, [PLAN], METRICS, T)
    time = one(found, "groups=1", "time")
    assert len(time.seeds) == len(time.baseline) == len(time.patched) == 12
    assert time.baseline[0] == pytest.approx(base(CASES[0], SEEDS[0]))
    assert time.patched[0] is None
    assert "dropped groups=1 seed 1.1: patched failed (exit status 1)" in time.reason
    primary = found[0]
    assert (primary.patched[0], None in primary.baseline) == (None, False)


def test_nothing_of_one_arm_is_told_as_in_pairs() -> None:
    def without(status: Status) -> Arm:
        replicates = live(arm(base))
        for seed in SEEDS:
            fail(replicates, CASES[0], seed, status)
        return replicates

    good = live(arm(base))
    for baseline, patched, verdict in (
        (good, without(Status.FAILED), Verdict.FAILED),
        (without(Status.FAILED), good, Verdict.ERROR),
        (without(Status.FAILED), without(Status.FAILED), Verdict.ERROR),
        (good, without(Status.SKIPPED), Verdict.SKIPPED),
        (good, without(Status.ERROR), Verdict.ERROR),
    ):
        time = one(compare_arch(baseline, patched, [PLAN], METRICS, T), "groups=1", "time")
        assert (time.verdict, time.change_percent) == (verdict, None)


def test_unlike_accelerators_are_not_compared() -> None:
    for other in (Mode.TCG, Mode.DETERMINISTIC):
        found = compare_arch(live(arm(base)), live(arm(better), other), [PLAN], METRICS, T)
        assert {c.verdict for c in found} == {Verdict.ERROR}
        assert "unlike modes are not compared" in found[0].reason


def test_few_runs_say_what_would_be_needed() -> None:
    seeds = [Seed(1, n) for n in (1, 2, 3)]
    found = compare_arch(live(arm(base, seeds=seeds)), live(arm(better, seeds=seeds)), [PLAN], METRICS, T)
    assert "3 and 3 runs cannot give p below 0.1; alpha 0.05 needs 4 an arm or more" in found[0].reason


def test_counters_without_a_single_zero_pair_have_their_floor() -> None:
    def moved(replicates: Arm, count: float) -> Arm:
        return {k: replace(r, samples={**r.samples, "migrations": count + k[2].run}) for k, r in replicates.items()}

    found = compare_arch(moved(live(arm(base)), 1), moved(live(arm(base)), 3), [PLAN], METRICS, T)
    migrations = one(found, "groups=1", "migrations")
    assert migrations.verdict is Verdict.NO_CHANGE
    assert "5 migrations a run" in migrations.reason
