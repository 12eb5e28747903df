# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures what `calibrate` judges: pools of replicates of kernels whose difference is known.

``A`` is the baseline, ``A'`` a kernel that differs from it in addresses only (patches/calibration-layout), and the slowed arms are
one kernel (patches/calibration-wakeup) with so many steps of work in each wakeup. The steps of a level follow from a first
measurement with many: the effect grows in proportion to them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from kpatch_ci.model.build import BuildResult
from kpatch_ci.model.errors import InfrastructureError, UserError
from kpatch_ci.model.machine import Machine
from kpatch_ci.model.series import BASELINE, ApplyResult, Arm, Series, Switches
from kpatch_ci.model.status import Status
from kpatch_ci.model.workload import Metric, Replicate, Seed, WorkloadPlan
from kpatch_ci.pipeline.engine import Observer
from kpatch_ci.pipeline.session import Session
from kpatch_ci.pipeline.slots import Slots
from kpatch_ci.pipeline.stagenames import apply_name, build_name
from kpatch_ci.pipeline.stages import Stages, boot_nodes
from kpatch_ci.series.folder import load_series
from kpatch_ci.stats.calibration import primary_effects
from kpatch_ci.stats.pairs import Replicates
from kpatch_ci.workloads.table import WORKLOADS

LAYOUT, WAKEUP, WORK = "calibration-layout", "calibration-wakeup", "kernel/sched_wakeup_work"
SLOWED = "hackbench"
"""Kind of workload that lives on wakeups, and so is slowed."""
LEVELS = (0.5, 1.0, 2.0, 5.0)
"""Slow-downs in percent."""
PROBE_STEPS, PROBE_SEEDS = 1000, 12
"""Where the steps of a level are found: enough work for an effect of some ten percent, and enough seeds to know it to a tenth of itself."""
LARGEST_STEPS = 1_000_000

Progress = Callable[[], AbstractContextManager[Observer]]


def work_arm(steps: int) -> Arm:
    """The kernel with so many steps of work in each wakeup."""
    return Arm(WAKEUP, Switches(sysctls=((WORK, str(steps)),)), f"work={steps}")


@dataclass(frozen=True, slots=True)
class Slowed:
    """A workload at a level: the steps that were to make it so much slower, and the pool that shows what they did."""

    level_percent: float
    steps: int
    arm: Replicates


@dataclass(frozen=True, slots=True)
class Pools:
    """What was measured on one machine. ``slowed``: workload -> its levels."""

    machine: Machine
    plain: Replicates
    layout: Replicates
    probe: Mapping[str, float] = field(default_factory=dict)
    """Workload -> percent by which PROBE_STEPS slowed its primary figure."""
    slowed: Mapping[str, tuple[Slowed, ...]] = field(default_factory=dict)


def calibration_series(patches: Path) -> tuple[Series, Series]:
    """Those of the two kernels. Raises UserError where they are not there."""
    layout, wakeup = (load_series(patches / name, patches) for name in (LAYOUT, WAKEUP))
    return layout, wakeup


def slowed_plans(plans: Sequence[WorkloadPlan]) -> tuple[WorkloadPlan, ...]:
    """The workloads whose power is measured."""
    return tuple(plan for plan in plans if plan.kind == SLOWED)


def measure(
    session: Session,
    series: Sequence[Series],
    progress: Progress,
    seeds: Sequence[Seed],
    levels: Sequence[float] = LEVELS,
) -> tuple[Pools, ...]:
    """Both kernels against the baseline, then the slowed arms; what was measured before is reused.

    Raises UserError where a kernel of ours does not go with the tree, InfrastructureError where a machine slows nothing.
    """
    plans = session.config.workloads
    slow = slowed_plans(plans)
    whole: dict[Arm, tuple[WorkloadPlan, ...]] = {Arm(BASELINE): plans, Arm(LAYOUT): plans}
    with Slots(session.jobs) as slots:
        run = _Run(Stages(session, session.builder(slots.path), session.guests()), slots, progress, series)
        values = run.arms({m.arch: whole for m in session.config.machines}, seeds)
        _check(series, session, values)
        few = seeds[:PROBE_SEEDS]
        probe = work_arm(PROBE_STEPS)
        if slow:
            values |= run.arms({m.arch: {probe: slow} for m in session.config.machines}, few)
            _check(series, session, values)
        found = []
        wanted: dict[str, dict[Arm, tuple[WorkloadPlan, ...]]] = {}
        for machine in session.config.machines:
            plain = replicates(values, machine.arch, Arm(BASELINE))
            effect = {p.name: _effect(plain, replicates(values, machine.arch, probe), p) for p in slow}
            steps = {name: steps_for(percent, machine.name, levels) for name, percent in effect.items()}
            for plan in slow:
                for count in steps[plan.name]:
                    arm = work_arm(count)
                    some = wanted.setdefault(machine.arch, {})
                    some[arm] = (*some.get(arm, ()), plan)
            found.append((machine, effect, steps))
        if slow:
            values |= run.arms(wanted, seeds)
    return tuple(_pools(values, machine, effect, steps, levels) for machine, effect, steps in found)


