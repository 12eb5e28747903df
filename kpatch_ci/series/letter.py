# SPDX-License-Identifier: GPL-2.0-or-later
"""What every form of input becomes before its diff is cut out: a letter."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kpatch_ci.model.errors import UserError


class NoDiffError(UserError):
    """A text that is readable, but no patch."""


@dataclass(frozen=True, slots=True)
class Source:
    """A stretch of a file: all of it, or one mail of an mbox."""

    path: Path
    """The file; ``archive:member`` for a file of an archive, ``file:name`` for what is attached to a mail."""
    data: bytes
    first_line: int = 1
    """Line of the file where ``data`` begins."""
    position: int | None = None
    """Which mail of the file this is, from 1; None where it is the only one."""
    origin: int = 0
    """Which of the things that were asked for it came from."""
    strip: int | None = None
    """Leading directories of the diff's names (-p), where a quilt series says it."""
    ordered: bool = False
    """Whether its place among the others is the one to apply it in (a quilt series), whatever its number."""

    def __str__(self) -> str:
        return f"{self.path} (mail {self.position})" if self.position else str(self.path)


@dataclass(frozen=True, slots=True)
class Letter:
    """Words and body of one mail, transfer encoding undone, diff not yet found."""

    source: Source
    subject: str
    """As it came, prefix included; empty where the form has none."""
    author: str
    email: str
    body: bytes
    """Bytes as sent: the diff in it must not pass through a charset."""
    charset: str = "utf-8"
    first_line: int | None = 1
    """Line of the file where the body begins; None where the body had to be decoded and so is not in the file as such."""
    notes: Sequence[str] = ()
    message_id: str = ""
    date: str = ""
    answers: Sequence[str] = ()
    """Message-IDs that the mail refers to, the one that it answers first."""
    flowed: str = ""
    """``flowed`` or ``delsp`` where the mail says so (RFC 3676)."""
    quoted_from: bool = False
    """Whether it comes from an mbox that writes ``>From`` for ``From``."""

    problem: UserError | None = None
    """Why its text could not be read: an error only where the letter is needed."""
    exact: bool = False
    """Whether the subject is a commit's: brackets in it are no prefix."""

    def with_words(self, **words: Any) -> Letter:
        """The same letter, some of its fields said anew."""
        return replace(self, **words)

    def at(self, index: int) -> str:
        """``file:line`` of the body's line ``index`` (from 0)."""
        if self.first_line is None:
            return f"{self.source}, decoded body:{index + 1}"
        return f"{self.source.path}:{self.first_line + index}"


def split_lines(data: bytes) -> list[bytes]:
    """Lines with their ends, cut at LF alone: a lone CR or form feed is part of a kernel's source line."""
    return io.BytesIO(data).readlines()


def decode(data: bytes, charset: str = "utf-8") -> str:
    """Text in the charset that it claims, else UTF-8, else Latin-1 (which takes anything)."""
    for name in (charset, "utf-8"):
        try:
            return data.decode(name)
        except (UnicodeError, LookupError, ValueError):
            continue
    return data.decode("latin-1")
