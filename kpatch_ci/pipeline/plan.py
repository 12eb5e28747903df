# SPDX-License-Identifier: GPL-2.0-or-later
"""The graph of a run: which kernels are built, which arms measured, each once however many series want it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from kpatch_ci.model.series import BASELINE, Arm, Series
from kpatch_ci.model.workload import WorkloadPlan
from kpatch_ci.pipeline.each import NO_CHECKS, Checks, check_nodes
from kpatch_ci.pipeline.engine import Node
from kpatch_ci.pipeline.live import alone, interleaved, proven
from kpatch_ci.pipeline.stages import Stages, boot_nodes


@dataclass(frozen=True, slots=True)
class Depth:
    """How far a run goes: without ``boots`` it stops after the builds, without ``replicates`` after the boots; and what else is asked."""

    boots: bool = True
    replicates: bool = True
    checks: Checks = NO_CHECKS


FULL = Depth()


def plans_for(series: Series, plans: Sequence[WorkloadPlan]) -> tuple[WorkloadPlan, ...]:
    """The workloads that a series is measured with."""
    return tuple(plan for plan in plans if not series.only or plan.name in series.only)


Wanted = Collection[tuple[str, str]]
"""Architecture and workload."""


def plan(
    stages: Stages,
    series: Sequence[Series],
    depth: Depth = FULL,
    *,
    baseline: bool = True,
    wanted: Wanted | None = None,
) -> list[Node]:
    """Every node of a run, each needed thing once. Without ``baseline`` only patched arms are booted and measured.

    ``wanted``: only these are booted for and measured.
    """
    config = stages.session.config
    applied = {one.patched_kernel: one for one in (*(s.base for s in series if s.base), *series)}
    nodes = [stages.apply(one) for one in applied.values()]
    measured = measured_arms(series, config.workloads, baseline=baseline)
    live: list[Node] = []
    partners = _partners(series) if baseline else {}
    firsts = {one.arms[0].kernel for one in series}
    for machine in config.machines:
        here = _only(measured, machine.arch, wanted)
        nodes.append(stages.build_baseline(machine.arch))
        nodes += [stages.build_patched(machine.arch, kernel) for kernel in applied]
        if not depth.boots or not here:
            continue
        nodes.append(stages.image(machine.arch))
        boots: list[Node] = []
        for kernel in dict.fromkeys(arm.kernel for arm in here):
            against = () if kernel in firsts else partners.get(kernel, ())
            boots += boot_nodes(stages, machine, kernel, config.seeds, against)
        nodes += proven(stages, machine, boots)
        if not depth.replicates:
            continue
        apart = {arm: partners.get(arm.kernel, ()) if arm.kernel in firsts else () for arm in here}
        if machine.real_time:
            live += interleaved(stages, machine, here, apart)
            continue
        for arm, plans in here.items():
            nodes += [node for one in plans for node in stages.replicates(machine, arm, one, config.seeds, apart[arm])]
    return alone(nodes + check_nodes(stages, series, depth.checks), live)


def _partners(series: Sequence[Series]) -> dict[str, tuple[str, ...]]:
    """Kernel -> those that it is compared with. Where none of them is another, there is nothing to measure.

    A kernel that is also compared with itself, its change switched off, stands for itself and is left out.
    """
    found: dict[str, dict[str, None]] = {}
    for first, second in ((one.arms[0].kernel, one.arms[1].kernel) for one in series):
        found.setdefault(first, {})[second] = None
        found.setdefault(second, {})[first] = None
    return {kernel: tuple(others) for kernel, others in found.items() if kernel not in others}


def _only(
    measured: Mapping[Arm, tuple[WorkloadPlan, ...]], arch: str, wanted: Wanted | None
) -> Mapping[Arm, tuple[WorkloadPlan, ...]]:
    if wanted is None:
        return measured
    left = {arm: tuple(plan for plan in plans if (arch, plan.name) in wanted) for arm, plans in measured.items()}
    return {arm: plans for arm, plans in left.items() if plans}


def measured_arms(
    series: Sequence[Series], plans: Sequence[WorkloadPlan], *, baseline: bool
) -> dict[Arm, tuple[WorkloadPlan, ...]]:
    """Each arm once, with all workloads that any series wants of it."""
    wanted: dict[Arm, set[str]] = {} if series else {Arm(BASELINE): {plan.name for plan in plans}}
    for one in series:
        for arm in one.arms if baseline else one.arms[1:]:
            wanted.setdefault(arm, set()).update(plan.name for plan in plans_for(one, plans))
    return {arm: tuple(plan for plan in plans if plan.name in names) for arm, names in wanted.items()}
