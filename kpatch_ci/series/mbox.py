# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether a text is a mail, and the mails of an mbox."""

from __future__ import annotations

import re
from dataclasses import replace

from kpatch_ci.series.letter import Source, split_lines

HEADER = re.compile(rb"[!-9;-~]+[ \t]*:")
_WANTED = re.compile(rb"(?:from|subject|date|message-id|description|author|origin):", re.IGNORECASE)
"""Headers of mails, and those that Debian's patches have (DEP-3)."""
_FROM_LINE = re.compile(rb"From \S+.* \d\d?:\d\d(?::\d\d)? .*\d{4}\s*$")
_OF_GIT = re.compile(rb"From [0-9a-f]{40,64} Mon Sep 17 00:00:00 2001\s*$")
_QUOTED = re.compile(r"^>(>*From )", re.MULTILINE)


def is_mail(data: bytes) -> bool:
    """Whether a text begins with mail headers, after an mbox ``From `` line or not; empty lines above do not matter."""
    wanted = False
    lines = split_lines(data[:65536].lstrip(b"\r\n"))
    for number, line in enumerate(lines):
        if number == 0 and line.startswith(b"From ") and len(lines) > 1 and HEADER.match(lines[1]):
            continue
        if not line.strip() or line.startswith((b"---", b"diff ", b"Index: ")):
            break
        if not HEADER.match(line) and not (number and line[:1] in b" \t"):
            return False
        wanted = wanted or _WANTED.match(line) is not None
    return wanted


def split_mbox(source: Source) -> list[Source]:
    """The mails of an mbox. ``From``, an address and a date separate where a header follows: prose may begin with From."""
    data = source.data.lstrip(b"\r\n")
    skipped = source.data[: len(source.data) - len(data)].count(b"\n")
    lines = split_lines(data)
    starts = [i for i, line in enumerate(lines) if line.startswith(b"From ") and _separates(lines, i)]
    first_line = source.first_line + skipped
    if len(starts) < 2:
        return [replace(source, data=data, first_line=first_line)]
    starts[0] = 0  # whatever stands above the first separator belongs to the first mail
    ends = [*starts[1:], len(lines)]
    return [
        replace(source, data=b"".join(lines[start:end]), first_line=first_line + start, position=position)
        for position, (start, end) in enumerate(zip(starts, ends, strict=True), 1)
    ]


def has_separators(data: bytes) -> bool:
    """Whether mails of an mbox begin anywhere in a text."""
    lines = split_lines(data)
    return any(line.startswith(b"From ") and _separates(lines, i) for i, line in enumerate(lines))


def quotes_from(data: bytes) -> bool:
    """Whether an mbox has ``>From`` where the mail has ``From``: all but those that git format-patch writes."""
    return data.startswith(b"From ") and not _OF_GIT.match(data[: data.find(b"\n") + 1])


def unquote_from(text: str) -> str:
    """The lines of a message as they were before they went into an mbox (mboxrd, mboxo)."""
    return _QUOTED.sub(r"\1", text)


def _separates(lines: list[bytes], index: int) -> bool:
    following = lines[index + 1] if index + 1 < len(lines) else b""
    return _FROM_LINE.match(lines[index]) is not None and HEADER.match(following.removeprefix(b">")) is not None