def _pools(
    values: Mapping[str, Any],
    machine: Machine,
    effect: Mapping[str, float],
    steps: Mapping[str, Sequence[int]],
    levels: Sequence[float],
) -> Pools:
    arch = machine.arch
    slowed = {
        name: tuple(
            Slowed(level, count, replicates(values, arch, work_arm(count)))
            for level, count in zip(levels, counts, strict=True)
        )
        for name, counts in steps.items()
    }
    plain, layout = (replicates(values, arch, Arm(kernel)) for kernel in (BASELINE, LAYOUT))
    return Pools(machine, plain, layout, effect, slowed)


def steps_for(percent: float, machine: str, levels: Sequence[float]) -> tuple[int, ...]:
    """Steps of each level, where PROBE_STEPS make a workload slower by ``percent``. Raises InfrastructureError where they hardly do."""
    if percent < 1:
        what = f"{machine}: {PROBE_STEPS} steps of work in each wakeup slow {SLOWED} by {percent:.2f} % only"
        raise InfrastructureError(what, hint="a case that wakes more, or more seeds: no level can be set by this")
    return tuple(min(LARGEST_STEPS, max(1, round(PROBE_STEPS * level / percent))) for level in levels)


def replicates(values: Mapping[str, Any], arch: str, arm: Arm) -> dict[tuple[str, str, Seed], Replicate]:
    """An arm's replicates among the values of a run."""
    prefix = f"run {arch} {arm.label} "
    found = (value for name, value in values.items() if name.startswith(prefix) and isinstance(value, Replicate))
    return {(one.workload, one.case, one.seed): one for one in found}


def _effect(plain: Replicates, slow: Replicates, plan: WorkloadPlan) -> float:
    """Percent by which the primary figure is larger; 0 where nothing was measured."""
    each = primary_effects((plain, slow), plan, primary_metric(plan))
    return 100 * math.expm1(fmean(each) / 100) if each else 0.0


def primary_metric(plan: WorkloadPlan) -> Metric:
    """The first metric of a workload's kind."""
    return WORKLOADS[plan.kind].metrics[0]


@dataclass(frozen=True, slots=True)
class _Run:
    """Runs arms, one engine after the other, in one set of slots."""

    stages: Stages
    slots: Slots
    progress: Progress
    series: Sequence[Series]

    def arms(self, arms: Mapping[str, Mapping[Arm, Sequence[WorkloadPlan]]], seeds: Sequence[Seed]) -> dict[str, Any]:
        """Values of all nodes that the arms of each architecture need."""
        stages, kernels = self.stages, {arm.kernel for some in arms.values() for arm in some}
        nodes = [stages.apply(one) for one in self.series if one.patched_kernel in kernels]
        for machine in (m for m in stages.session.config.machines if m.arch in arms):
            wanted = arms[machine.arch]
            nodes += [stages.build_baseline(machine.arch), stages.image(machine.arch)]
            for kernel in dict.fromkeys(arm.kernel for arm in wanted):
                nodes += [] if kernel == BASELINE else [stages.build_patched(machine.arch, kernel)]
                nodes += boot_nodes(stages, machine, kernel, seeds)
            for arm, plans in wanted.items():
                nodes += [node for one in plans for node in stages.replicates(machine, arm, one, seeds)]
        with self.progress() as observer:
            return stages.session.engine(self.slots, observer).run(nodes)


def _check(series: Sequence[Series], session: Session, values: Mapping[str, Any]) -> None:
    """Raises UserError where a kernel of ours does not apply, build or boot, or is the baseline's."""
    for one in (s for s in series if apply_name(s.patched_kernel) in values):
        applied: ApplyResult = values[apply_name(one.patched_kernel)]
        if applied.status is not Status.PASSED:
            raise _useless(one, f"does not apply: {applied.reason}", session)
        for machine in session.config.machines:
            plain: BuildResult = values[build_name(machine.arch, BASELINE)]
            built: BuildResult | None = values[build_name(machine.arch, one.patched_kernel)]
            if plain.status is not Status.PASSED:
                raise UserError(f"the baseline does not build for {machine.arch}: {plain.reason}", where="tree")
            if built is None or built.status is not Status.PASSED:
                raise _useless(one, f"does not build for {machine.arch}: {built.reason if built else ''}", session)
            if built.kernel_digest == plain.kernel_digest:
                raise _useless(one, f"leaves the kernel for {machine.arch} as it was", session)


def _useless(series: Series, what: str, session: Session) -> UserError:
    return UserError(
        f"{series.name} {what}", where=f"tree {session.tree.label}", expected="a tree with which it goes: debian:6.1"
    )
