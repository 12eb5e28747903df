# SPDX-License-Identifier: GPL-2.0-or-later
"""The format of result.json (``kpatch-ci/result/1``), as models. Keys that this version does not know are kept, not refused."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from kpatch_ci.model.result import DEFAULT_ORIGIN
from kpatch_ci.report.applyparts import ApplyDoc, HunkDoc
from kpatch_ci.report.armparts import ArmBootDoc, BootDoc, BuildDoc, OnceDoc, ReplicateDoc, ReplicatesDoc
from kpatch_ci.report.claimparts import ClaimDoc, JudgedClaimDoc
from kpatch_ci.report.parts import KEEP_UNKNOWN, CheckDoc, EachDoc, ModeText, Number, StatusText, VerdictText
from kpatch_ci.report.recorded import PlacementTimesDoc, TimelineDoc

__all__ = [
    "ApplyDoc",
    "ArchDoc",
    "ArmBootDoc",
    "BootDoc",
    "BootsDoc",
    "BuildDoc",
    "BuildsDoc",
    "ClaimDoc",
    "ComparisonDoc",
    "Document",
    "FrequencyTimesDoc",
    "HunkDoc",
    "JudgedClaimDoc",
    "OnceDoc",
    "PlacementTimesDoc",
    "ProofDoc",
    "ReplicateDoc",
    "ReplicatesDoc",
    "ResidencyDoc",
    "RunsDoc",
    "SeriesDoc",
    "StageDoc",
    "TimelineDoc",
]


class Part(BaseModel):
    """Base of every object here."""

    model_config = KEEP_UNKNOWN


class ProofDoc(Part):
    """One thing that the series adds, looked up in both images."""

    kind: str
    """``symbol``, ``sysctl``, ``sched_feature``, ``source``, ``function``, ``variable``, ``syscall``, ``parameter`` or ``string``."""
    name: str
    """What was looked up."""
    in_baseline: bool
    """Whether the baseline's image has it."""
    in_patched: bool
    """Whether the patched image has it."""
    holds: bool
    """Whether it is in the patched image only."""
    derived: bool = False
    """Read from the patch, not named by the series: not to find it is no failure."""
    why: str = ""
    """Of a derived one that does not hold: what may be the reason."""

    @property
    def broken(self) -> bool:
        """Whether it was promised and does not hold."""
        return not self.holds and not self.derived


class ComparisonDoc(Part):
    """One metric of one case; ``case`` is ``all`` for a primary figure. ``seeds`` are ``boot.run``."""

    workload: str
    """Name, with its suffix: ``dd-dsync``."""
    case: str
    """``key=value[,key=value]``; ``all`` for a primary figure."""
    metric: str
    """``time``, ``throughput``, or a counter."""
    unit: str
    """Of the samples: ``s``, ``MB/s``, ``count``."""
    better: Literal["lower", "higher"]
    """Which direction is better."""
    mode: ModeText
    """What the guest's clock is made of, and so what the samples are worth."""
    baseline: list[float | None]
    """Samples in the order of ``seeds``; of a primary figure the geometric mean over cases. null: this arm has none."""
    patched: list[float | None]
    """The same of the patched arm."""
    seeds: list[str]
    """``boot.run``, one a sample."""
    change_percent: Number | None = None
    """Positive where patched is better, whatever the metric's direction; null where there is no figure."""
    ci_percent: tuple[Number, Number] | None = None
    """Both ends of the change's interval; null where there is none."""
    ci_method: str = ""
    """How the interval was made, and its confidence."""
    p_value: Number | None = None
    """Of the test that docs/statistics.md names for the mode."""
    p_adjusted: Number | None = None
    """Adjusted for the number of comparisons of its family."""
    verdict: VerdictText
    """What the comparison says of the patch."""
    primary: bool = False
    """Whether it carries the verdict of its workload."""
    reason: str = ""
    """Why the verdict is what it is, in one sentence."""
    boot_variance_share: Number | None = None
    """Share (0..1) of the paired differences' variance that lies between boots; null where it cannot be estimated."""
    spread_between_percent: Number | None = None
    """Standard deviation of the paired effects between boots; null where it cannot be estimated."""
    spread_within_percent: Number | None = None
    """The same between the runs of one boot."""
    units: int | None = None
    """Independent units that the test is over; null where it is not of pairs."""
    mde_percent: Number | None = None
    """Minimum detectable effect: the smallest true change that such a comparison finds in four of five."""


class FrequencyTimesDoc(Part):
    """Time of all replicates of one arm together, and the shares (0..1) of it by frequency in kHz."""

    seconds: Number = 0.0
    """Time of all replicates together."""
    shares: dict[str, Number] = {}
    """Frequency in kHz -> share (0..1) of that time."""


class ResidencyDoc(Part):
    """Frequencies of one policy (``policy0``: its first CPU's number) in one case."""

    workload: str
    """Name, with its suffix."""
    case: str
    """``key=value[,key=value]``."""
    policy: str
    """``policy0``: its first CPU's number."""
    baseline: FrequencyTimesDoc = FrequencyTimesDoc()
    """Of the baseline's replicates."""
    patched: FrequencyTimesDoc = FrequencyTimesDoc()
    """Of the patched arm's."""


class BuildsDoc(Part):
    """Both arms' builds."""

    baseline: BuildDoc
    """Without the patches."""
    patched: BuildDoc
    """With them."""


class BootsDoc(Part):
    """Both arms' boots."""

    baseline: ArmBootDoc
    """Without the patches."""
    patched: ArmBootDoc
    """With them."""


