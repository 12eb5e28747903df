# SPDX-License-Identifier: GPL-2.0-or-later
"""The format of result.json (``kpatch-ci/result/1``), as models. Keys that this version does not know are kept, not refused."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from kpatch_ci.model.result import DEFAULT_ORIGIN
from kpatch_ci.model.series import ApplyMethod, Fit
from kpatch_ci.report.claimparts import ClaimDoc, JudgedClaimDoc
from kpatch_ci.report.parts import (
    KEEP_UNKNOWN,
    CheckDoc,
    EachDoc,
    ModeText,
    Number,
    StatusText,
    VerdictText,
    WarningDoc,
)
from kpatch_ci.report.recorded import PlacementTimesDoc, TimelineDoc


class Part(BaseModel):
    """Base of every object in the document."""

    model_config = KEEP_UNKNOWN


class LastChangeDoc(Part):
    """The commit that last changed lines of the tree."""

    commit: str
    author: str = ""
    date: str = ""
    summary: str = ""
    lines: list[int] = []


class PlacementDoc(Part):
    """A hunk that moved, lost context, or went into another function than the mail names."""

    path: str
    hunk: int
    line: int
    offset: int = 0
    fuzz: int = 0
    function: str = ""
    found_in: str = ""
    also: list[int] = []
    warning: str = ""


class HunkDoc(Part):
    """A hunk that found no place."""

    path: str
    line: int
    header: str
    wanted: str
    found: str
    reason: str
    hunk: int = 0
    function: str = ""
    text: str = ""
    at: int = 0
    differing: list[int] = []
    there: bool = False
    fuzz: int | None = None
    last_changes: list[LastChangeDoc] = []


class PatchDoc(Part):
    """One patch of a series on the tree."""

    subject: str
    source: str
    status: StatusText
    method: ApplyMethod | None = None
    offsets: list[int] = []
    tree_id: str | None = None
    failures: list[HunkDoc] = []
    placements: list[PlacementDoc] = []
    notes: list[str] = []


class ApplyDoc(Part):
    """A series on the tree."""

    status: StatusText
    method: ApplyMethod | None = None
    tree_id: str | None = None
    reason: str = ""
    changed_paths: list[str] = []
    patches: list[PatchDoc] = []
    fit: Fit | None = None


class MissDoc(Part):
    """A requested symbol that is not in the final .config as asked."""

    symbol: str
    wanted: str
    got: str
    reason: str
    where: str


class BuildDoc(Part):
    """One arm's build. ``log`` is relative to the output directory; empty where there is none."""

    status: StatusText
    seconds: Number = 0.0
    objects: int = 0
    cached: bool = False
    warnings: list[WarningDoc] = []
    new_warnings: list[WarningDoc] = []
    """Patched arm only: what the patch introduced."""
    misses: list[MissDoc] = []
    reason: str = ""
    log: str = ""
    log_tail: str = ""
    key: str = ""
    release: str = ""
    tree_id: str = ""
    image_digest: str = ""
    config_digest: str = ""
    reproduce: str = ""


class BootDoc(Part):
    """One boot of one arm under one boot seed."""

    boot_seed: int
    status: StatusText
    seconds: Number = 0.0
    cached: bool = False
    cpus: int | None = None
    differences: list[str] = []
    reason: str = ""
    log: str = ""
    log_tail: str = ""
    key: str = ""
    snapshot_digest: str = ""
    qemu_argv: list[str] = []
    reproduce: str = ""


class ArmBootDoc(Part):
    """The boots of one arm; ``status`` is the worst of them, ``facts`` what the first guest that told any said."""

    status: StatusText
    cpus: int | None = None
    facts: dict[str, Any] = {}
    differences: list[str] = []
    reason: str = ""
    boots: list[BootDoc] = []


class ReplicateDoc(Part):
    """A replicate that gave no samples."""

    workload: str
    case: str
    seed: str
    status: StatusText
    reason: str = ""
    log_tail: str = ""


class ReplicatesDoc(Part):
    """Count of one arm's replicates, and those that gave no samples."""

    total: int = 0
    cached: int = 0
    failures: list[ReplicateDoc] = []


class ProofDoc(Part):
    """One thing that the series adds, looked up in both images."""

    kind: str
    name: str
    in_baseline: bool
    in_patched: bool
    holds: bool
    derived: bool = False
    """Read from the patch, not named by the series: not to find it is no failure."""
    why: str = ""

    @property
    def broken(self) -> bool:
        """Whether it was promised and does not hold."""
        return not self.holds and not self.derived


