# SPDX-License-Identifier: GPL-2.0-or-later
"""From a run's values to claims beside figures: the patch's text, our samples, the workload's threshold."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from kpatch_ci.model.claim import Agreement, Claim
from kpatch_ci.model.machine import Cluster, Machine
from kpatch_ci.model.series import Series
from kpatch_ci.model.status import Mode, Status
from kpatch_ci.model.workload import Case, Replicate, Seed, WorkloadPlan
from kpatch_ci.pipeline.assemble import assemble
from kpatch_ci.pipeline.stagenames import apply_name, boot_name, build_name, run_name
from kpatch_ci.stats.verdict import Thresholds
from tests.fakes.results import applied, apply_failed, boot, build

CASE = Case((("groups", 8),), (("loops", 1),))
SEEDS = tuple(Seed(number, 1) for number in range(1, 9))
MACHINE = Machine("m", "d", "arm64", "virt", "cortex-a57", 256, (Cluster("p", (0, 1)),), 0)
CLAIMS = (
    Claim("Amean 8", 10.0, "hackbench", "time", "groups=8", better="lower"),
    Claim("Amean 30", 10.0, "hackbench", "time", "groups=30", better="lower"),
    Claim("elsewhere", 10.0, "hackbench", "time", "groups=8", arch="x86_64"),
)
SERIES = Series("S", "t", "o", (), claims=CLAIMS)


def config(threshold: float) -> Any:
    plans = (WorkloadPlan("hackbench", "hackbench", (CASE,), threshold),)
    return SimpleNamespace(machines=(MACHINE,), workloads=plans, seeds=SEEDS, thresholds=Thresholds(), precision=None)


def values(saved: float) -> dict[str, Any]:
    """Runs whose patched arm is ``saved`` percent faster, a little more or less by seed."""
    found: dict[str, Any] = {apply_name("S"): applied()}
    for arm in SERIES.arms:
        found[build_name("arm64", arm.kernel)] = build(arm.kernel, "arm64")
        for seed in SEEDS:
            time = 1.0 if arm.kernel == "baseline" else 1 - saved / 100 - seed.boot / 10000
            samples = {"time": time, "context_switches": 10.0, "migrations": 10.0, "wakeups": 10.0}
            made = Replicate("hackbench", CASE.label, seed, Status.PASSED, Mode.DETERMINISTIC, samples)
            found[run_name("arm64", arm, "hackbench", CASE.label, seed)] = made
            found[boot_name("arm64", arm.kernel, seed.boot)] = boot(seed.boot, arm.kernel, "arm64")
    return found


def judged(threshold: float, found: dict[str, Any]) -> list[tuple[str, Agreement]]:
    tree = cast("Any", SimpleNamespace(repo=None))
    (series,) = assemble(config(threshold), tree, [SERIES], cast("Any", found), "cmd")
    assert series.claims == CLAIMS
    return [(one.claim.text, one.agreement) for one in series.arches[0].claims]


def test_each_claim_about_the_architecture_is_judged_beside_its_case() -> None:
    assert judged(1.0, values(9.5)) == [("Amean 8", Agreement.AGREES), ("Amean 30", Agreement.NOT_MEASURED)]
    assert judged(1.0, values(3.0))[0] == ("Amean 8", Agreement.DISAGREES)


def test_the_workloads_own_threshold_counts() -> None:
    assert judged(8.0, values(3.0))[0] == ("Amean 8", Agreement.AGREES)


def test_claims_of_a_series_that_does_not_apply_are_not_measured() -> None:
    failed = {apply_name("S"): apply_failed().apply}
    assert judged(1.0, failed) == [("Amean 8", Agreement.NOT_MEASURED), ("Amean 30", Agreement.NOT_MEASURED)]
