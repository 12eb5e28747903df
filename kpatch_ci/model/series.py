# SPDX-License-Identifier: GPL-2.0-or-later
"""Series: ordered patches with their mails, and what became of them on a tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from kpatch_ci.model.claim import Claim
from kpatch_ci.model.status import Status


@dataclass(frozen=True, slots=True)
class Patch:
    """One mail: its words and its diff, as read from ``source``."""

    source: str
    """File (and, where there are several mails in it, the position) that it came from."""
    subject: str
    """Subject without the [PATCH ...] prefix."""
    prefix: str
    """The bracketed prefix as it came, such as ``[PATCH 2/2]``; empty where there is none."""
    author: str
    email: str
    message: str
    diff: bytes
    paths: tuple[str, ...]
    """Files that the diff touches, in order."""
    digest: str
    """sha256 of the diff: what a build keys on is the resulting tree; this one names the patch in reports."""
    notes: tuple[str, ...] = ()
    """What intake had to repair or assume, said aloud."""
    message_id: str = ""
    """Message-ID of the mail without its angle brackets; the commit where the patch is one; else empty."""
    date: str = ""
    """The author's date as RFC 5322 writes it; empty where there is none."""
    base_commit: str = ""
    """What a ``base-commit:`` trailer of the mail names; the first patch of a series has its cover letter's."""
    prerequisites: tuple[str, ...] = ()
    """Patch ids of ``prerequisite-patch-id:`` trailers: patches that have to be in the tree before this one."""
    trailers: tuple[str, ...] = ()
    """``Reviewed-by: ...`` and the like that replies gave to this patch; ``message`` stays as mailed."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A mail or file that intake read and did not take."""

    source: str
    subject: str
    reason: str


@dataclass(frozen=True, slots=True)
class Intake:
    """What was read for a series as a whole, so that nothing is taken or left out without a word."""

    taken: tuple[str, ...] = ()
    """Where each patch came from, in their order."""
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()
    """What had to be repaired or assumed about the series; a patch has its own notes."""
    revision: int | None = None
    """Revision that was taken; None where no mail names a patch of a series."""
    cover_subject: str = ""
    cover: str = ""
    """Text of the cover letter, never applied; empty where there was none."""
    base_commit: str = ""
    prerequisites: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Adds:
    """What must be found in the patched kernel and not in the baseline: the proof that the patch is in the image."""

    symbols: tuple[str, ...] = ()
    """Names in System.map."""
    sysctls: tuple[str, ...] = ()
    """Paths below /proc/sys."""
    sched_features: tuple[str, ...] = ()
    """Names in debugfs sched/features."""


@dataclass(frozen=True, slots=True)
class Switches:
    """What turns a change off in a running kernel; empty: nothing does."""

    sched_features: tuple[str, ...] = ()
    """Scheduler features that the change hangs on; off is ``NO_<name>``."""
    sysctls: tuple[tuple[str, str], ...] = ()
    """Path below /proc/sys, and the value that restores the old behaviour."""

    def __bool__(self) -> bool:
        return bool(self.sched_features or self.sysctls)


BASELINE = "baseline"
"""The kernel of the tree as it is."""


@dataclass(frozen=True, slots=True)
class Arm:
    """One side of a comparison: a kernel, and what is switched off in it before a workload starts."""

    kernel: str
    """``baseline``, or the name under which a series was applied and built."""
    off: Switches = Switches()
    setting: str = ""
    """What its label says of ``off``; empty: that it is off."""

    @property
    def label(self) -> str:
        """The kernel, marked where something is set in it."""
        return f"{self.kernel}({self.setting or 'off'})" if self.off else self.kernel


class Contrast(StrEnum):
    """Which two arms a series compares."""

    PATCH = "patch"
    """Baseline against patched: what the series does."""
    CARRIED = "carried"
    """Baseline against patched and switched off: what it costs to carry the code."""
    SWITCHED = "switched"
    """One kernel, switched off against on: what the change alone does, in a binary that is the same."""


@dataclass(frozen=True, slots=True)
class Series:
    """What is tested as one thing. ``members`` names the series that a stack consists of.

    A *variant* is a series of its own: same patches, but on other baseline patches, or with other arms.
    """

    name: str
    title: str
    origin: str
    patches: tuple[Patch, ...]
    ports: Mapping[str, tuple[Patch, ...]] = field(default_factory=dict)
    """Kernel version prefix -> the patches to use on such a tree instead."""
    paths: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    adds: Adds = Adds()
    notes: str = ""
    members: tuple[Series, ...] = ()
    intake: Intake | None = None
    """How it was read; None for a series that was put together, such as a stack."""
    switches: Switches = Switches()
    claims: tuple[Claim, ...] = ()
    only: tuple[str, ...] = ()
    """Workloads that it is measured with; empty: all of the run's."""
    variants: Mapping[str, Series] = field(default_factory=dict)
    """Those that its folder declares."""
    variant: str = ""
    """Behind the ``+`` of its name; empty for the series proper."""
    contrast: Contrast = Contrast.PATCH
    base: Series | None = None
    """Baseline patches: both arms have them."""
    kernel: str = ""
    """Name under which its patches are applied and built; empty: its own."""
    chosen: tuple[str, ...] = ()
    """Why it is tested as it is, in words: what `try` picked from the paths that it touches."""

    @property
    def patched_kernel(self) -> str:
        """What its patched arm boots."""
        return self.kernel or self.name

    @property
    def arms(self) -> tuple[Arm, Arm]:
        """Baseline and patched."""
        before = Arm(self.base.name if self.base else BASELINE)
        on, off = Arm(self.patched_kernel), Arm(self.patched_kernel, self.switches)
        by_contrast = {Contrast.PATCH: (before, on), Contrast.CARRIED: (before, off), Contrast.SWITCHED: (off, on)}
        return by_contrast[self.contrast]


