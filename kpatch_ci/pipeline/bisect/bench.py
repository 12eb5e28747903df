# SPDX-License-Identifier: GPL-2.0-or-later
"""What a bisection asks of the machine: kernels of commits, and their boots and runs. ``real.py`` does it; tests have a fake."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from kpatch_ci.model.bisect import Commit, Find, Spent
from kpatch_ci.model.boot import BootResult
from kpatch_ci.model.build import BuildResult
from kpatch_ci.model.machine import Machine
from kpatch_ci.model.status import Status
from kpatch_ci.model.workload import Metric, Replicate, Seed, WorkloadPlan

Key = tuple[str, str, Seed]
"""Workload, case, seed: as stats has it."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is searched for, on which machine. ``plan`` has only the cases that count; None where nothing is run."""

    find: Find
    machine: Machine
    plan: WorkloadPlan | None = None
    case: str = ""
    """Label of the one case; empty: all of the plan's, together."""
    metric: Metric | None = None
    symbol: str = ""
    pattern: str = ""
    boots: int = 6
    """Boots with which the ends are first compared."""
    most: int = 48
    """Boots after which nothing more is tried."""

    @property
    def starts_kernels(self) -> bool:
        """Whether kernels are booted: the others are only built, or looked into."""
        return self.find not in (Find.BUILD, Find.SYMBOL)

    @property
    def words(self) -> str:
        """For people."""
        where = f"on {self.machine.name}"
        load = f"{self.plan.name}{f' {self.case}' if self.case else ''}" if self.plan else "boots"
        by_find = {
            Find.METRIC: f"{self.metric.name if self.metric else ''} of {load} {where}",
            Find.BUILD: f"a kernel that does not build, {self.machine.arch}",
            Find.BOOT: f"a kernel that does not boot {where}",
            Find.CRASH: f"a crash in {load} {where}",
            Find.WORKLOAD: f"a failure of {load} {where}",
            Find.SYMBOL: f"symbol {self.symbol} in the kernel, {self.machine.arch}",
            Find.LOG: f"/{self.pattern}/ on the console of a boot {where}",
        }
        return by_find[self.find]


@dataclass(frozen=True, slots=True)
class Runs:
    """Boots of a kernel, in the order of their seeds, and what was run in them."""

    boots: tuple[BootResult, ...] = ()
    replicates: Mapping[Key, Replicate] = field(default_factory=dict)

    @property
    def lost(self) -> BootResult | None:
        """The first that did not come up."""
        return next((b for b in self.boots if b.status is not Status.PASSED), None)

    @property
    def broken(self) -> Replicate | None:
        """The first run that did not end well."""
        bad = [r for r in self.replicates.values() if r.status is not Status.PASSED]
        return next((r for r in bad if r.status is not Status.SKIPPED), next(iter(bad), None))


class Bench(Protocol):
    """Raises InfrastructureError where the machine fails; what a kernel does wrong is a value."""

    def build(self, commit: Commit) -> BuildResult:
        """The commit's kernel, built or reused."""

    def run(self, commit: Commit, boots: int) -> Runs:
        """Boot a commit's kernel under boot seeds 1 to ``boots``, and run the question's workload, if any, once in each."""

    @property
    def spent(self) -> Spent:
        """What was really done, by this process."""


def symbols_of(artifact: Path) -> frozenset[str]:
    """Names in a kernel's System.map."""
    lines = (artifact / "System.map").read_text(errors="replace").splitlines()
    return frozenset(line.split()[-1] for line in lines if line.strip())
