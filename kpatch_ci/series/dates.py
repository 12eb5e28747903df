# SPDX-License-Identifier: GPL-2.0-or-later
"""Dates of mails, of git show and of DEP-3 headers, as git stores them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_OF_GIT = ("%a %b %d %H:%M:%S %Y %z", "%a %b %d %H:%M:%S %Y")
_RAW = re.compile(r"@?(\d{1,12}) ([+-])(\d\d)(\d\d)$")
_MAX_ZONE = 24 * 60


def git_date(text: str) -> str:
    """``1356998400 +0100``: seconds since 1970 and the zone as it was written (UTC where none is); empty for what is no date."""
    text = re.sub(r"\s*\([^()]*\)\s*$", "", text.strip())
    if match := _RAW.match(text):
        return f"{match.group(1)} {match.group(2)}{match.group(3)}{match.group(4)}"
    when = _rfc(text) or _iso(text) or _default(text)
    if when is None:
        return ""
    offset = when.utcoffset()
    if offset is None:
        when = when.replace(tzinfo=UTC)
    minutes = int(offset.total_seconds()) // 60 if offset is not None else 0
    seconds = int(when.timestamp())
    if seconds < 0 or abs(minutes) >= _MAX_ZONE:
        return ""  # a commit has no room for it
    sign = "-" if minutes < 0 else "+"
    return f"{seconds} {sign}{abs(minutes) // 60:02}{abs(minutes) % 60:02}"


def _rfc(text: str) -> datetime | None:
    try:
        return parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _iso(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(re.sub(r"\s+([+-]\d\d:?\d\d)$", r"\1", text))
    except ValueError:
        return None


def _default(text: str) -> datetime | None:
    for form in _OF_GIT:
        try:
            return datetime.strptime(" ".join(text.split()), form)
        except ValueError:
            continue
    return None
