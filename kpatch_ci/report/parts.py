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
    """File, relative to the kernel tree; empty where the message names none."""
    line: int
    """From 1; 0 where the message names none."""
    severity: str
    """``warning`` or ``error``."""
    text: str
    """The message without place and option."""
    option: str = ""
    """Such as ``-Wunused-variable``; empty where the compiler names none."""
    context: str = ""
    """Function that it is in, or else its line of source; empty where neither is known."""


class PatchBuildDoc(Part):
    """The tree after one patch. ``log`` is relative to the output directory; empty where there is none."""

    number: int
    """From 1."""
    subject: str
    """The patch's subject line."""
    tree_id: str
    """Git tree after this patch."""
    status: StatusText
    """``passed``, ``failed`` (the patch's fault), ``skipped`` (a prerequisite failed) or ``error`` (ours or the machine's fault)."""
    seconds: Number = 0.0
    """Wall time of the build when it was made."""
    objects: int = 0
    """Object files compiled."""
    cached: bool = False
    """Whether an earlier build was reused."""
    new_warnings: list[WarningDoc] = []
    """Warnings that the tree before this patch has not."""
    errors: list[WarningDoc] = []
    """Errors that ended the build."""
    reason: str = ""
    """Why it is not passed; empty where it is."""
    log_tail: str = ""
    """The log's last lines, where it failed."""
    log: str = ""
    """Relative to the output directory; empty where there is none."""


class EachDoc(Part):
    """A build after every patch. ``first_break``: number of the first patch after which the kernel does not build."""

    status: StatusText
    """``passed``, ``failed`` (the patch's fault), ``skipped`` (a prerequisite failed) or ``error`` (ours or the machine's fault)."""
    reason: str = ""
    """One line; empty where every patch builds."""
    first_break: int | None = None
    """Number of the first patch after which the kernel does not build; null where each builds."""
    patches: list[PatchBuildDoc] = []
    """One a patch, in the series' order."""


class FindingDoc(Part):
    """One thing that a checker newly says. ``patch`` is 0 where the checker works on objects."""

    path: str
    """File, relative to the kernel tree; empty where it is about a whole mail."""
    line: int
    """From 1; 0 where none is named."""
    severity: str
    """``error``, ``warning`` or ``check``."""
    kind: str
    """The checker's name for such findings."""
    text: str
    """What it says."""
    source: str = ""
    """The line that it is about."""
    patch: int = 0
    """Number of the patch, from 1; 0 where the checker works on objects."""


class CheckDoc(Part):
    """What one checker says; ``status`` is ``error`` where it could not do its work, never for what it found."""

    checker: str
    """``W=1``, ``sparse`` or ``checkpatch``."""
    status: StatusText
    """``error`` where it could not do its work; never for what it found."""
    findings: list[FindingDoc] = []
    """What it says of the patched tree and not of the baseline."""
    checked: int = 0
    """Objects or patches that it was shown."""
    unchecked: list[str] = []
    """Objects that could not be shown to it."""
    seconds: Number = 0.0
    """Wall time."""
    cached: bool = False
    """Whether an earlier outcome was reused."""
    reason: str = ""
    """Why it could not do its work."""
    log_tail: str = ""
    """The log's last lines, where it could not."""
