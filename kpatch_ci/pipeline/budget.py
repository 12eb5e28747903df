# SPDX-License-Identifier: GPL-2.0-or-later
"""A time-boxed run: which cases fit into what is left after the builds, and what is said of those that do not.

Cases go before seeds do: six boots of fewer cases give verdicts, two boots of all of them give none. What is left is
measured boot by boot, all arms under one before any under the next, so that whenever time is up the arms still pair.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kpatch_ci.config.load import Config
from kpatch_ci.model.machine import Machine
from kpatch_ci.model.series import Arm
from kpatch_ci.model.status import Status
from kpatch_ci.model.workload import Replicate, WorkloadPlan
from kpatch_ci.pipeline.engine import Node, Values
from kpatch_ci.pipeline.stagenames import OVER, run_name
from kpatch_ci.store.atomic import write_text

ENOUGH = 6
"""Boots for which cases are given up: fewer can never give p < 0.05."""
GUESS = 2.0
"""Seconds of one CPU that a replicate is taken to cost where none like it was ever measured."""
LAST = 15.0
"""Seconds kept for statistics and reports."""
_KEEP = 0.7
"""Share of the older figure in a moving mean of costs."""

Arms = Mapping[Arm, Sequence[WorkloadPlan]]


class Costs:
    """What a replicate of a case cost on this host: a moving mean over runs, kept in one file. Losing it loses nothing but foresight."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seconds: dict[str, float] = {}
        with contextlib.suppress(OSError, ValueError, AttributeError):
            known = json.loads(path.read_text())
            self._seconds = {str(k): float(v) for k, v in known.items() if math.isfinite(float(v)) and float(v) > 0}

    def of(self, machine: Machine, workload: str, case: str) -> float:
        """Seconds of one CPU on such a machine; a guess where nothing is known."""
        return self._seconds.get(_key(machine, workload, case), GUESS)

    def learn(self, values: Values, machines: Sequence[Machine]) -> None:
        """Take in what a run measured, and keep it."""
        seen: dict[str, list[float]] = {}
        by_arch = {machine.arch: machine for machine in machines}
        for name, value in values.items():
            if isinstance(value, Replicate) and value.status is Status.PASSED and not value.cached:
                machine = by_arch.get(name.split(" ", 2)[1])
                if machine:
                    seen.setdefault(_key(machine, value.workload, value.case), []).append(value.seconds)
        for key, seconds in seen.items():
            mean = math.fsum(seconds) / len(seconds)
            self._seconds[key] = _KEEP * self._seconds.get(key, mean) + (1 - _KEEP) * mean
        if seen:
            write_text(self._path, json.dumps(self._seconds, indent=1, sort_keys=True))


def _key(machine: Machine, workload: str, case: str) -> str:
    """A second of real time costs what it costs: no figure of it goes into those of virtual time."""
    where = f"{machine.arch} {machine.accel}" if machine.real_time else machine.arch
    return f"{where} {workload} {case}"


@dataclass(frozen=True, slots=True)
class Fit:
    """What of a run fits: its workloads with fewer cases, and a line for each thing that was given up."""

    workloads: tuple[WorkloadPlan, ...]
    left_out: tuple[str, ...] = ()


def fit(config: Config, arms: Arms, known: Collection[str], costs: Costs, *, seconds: float, jobs: int) -> Fit:
    """The cases whose first six boots fit into ``seconds`` of wall time on ``jobs`` CPUs; each workload keeps its first.

    ``known`` names the replicates that cost nothing.
    """
    prices = _Prices(config, arms, known, costs)
    price = {(plan.name, case.label): prices.of(plan, case.label) for plan in config.workloads for case in plan.cases}
    left = {plan.name: list(plan.cases) for plan in config.workloads}
    gone: dict[str, list[str]] = {}
    room = max(0.0, seconds - LAST) * jobs
    while sum(price[name, case.label] for name, cases in left.items() for case in cases) > room:
        longest = max(left, key=lambda name: (len(left[name]), sum(price[name, c.label] for c in left[name])))
        if len(left[longest]) < 2:
            break
        gone.setdefault(longest, []).insert(0, left[longest].pop().label)
    plans = tuple(replace(plan, cases=tuple(left[plan.name])) for plan in config.workloads)
    lines = [f"left out for the time budget: {name} {', '.join(cases)}" for name, cases in gone.items()]
    return Fit(plans, tuple(lines))


@dataclass(frozen=True, slots=True)
class _Prices:
    config: Config
    arms: Arms
    known: Collection[str]
    costs: Costs

    def of(self, plan: WorkloadPlan, case: str) -> float:
        """Seconds of one CPU that the first boots of a case cost, over all arms and architectures."""
        first = sorted({seed.boot for seed in self.config.seeds})[:ENOUGH]
        seeds = [seed for seed in self.config.seeds if seed.boot in first]
        return sum(
            self.costs.of(machine, plan.name, case)
            for machine in self.config.machines
            for arm, plans in self.arms.items()
            if any(one.name == plan.name for one in plans)
            for seed in seeds
            if run_name(machine.arch, arm, plan.name, case, seed) not in self.known
        )


def already_known(nodes: Sequence[Node], values: Values) -> set[str]:
    """Names of nodes whose values are known already. ``nodes`` come after what they need."""
    found = dict(values)
    for node in nodes:
        if node.name not in found and node.lookup and all(need in found for need in node.needs):
            value = node.lookup(found)
            if value is not None:
                found[node.name] = value
    return set(found)


def missed(values: Values) -> tuple[str, ...]:
    """A line for each workload and architecture of which not all boots were measured in time."""
    total: dict[tuple[str, str], set[int]] = {}
    late: dict[tuple[str, str], set[int]] = {}
    for name, value in values.items():
        if isinstance(value, Replicate):
            key = (value.workload, name.split(" ", 2)[1])
            total.setdefault(key, set()).add(value.seed.boot)
            if value.status is Status.SKIPPED and value.reason == OVER:
                late.setdefault(key, set()).add(value.seed.boot)
    return tuple(
        f"cut short by the time budget: {workload} on {arch}: {len(total[workload, arch] - boots)} of"
        f" {len(total[workload, arch])} boots measured whole"
        for (workload, arch), boots in late.items()
    )