class ApplyMethod(StrEnum):
    """How a patch went on."""

    AS_MAILED = "as-mailed"
    THREE_WAY = "three-way"
    PORT = "port"
    FUZZ = "fuzz"
    """Not all of the context that the mail brings was looked at. Only where a person asked for it."""


class Fit(StrEnum):
    """How a series stands to a tree, in a word or two."""

    AS_MAILED = "as mailed"
    THREE_WAY = "three-way"
    PORT = "port"
    FUZZ = "fuzz"
    PORT_NEEDED = "port needed"
    """Text that it changes is not there, and the tree does not know the files that it was made for."""
    CONFLICT = "conflict"
    """The files that it was made for are known, and both sides changed the same lines."""
    PARTLY = "partly there"
    """What does not apply is in the tree already; the rest is not."""
    THERE = "already there"
    SUPERSEDED = "superseded"
    """The files were once exactly as the series leaves them, and have changed since: it is in the tree's history."""
    EMPTY = "changes nothing"


@dataclass(frozen=True, slots=True)
class Placement:
    """A hunk that did not go where the mail says, or not on all of its context, or into another function: never silent."""

    path: str
    hunk: int
    """From 1, in its file."""
    line: int
    """Where it begins in the tree as it was before."""
    offset: int
    """Lines by which it was moved."""
    fuzz: int = 0
    """Lines of context that were not looked at, at the worse of its two ends."""
    function: str = ""
    """Function that the mail's ``@@`` line names; empty where it names none."""
    found_in: str = ""
    """Function of the tree that it went into."""
    also: tuple[int, ...] = ()
    """Other lines of the file where the same text stands."""
    warning: str = ""
    """Why a person should look at it; empty for a hunk that only moved."""


@dataclass(frozen=True, slots=True)
class LastChange:
    """The commit that last changed lines of a file."""

    commit: str
    author: str
    date: str
    """YYYY-MM-DD."""
    summary: str
    lines: tuple[int, ...]
    """Lines of the tree's file that are from it."""


@dataclass(frozen=True, slots=True)
class HunkFailure:
    """A hunk that found no place: what it wanted, and what the tree has there."""

    path: str
    line: int
    """First line of the hunk in the file as the patch saw it; 0 where the file itself is missing."""
    header: str
    wanted: str
    found: str
    reason: str
    hunk: int = 0
    """From 1, in its file; 0 where it is about the file."""
    function: str = ""
    """Function that the mail names, else the one of the tree."""
    text: str = ""
    """The hunk itself."""
    at: int = 0
    """Line of the tree's file where ``found`` begins; 0 where there is nothing like it."""
    differing: tuple[int, ...] = ()
    """Lines of the tree's file that are not as the hunk wants them; those around it where lines are only missing."""
    there: bool = False
    """Whether what the hunk would make is in the tree already."""
    fuzz: int | None = None
    """Lines of context at one end that would have to be ignored for it to apply; None where that does not help."""
    last_changes: tuple[LastChange, ...] = ()
    """Who last changed what the tree has there, newest first; empty where there is no history."""


@dataclass(frozen=True, slots=True)
class AppliedPatch:
    """One patch on the tree: by which method, and how far hunks moved."""

    subject: str
    source: str
    status: Status
    method: ApplyMethod | None
    offsets: tuple[int, ...] = ()
    """Lines by which each hunk that moved was moved, in order; empty where none did."""
    tree_id: str | None = None
    """Git tree after this patch."""
    failures: tuple[HunkFailure, ...] = ()
    """Why as-mailed did not do (also kept where a port was used instead)."""
    placements: tuple[Placement, ...] = ()
    """Hunks that moved, that lost context, or that went into another function than the mail names."""
    notes: tuple[str, ...] = ()
    """What git warned of, such as another file mode."""


@dataclass(frozen=True, slots=True)
class ApplyResult:
    """A series on a tree. ``tree_id`` is the git tree to build from, None unless passed."""

    status: Status
    method: ApplyMethod | None
    """The least direct method that any of its patches needed."""
    tree_id: str | None
    patches: tuple[AppliedPatch, ...]
    changed_paths: tuple[str, ...] = ()
    reason: str = ""
    fit: Fit | None = None
    """None where it was not tried."""

    @property
    def placements(self) -> tuple[Placement, ...]:
        """Those of all patches."""
        return tuple(placement for patch in self.patches for placement in patch.placements)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a person should look at before believing this, one line each."""
        found = [f"{p.path}: hunk {p.hunk} at line {p.line}: {p.warning}" for p in self.placements if p.warning]
        return (*found, *(note for patch in self.patches for note in patch.notes))
