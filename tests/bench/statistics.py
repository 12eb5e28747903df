# SPDX-License-Identifier: GPL-2.0-or-later
"""How long 10,000 comparisons take: python -m tests.bench.statistics [boots] [modes]

Two series' worth of samples over and over: 12 boots an arm, workloads of ten cases with three counters, one of them near
zero (ties and zeros). Target: under 10 s of one core. Prints seconds of processor time; nothing is asserted.
"""

from __future__ import annotations

import random
import sys
import time

from kpatch_ci.model.status import Mode, Status
from kpatch_ci.model.workload import Case, Metric, Replicate, Seed, WorkloadPlan
from kpatch_ci.stats import Replicates, Thresholds, compare_series

WANTED = 10_000
METRICS = {kind: (Metric("time", "s", "lower"),) for kind in ("dd", "hackbench", "dbench")}
PLANS = [
    WorkloadPlan(kind, kind, tuple(Case((("groups", n),)) for n in range(10)), threshold_percent=1.0)
    for kind in METRICS
]


def arm(boots: int, mode: Mode, dice: random.Random) -> Replicates:
    """Noise."""
    found = {}
    for plan in PLANS:
        for case in plan.cases:
            for seed in (Seed(boot, 1) for boot in range(1, boots + 1)):
                samples = {
                    "time": dice.gauss(1, 0.02),
                    "context_switches": float(round(dice.gauss(3000, 60))),
                    "migrations": float(dice.randint(0, 8)),
                    "wakeups": float(round(dice.gauss(900, 5))),
                }
                key = (plan.name, case.label, seed)
                found[key] = Replicate(plan.name, case.label, seed, Status.PASSED, mode, samples)
    return found


def main(boots: int, modes: list[Mode]) -> None:
    """Prints a line a mode."""
    dice = random.Random(7)  # noqa: S311
    for mode in modes:
        arms = [{arch: (arm(boots, mode, dice), arm(boots, mode, dice)) for arch in ("arm64", "x86_64")} for _ in "12"]
        count, began = 0, time.process_time()
        while count < WANTED:
            for both in arms:
                found = compare_series(both, PLANS, METRICS, Thresholds())
                count += sum(map(len, found.values()))
        seconds = time.process_time() - began
        print(f"{mode}, {boots} boots: {count} comparisons in {seconds:.2f} s")


if __name__ == "__main__":
    main(
        int(sys.argv[1]) if len(sys.argv) > 1 else 12,
        [Mode(m) for m in sys.argv[2:]] or [Mode.DETERMINISTIC, Mode.KVM],
    )
