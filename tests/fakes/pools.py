# SPDX-License-Identifier: GPL-2.0-or-later
"""Pools of replicates that were measured nowhere: what spreads by how much, and what is slower by how much, is known."""

from __future__ import annotations

import math

import numpy as np

from kpatch_ci.model.machine import Cluster, Machine
from kpatch_ci.model.status import Mode, Status
from kpatch_ci.model.workload import Case, Replicate, Seed, WorkloadPlan
from kpatch_ci.pipeline.calibrate import Pools, Slowed

PLAN = WorkloadPlan("hackbench", "hackbench", (Case((("groups", 1),)), Case((("groups", 4),))), threshold_percent=0.5)
MACHINE = Machine(
    name="two",
    description="d",
    arch="x86_64",
    qemu_machine="q35",
    cpu="qemu64",
    memory_mib=256,
    clusters=(Cluster("p", (0, 1)),),
    icount_shift=0,
)
Arm = dict[tuple[str, str, Seed], Replicate]


def arm(stream: int, n: int, *, spread: float = 0.5, slower: float = 0.0, plan: WorkloadPlan = PLAN) -> Arm:
    """n boots: times that spread by ``spread`` percent, ``slower`` percent longer; switches that spread by 10 percent."""
    rng = np.random.default_rng(stream)
    found = {}
    for boot in range(1, n + 1):
        for case in plan.cases:
            time = math.exp(rng.normal(slower, spread) / 100)
            samples = {"time": time, "context_switches": 1000 * math.exp(rng.normal(0, 0.1))}
            key = (plan.name, case.label, Seed(boot, 1))
            found[key] = Replicate(*key, Status.PASSED, Mode.DETERMINISTIC, samples)
    return found


def pools(n: int, *, spread: float = 0.5, layout: float = 0.0, scale: float = 1.0, plan: WorkloadPlan = PLAN) -> Pools:
    """One machine: A' slower by ``layout`` percent, the levels by ``scale`` times what they are to be."""
    levels = tuple(
        Slowed(level, round(100 * level), arm(7 + i, n, spread=spread, slower=scale * level, plan=plan))
        for i, level in enumerate((0.5, 1.0, 2.0, 5.0))
    )
    a, b = arm(1, n, spread=spread, plan=plan), arm(2, n, spread=spread, slower=layout, plan=plan)
    return Pools(MACHINE, a, b, {plan.name: 10.0}, {plan.name: levels})
