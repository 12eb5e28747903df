# SPDX-License-Identifier: GPL-2.0-or-later
"""Of result.json: how a series went onto the tree."""

from __future__ import annotations

from pydantic import BaseModel

from kpatch_ci.model.series import ApplyMethod, Fit
from kpatch_ci.report.parts import KEEP_UNKNOWN, StatusText


class Part(BaseModel):
    """Base of every object here."""

    model_config = KEEP_UNKNOWN


class LastChangeDoc(Part):
    """The commit that last changed lines of the tree."""

    commit: str
    """Commit id."""
    author: str = ""
    """Name."""
    date: str = ""
    """YYYY-MM-DD."""
    summary: str = ""
    """The commit's first line."""
    lines: list[int] = []
    """Lines of the tree's file that are from it."""


class PlacementDoc(Part):
    """A hunk that moved, lost context, or went into another function than the mail names."""

    path: str
    """File, relative to the kernel tree."""
    hunk: int
    """From 1, in its file."""
    line: int
    """Where it begins in the tree as it was before."""
    offset: int = 0
    """Lines by which it was moved."""
    fuzz: int = 0
    """Lines of context that were not looked at, at the worse of its two ends."""
    function: str = ""
    """Function that the mail's ``@@`` line names; empty where it names none."""
    found_in: str = ""
    """Function of the tree that it went into."""
    also: list[int] = []
    """Other lines of the file where the same text stands."""
    warning: str = ""
    """Why a person should look at it; empty for a hunk that only moved."""


class HunkDoc(Part):
    """A hunk that found no place."""

    path: str
    """File, relative to the kernel tree."""
    line: int
    """Line that the mail names."""
    header: str
    """The hunk's ``@@`` line."""
    wanted: str
    """What the mail expects there."""
    found: str
    """What the tree has there."""
    reason: str
    """Why it finds no place."""
    hunk: int = 0
    """From 1, in its file; 0 in files of versions that did not count."""
    function: str = ""
    """Function that the ``@@`` line names."""
    text: str = ""
    """The whole hunk."""
    at: int = 0
    """Line of the tree that is most like it; 0 where none is."""
    differing: list[int] = []
    """Lines of ``found`` that differ, from 0."""
    there: bool = False
    """Whether the tree has the change already."""
    fuzz: int | None = None
    """Lines of context that would have to be ignored; null where none helps."""
    last_changes: list[LastChangeDoc] = []
    """Who last changed the lines that are there."""


class PatchDoc(Part):
    """One patch of a series on the tree."""

    subject: str
    """The patch's subject line."""
    source: str
    """File that it came from."""
    status: StatusText
    """``passed``, ``failed`` (the patch's fault), ``skipped`` (a prerequisite failed) or ``error`` (ours or the machine's fault)."""
    method: ApplyMethod | None = None
    """How it went on; null where it did not."""
    offsets: list[int] = []
    """Lines by which each hunk moved."""
    tree_id: str | None = None
    """Git tree after it; null where it did not apply."""
    failures: list[HunkDoc] = []
    """Hunks that found no place."""
    placements: list[PlacementDoc] = []
    """Hunks that moved, lost context, or went into another function."""
    notes: list[str] = []
    """What intake and git have to say of it."""


class ApplyDoc(Part):
    """A series on the tree."""

    status: StatusText
    """``passed``, ``failed`` (the patch's fault), ``skipped`` (a prerequisite failed) or ``error`` (ours or the machine's fault)."""
    method: ApplyMethod | None = None
    """How the series went on, its worst patch counting; null where it did not."""
    tree_id: str | None = None
    """Git tree of the patched kernel; null where it did not apply."""
    reason: str = ""
    """Why it did not apply; empty where it did."""
    changed_paths: list[str] = []
    """Files that it changes, relative to the kernel tree."""
    patches: list[PatchDoc] = []
    """One a patch, in order."""
    fit: Fit | None = None
    """How the series stands to the tree, in a word or two; null where that was not asked."""