class ComparisonDoc(Part):
    """One metric of one case; ``case`` is ``all`` for a primary figure. ``seeds`` are ``boot.run``."""

    workload: str
    case: str
    metric: str
    unit: str
    better: Literal["lower", "higher"]
    mode: ModeText
    baseline: list[float | None]
    patched: list[float | None]
    seeds: list[str]
    change_percent: Number | None = None
    ci_percent: tuple[Number, Number] | None = None
    ci_method: str = ""
    p_value: Number | None = None
    p_adjusted: Number | None = None
    verdict: VerdictText
    primary: bool = False
    reason: str = ""
    boot_variance_share: Number | None = None
    spread_between_percent: Number | None = None
    spread_within_percent: Number | None = None
    units: int | None = None
    mde_percent: Number | None = None


class FrequencyTimesDoc(Part):
    """Time of all replicates of one arm together, and the shares (0..1) of it by frequency in kHz."""

    seconds: Number = 0.0
    shares: dict[str, Number] = {}


class ResidencyDoc(Part):
    """Frequencies of one policy (``policy0``: its first CPU's number) in one case."""

    workload: str
    case: str
    policy: str
    baseline: FrequencyTimesDoc = FrequencyTimesDoc()
    patched: FrequencyTimesDoc = FrequencyTimesDoc()


class BuildsDoc(Part):
    """Both arms' builds."""

    baseline: BuildDoc
    patched: BuildDoc


class BootsDoc(Part):
    """Both arms' boots."""

    baseline: ArmBootDoc
    patched: ArmBootDoc


class RunsDoc(Part):
    """Both arms' replicates."""

    baseline: ReplicatesDoc = ReplicatesDoc()
    patched: ReplicatesDoc = ReplicatesDoc()


class ArchDoc(Part):
    """A series on one architecture."""

    arch: str
    machine: str = ""
    status: StatusText
    reason: str = ""
    reproduce: str = ""
    apply: ApplyDoc
    build: BuildsDoc
    proofs: list[ProofDoc] = []
    not_compiled: list[str] = []
    config_changes: list[str] = []
    new_complaints: list[str] = []
    each: EachDoc | None = None
    checks: list[CheckDoc] = []
    differing: dict[str, list[str]] | None = None
    """Objects that differ between the arms, each with its sections that do; null where that is not known."""
    boot: BootsDoc
    replicates: RunsDoc = RunsDoc()
    comparisons: list[ComparisonDoc] = []
    claims: list[JudgedClaimDoc] = []
    """What the series' text claims beside what was measured here; empty in files of versions that did not judge them."""
    residencies: list[ResidencyDoc] = []
    clusters: dict[str, list[int]] = {}
    """The machine file's clusters and their CPUs."""
    placement_times: list[PlacementTimesDoc] = []
    timelines: list[TimelineDoc] = []


class SeriesDoc(Part):
    """A series, or a variant of one, on every architecture. ``arms``: what was compared, baseline first."""

    name: str
    title: str = ""
    notes: str = ""
    variant: str = ""
    arms: tuple[str, str] = ("baseline", "patched")
    claims: list[ClaimDoc] = []
    """As read from the mails."""
    chosen: list[str] = []
    """What `try` picked from the paths that the series touches, and why."""
    flags: list[str] = []
    """Characters in the patches that hide or reorder text, with file and line."""
    status: StatusText
    arches: list[ArchDoc]


class StageDoc(Part):
    """Why a stage ran or was reused."""

    stage: str
    key: str
    cached: bool
    seconds: Number
    why: str
    status: StatusText


class Document(Part):
    """result.json as a whole."""

    schema_id: Literal["kpatch-ci/result/1"] = Field(alias="schema")
    run_id: str
    status: StatusText
    started: str = ""
    seconds: Number = 0.0
    profile: str = ""
    mode: ModeText
    command: str = ""
    origin: str = DEFAULT_ORIGIN
    """What KCIDB calls the system that submits this run."""
    tree: dict[str, str] = {}
    thresholds: dict[str, float] = {}
    fingerprint: dict[str, Any]
    series: list[SeriesDoc]
    stages: list[StageDoc] = []
