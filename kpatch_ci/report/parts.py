# SPDX-License-Identifier: GPL-2.0-or-later
"""Of result.json: the types that its models share, and what is asked of a series beside its figures."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer

from kpatch_ci.model.status import Mode, Status, Verdict

Plain = PlainSerializer(str, return_type=str)
StatusText = Annotated[Status, Plain]
VerdictText = Annotated[Verdict, Plain]
ModeText = Annotated[Mode, Plain]
Number = Annotated[float, Field(allow_inf_nan=False)]


KEEP_UNKNOWN = ConfigDict(extra="allow", frozen=True)


class Part(BaseModel):
    """Base of every object here."""

    model_config = KEEP_UNKNOWN


class WarningDoc(Part):
    """One compiler or Kbuild message. ``context``: the function that it is in."""

    path: str
    line: int
    severity: str
    text: str
    option: str = ""
    context: str = ""


class PatchBuildDoc(Part):
    """The tree after one patch. ``log`` is relative to the output directory; empty where there is none."""

    number: int
    subject: str
    tree_id: str
    status: StatusText
    seconds: Number = 0.0
    objects: int = 0
    cached: bool = False
    new_warnings: list[WarningDoc] = []
    errors: list[WarningDoc] = []
    reason: str = ""
    log_tail: str = ""
    log: str = ""


class EachDoc(Part):
    """A build after every patch. ``first_break``: number of the first patch after which the kernel does not build."""

    status: StatusText
    reason: str = ""
    first_break: int | None = None
    patches: list[PatchBuildDoc] = []


class FindingDoc(Part):
    """One thing that a checker newly says. ``patch`` is 0 where the checker works on objects."""

    path: str
    line: int
    severity: str
    kind: str
    text: str
    source: str = ""
    patch: int = 0


class CheckDoc(Part):
    """What one checker says; ``status`` is ``error`` where it could not do its work, never for what it found."""

    checker: str
    status: StatusText
    findings: list[FindingDoc] = []
    checked: int = 0
    unchecked: list[str] = []
    seconds: Number = 0.0
    cached: bool = False
    reason: str = ""
    log_tail: str = ""
