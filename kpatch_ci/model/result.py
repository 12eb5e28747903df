# SPDX-License-Identifier: GPL-2.0-or-later
"""What a run found: the one view-model that every report is written from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kpatch_ci.model.boot import BootResult
from kpatch_ci.model.build import BuildResult, Diagnostic, Proof
from kpatch_ci.model.claim import Claim, JudgedClaim
from kpatch_ci.model.comparison import Comparison
from kpatch_ci.model.each import CheckResult, EachResult
from kpatch_ci.model.hosts import HostUse
from kpatch_ci.model.series import ApplyResult
from kpatch_ci.model.status import Mode, Status
from kpatch_ci.model.workload import Replicate

SCHEMA = "kpatch-ci/result/1"
DEFAULT_ORIGIN = "kpatchci"
UNDECIDED = (
    "not so when booted again: a fault of this host or its emulator, or a rare one of the kernel (docs/accelerators.md)"
)
"""What a guest means that was lost once."""


@dataclass(frozen=True, slots=True)
class ArmResult:
    """Baseline or patched on one architecture: its build, its boots (one a boot seed), its replicates."""

    build: BuildResult
    boots: tuple[BootResult, ...] = ()
    replicates: tuple[Replicate, ...] = ()

    @property
    def boot_status(self) -> Status:
        """Worst status of the boots; skipped where there is none."""
        return worst(tuple(b.status for b in self.boots)) if self.boots else Status.SKIPPED


@dataclass(frozen=True, slots=True)
class Once:
    """A guest that was lost, and not when it was booted again: real time under TCG only."""

    arm: str
    """``baseline`` or ``patched``."""
    what: str
    """``boot``, or workload and case."""
    seed: str
    reason: str
    """How the first guest was lost."""
    log_tail: str = ""
    """The last lines of its console, which is ``*.first.console.log`` of the logs."""


@dataclass(frozen=True, slots=True)
class ArchResult:
    """A series on one architecture. ``comparisons`` holds primary figures first, then cases, then counters."""

    arch: str
    machine: str
    apply: ApplyResult
    baseline: ArmResult | None
    patched: ArmResult | None
    new_warnings: tuple[Diagnostic, ...] = ()
    proofs: tuple[Proof, ...] = ()
    not_compiled: tuple[str, ...] = ()
    """Changed code files that no object was made from: another architecture's, or off in this configuration."""
    new_complaints: tuple[str, ...] = ()
    """What the patched kernel complains of on its boots' consoles, and the baseline does not (WARN and the like)."""
    lost_once: tuple[Once, ...] = ()
    """Guests that were lost, and not when booted again. Where there is one, ``status`` is no pass."""
    config_changes: tuple[str, ...] = ()
    """Kconfig symbols in which the arms differ: what the patch did to the configuration, beside its code."""
    each: EachResult | None = None
    """A build after every patch, where that was asked for."""
    checks: tuple[CheckResult, ...] = ()
    """What was asked of W=1, sparse and checkpatch. Findings are no failure."""
    differing: Mapping[str, tuple[str, ...]] | None = None
    """Objects that differ between the arms, each with its sections that do; None where that is not known."""
    comparisons: tuple[Comparison, ...] = ()
    clusters: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """The machine file's clusters and their CPUs."""
    claims: tuple[JudgedClaim, ...] = ()
    """What the series' own text claims, beside ``comparisons``."""
    status: Status = Status.PASSED
    """Failed: does not apply, build (after each patch, where asked for) or boot, a workload failed, or a primary figure regressed."""
    reason: str = ""
    reproduce: str = ""

    @property
    def primaries(self) -> tuple[Comparison, ...]:
        """One figure a workload: what carries the verdict."""
        return tuple(c for c in self.comparisons if c.primary)


@dataclass(frozen=True, slots=True)
class SeriesResult:
    """A series on every architecture."""

    name: str
    title: str
    notes: str
    arches: tuple[ArchResult, ...]
    variant: str = ""
    arms: tuple[str, str] = ("baseline", "patched")
    """What was compared: a kernel each, marked ``(off)`` where its change was switched off."""
    claims: tuple[Claim, ...] = ()
    """As read from its mails; each architecture has them beside its figures."""
    chosen: tuple[str, ...] = ()
    """What `try` picked, and why."""
    flags: tuple[str, ...] = ()
    """What in the patches does not look like what it is: characters that hide or reorder text, with file and line."""

    @property
    def status(self) -> Status:
        """Worst of its architectures; skipped where it is for none."""
        return worst(tuple(a.status for a in self.arches)) if self.arches else Status.SKIPPED


@dataclass(frozen=True, slots=True)
class StageTime:
    """Why a stage ran or was reused, and how long it took (`explain`)."""

    stage: str
    key: str
    cached: bool
    seconds: float
    why: str
    status: Status


@dataclass(frozen=True, slots=True)
class RunResult:
    """A whole run."""

    run_id: str
    started: str
    """UTC, ISO 8601."""
    seconds: float
    profile: str
    mode: Mode
    tree: Mapping[str, str]
    """label, release, commit, tree id, origin."""
    fingerprint: Mapping[str, Any]
    series: tuple[SeriesResult, ...]
    thresholds: Mapping[str, float] = field(default_factory=dict)
    stages: tuple[StageTime, ...] = ()
    command: str = ""
    """What reproduces it."""
    origin: str = DEFAULT_ORIGIN
    """What KCIDB calls the system that submits it (pipeline.yaml: ``origin``)."""
    hosts: tuple[HostUse, ...] = ()
    """Who did its stages, where that was not this machine alone."""

    @property
    def status(self) -> Status:
        """Worst of its series; error where there is none."""
        return worst(tuple(s.status for s in self.series)) if self.series else Status.ERROR


def worst(statuses: tuple[Status, ...]) -> Status:
    """Error beats failed beats skipped beats passed."""
    for status in (Status.ERROR, Status.FAILED, Status.SKIPPED):
        if status in statuses:
            return status
    return Status.PASSED
