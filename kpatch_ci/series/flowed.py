# SPDX-License-Identifier: GPL-2.0-or-later
"""format=flowed (RFC 3676): what a mail program may have done to the lines of a diff, undone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kpatch_ci.series.letter import split_lines

_STAT = re.compile(rb"^( {1,2})(?:\S.*\| +\d+|\d+ files? changed,)")
_SIGNATURE = b"-- "


def readings(body: bytes, *, delsp: bool) -> Iterator[tuple[bytes, str]]:
    """Bodies that a flowed one may stand for, the likeliest first, each with what was done to it.

    Lines that begin with a blank get one more on the way (stuffing): a diffstat, or else the context lines, shows whether
    the program did so. Which reading is right is told by the hunks: only there they are as long as their headers say.
    """
    lines = split_lines(body)
    stuffed = _is_stuffed(lines)
    plain = [line[1:] if stuffed and line.startswith(b" ") else line for line in lines]
    joined, count = _joined(plain, delsp=delsp)
    unstuffed = "the blank that it puts before a line's first blank taken away"
    if stuffed:
        yield b"".join(plain), f"format=flowed: {unstuffed}"
        yield b"".join(joined), f"format=flowed: {unstuffed}, {count} wrapped line(s) joined"
    else:
        yield body, "format=flowed: its lines may have been wrapped; none that matters was"
        yield b"".join(joined), f"format=flowed: {count} wrapped line(s) joined"


def _is_stuffed(lines: Sequence[bytes]) -> bool:
    for line in lines:
        if match := _STAT.match(line):
            return len(match.group(1)) == 2
    diff = next((i for i, line in enumerate(lines) if line.startswith(b"@@ -")), len(lines))
    context = [line for line in lines[diff:] if line.startswith(b" ") and line.strip()]
    return bool(context) and all(line.startswith(b"  ") for line in context)


def _joined(lines: Sequence[bytes], *, delsp: bool) -> tuple[list[bytes], int]:
    """Lines that end with a blank continue on the next."""
    made: list[bytes] = []
    count, open_line = 0, False
    for line in lines:
        text = line.rstrip(b"\r\n")
        if open_line:
            made[-1] += line
            count += 1
        else:
            made.append(line)
        open_line = text.endswith(b" ") and text != _SIGNATURE and bool(text.strip())
        if open_line:
            made[-1] = made[-1].rstrip(b"\r\n")
            if delsp:
                made[-1] = made[-1][:-1]
    return made, count