class RunsDoc(Part):
    """Both arms' replicates."""

    baseline: ReplicatesDoc = ReplicatesDoc()
    """Without the patches."""
    patched: ReplicatesDoc = ReplicatesDoc()
    """With them."""


class ArchDoc(Part):
    """A series on one architecture."""

    arch: str
    """``arm64`` or ``x86_64``."""
    machine: str = ""
    """The machine file's name."""
    status: StatusText
    """Failed: does not apply, build or boot, a workload failed, or a primary figure regressed."""
    reason: str = ""
    """The first reason for it; empty where it passed."""
    reproduce: str = ""
    """Command that does this again."""
    apply: ApplyDoc
    """How the series went on."""
    build: BuildsDoc
    """Both kernels."""
    proofs: list[ProofDoc] = []
    """What tells the patched image from the baseline's."""
    not_compiled: list[str] = []
    """Changed code files that no object was made from."""
    config_changes: list[str] = []
    """Kconfig symbols in which the arms differ."""
    new_complaints: list[str] = []
    """What the patched kernel complains of on its consoles, and the baseline does not."""
    lost_once: list[OnceDoc] = []
    """Guests that were lost, and not when booted again: no pass, and no proof against the patch."""
    each: EachDoc | None = None
    """A build after every patch; null where that was not asked for."""
    checks: list[CheckDoc] = []
    """What was asked of W=1, sparse and checkpatch."""
    differing: dict[str, list[str]] | None = None
    """Objects that differ between the arms, each with its sections that do; null where that is not known."""
    boot: BootsDoc
    """Both arms' boots."""
    replicates: RunsDoc = RunsDoc()
    """How many there were, and which failed."""
    comparisons: list[ComparisonDoc] = []
    """Primary figures first, then cases, then counters."""
    claims: list[JudgedClaimDoc] = []
    """What the series' text claims beside what was measured here; empty in files of versions that did not judge them."""
    residencies: list[ResidencyDoc] = []
    """Time at each frequency, where the machine scales frequencies."""
    clusters: dict[str, list[int]] = {}
    """The machine file's clusters and their CPUs."""
    placement_times: list[PlacementTimesDoc] = []
    """Which CPUs ran the tasks of each case."""
    timelines: list[TimelineDoc] = []
    """Frequency over time under one seed, where the machine scales frequencies."""


class SeriesDoc(Part):
    """A series, or a variant of one, on every architecture. ``arms``: what was compared, baseline first."""

    name: str
    """Folder below patches/, with the variant: ``SERIES+VARIANT``."""
    title: str = ""
    """Its subject."""
    notes: str = ""
    """What series.yaml says to readers."""
    variant: str = ""
    """Empty for the series itself."""
    arms: tuple[str, str] = ("baseline", "patched")
    """What was compared, baseline first: a kernel each, marked ``(off)`` where its change was switched off."""
    claims: list[ClaimDoc] = []
    """As read from the mails."""
    chosen: list[str] = []
    """What `try` picked from the paths that the series touches, and why."""
    flags: list[str] = []
    """Characters in the patches that hide or reorder text, with file and line."""
    status: StatusText
    """The worst of its architectures; ``skipped`` where it is for none."""
    arches: list[ArchDoc]
    """One an architecture."""


class StageDoc(Part):
    """Why a stage ran or was reused."""

    stage: str
    """Name, such as ``build arm64 baseline``."""
    key: str
    """sha256 of all that it depends on."""
    cached: bool
    """Whether its outcome was reused."""
    seconds: Number
    """Wall time."""
    why: str
    """Why it ran, or was reused."""
    status: StatusText
    """``passed``, ``failed`` (the patch's fault), ``skipped`` (a prerequisite failed) or ``error`` (ours or the machine's fault)."""


class HostDoc(Part):
    """A machine that did stages of the run. No figure depends on which one did what."""

    name: str
    """As ``hosts:`` of pipeline.yaml calls it; ``here`` is the machine where the run was started."""
    stages: int
    """Builds, boots and replicates that it did."""
    sent: int = 0
    """Bytes that it was sent."""
    received: int = 0
    """Bytes that came from it."""
    lost: str = ""
    """Why it was lost in the middle; empty where it was not."""


class Document(Part):
    """result.json as a whole."""

    schema_id: Literal["kpatch-ci/result/1"] = Field(alias="schema")
    """Which format this is."""
    run_id: str
    """Name of the run: when it began, in UTC."""
    status: StatusText
    """The worst of the series; ``error`` where there is none."""
    started: str = ""
    """ISO 8601, UTC."""
    seconds: Number = 0.0
    """Wall time, installation included."""
    profile: str = ""
    """Of pipeline.yaml."""
    mode: ModeText
    """What the guests' clocks are made of: ``deterministic`` where every replicate is."""
    command: str = ""
    """What reproduces the run."""
    origin: str = DEFAULT_ORIGIN
    """What KCIDB calls the system that submits this run."""
    tree: dict[str, str] = {}
    """The kernel tree: label, release, commit, tree id, origin."""
    thresholds: dict[str, float] = {}
    """alpha, confidence, and ``threshold_percent.WORKLOAD``."""
    fingerprint: dict[str, Any]
    """What every number rests on: tools, images, configuration, machines, host."""
    series: list[SeriesDoc]
    """In pipeline.yaml's order."""
    hosts: list[HostDoc] = []
    """Machines that did stages, where ``hosts:`` names some."""
    stages: list[StageDoc] = []
    """What ran and what was reused, and why."""
