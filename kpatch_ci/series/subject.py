# SPDX-License-Identifier: GPL-2.0-or-later
"""Subject lines of patch mails: prefix, numbering, revision."""

from __future__ import annotations

import re
from dataclasses import dataclass

_REPLY = re.compile(r"\s*(?:re|aw|sv|fwd?)\s*:\s*", re.IGNORECASE)
_PREFIX = re.compile(r"\s*((?:\[[^\]]*\]\s*)+)")
_NUMBER = re.compile(r"(?<![\d.])(\d{1,5})\s*/\s*(\d{1,5})(?![\d.])", re.ASCII)
_REVISION = re.compile(r"(?:\b|(?<=PATCH))v(\d{1,3})\b", re.IGNORECASE | re.ASCII)


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


def parse_subject(raw: str) -> Subject:
    """Take a subject apart; never fails. As in git-am all leading brackets are prefix."""
    rest, reply = " ".join(raw.split()), False
    while match := _REPLY.match(rest):
        rest, reply = rest[match.end() :], True
    prefix = ""
    if match := _PREFIX.match(rest):
        prefix, rest = match.group(1).strip(), rest[match.end() :]
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
