# SPDX-License-Identifier: GPL-2.0-or-later
"""Series: ordered patches with their mails, and what became of them on a tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

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
class Series:
    """What is tested as one thing. ``members`` names the series that a stack consists of."""

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


class ApplyMethod(StrEnum):
    """How a patch went on."""

    AS_MAILED = "as-mailed"
    THREE_WAY = "three-way"
    PORT = "port"


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
