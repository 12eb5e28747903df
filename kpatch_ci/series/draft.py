# SPDX-License-Identifier: GPL-2.0-or-later
"""A letter with its diff cut out: what may become a patch."""

from __future__ import annotations

from dataclasses import dataclass, field

from kpatch_ci.model.errors import UserError
from kpatch_ci.model.series import LeftOut, Patch
from kpatch_ci.series.letter import Letter
from kpatch_ci.series.subject import Subject

DIFF_EXPECTED = "a patch: lines `diff --git a/... b/...`, or `--- a/...` and `+++ b/...`, and hunks"


@dataclass(frozen=True, slots=True)
class Draft:
    """A mail that may be a patch (``patch`` is None where it holds no diff, or where ``problem`` says what is wrong with it)."""

    subject: Subject
    letter: Letter
    text: str
    """Its words, the diff cut out."""
    patch: Patch | None
    reply: bool = False
    """Whether the mail's own subject answers another."""
    problem: UserError | None = None
    base_commit: str = ""
    prerequisites: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        return str(self.letter.source)

    @property
    def where(self) -> str:
        """``file:line`` of its body."""
        return self.letter.at(0)

    def left_out(self, reason: str) -> LeftOut:
        return LeftOut(self.source, str(self.subject), reason)


@dataclass(slots=True)
class Account:
    """What is said about the series as a whole while it is put together."""

    notes: list[str] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
