# SPDX-License-Identifier: GPL-2.0-or-later
"""Takes subjects apart: reply marks, bracketed prefix, position in the series, revision."""

from __future__ import annotations

import re
from dataclasses import dataclass

_REPLY = re.compile(
    r"\s*(?:(?:re|aw|sv|vs|antwort|odp|rif|ref|rép|回复|答复|fwd?|wg|tr|转发)(?:\[\d+\]|\^\d+|\(\d+\))?\s*[:\uff1a]\s*)",
    re.IGNORECASE,
)
_BRACKET = re.compile(r"\s*(\[[^\]]*\])\s*")
_NUMBER = re.compile(
    r"(?:(?<![\w.])|(?<=PATCH)|(?<=RFC))(\d{1,5})\s*(?:/|\bof\b)\s*(\d{1,5})(?![\d.])", re.ASCII | re.IGNORECASE
)
_REVISION = re.compile(r"(?:\b|(?<=PATCH)|(?<=RFC))v(\d{1,3})(?:\.(\d{1,3}))?\b", re.IGNORECASE | re.ASCII)
_AGAIN = re.compile(r"\b(?:RESEND|REPOST|RE-SEND|RESENT)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Subject:
    """A subject taken apart. ``number`` is None where the mail is not numbered; 0 is a cover letter."""

    text: str
    """What is left without reply marks and prefix."""
    prefix: str = ""
    """Leading brackets as they came, such as ``[PATCH v2 1/3]``."""
    number: int | None = None
    total: int | None = None
    revision: int = 1
    reply: bool = False

    @property
    def rank(self) -> tuple[int, int, bool]:
        """By this the newest of several postings is found: revision, its minor number (v2.1), whether it was sent again."""
        found = _REVISION.search(self.prefix)
        minor = int(found.group(2) or 0) if found else 0
        return self.revision, minor, _AGAIN.search(self.prefix) is not None

    @property
    def key(self) -> str:
        """The same for a patch's subject in every revision, small differences aside."""
        return " ".join(self.text.lower().split()).rstrip(".")

    def __str__(self) -> str:
        return f"{self.prefix} {self.text}".strip()


def parse_subject(raw: str) -> Subject:
    """Take a subject apart; never fails. As in git-am all leading brackets are prefix."""
    rest, reply, brackets = " ".join(raw.split()), False, list[str]()
    while True:
        if match := _REPLY.match(rest):
            reply = True
        elif match := _BRACKET.match(rest):
            brackets.append(match.group(1))
        else:
            break
        rest = rest[match.end() :]
    prefix = " ".join(brackets)
    number = _NUMBER.search(prefix)
    revision = _REVISION.search(prefix)
    return Subject(
        text=rest,
        prefix=prefix,
        number=int(number.group(1)) if number else None,
        total=int(number.group(2)) if number else None,
        revision=int(revision.group(1)) if revision else 1,
        reply=reply,
    )
