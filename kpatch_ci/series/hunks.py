# SPDX-License-Identifier: GPL-2.0-or-later
"""Hunks and binary blocks of a diff: each must be exactly as long as its header says."""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Callable, Sequence

from kpatch_ci.model.errors import UserError

Place = Callable[[int], str]
"""Index of a line in the body -> ``file:line``."""
Lines = Sequence[bytes]

HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
MAX_BINARY = 64 * 1024 * 1024
"""Bytes that one binary block may say it unpacks to."""

_VERSION = re.compile(rb"\d+\.\d+")
_BLOCK = re.compile(rb"(literal|delta) (\d{1,12})\r?\n?$")
_OF_A_HUNK = re.compile(rb"[ +-]\t|\+[A-Za-z_}/#]")
_NBSP = (b"\xc2\xa0", b"\xa0")


def starts_section(lines: Lines, index: int) -> bool:
    """Whether a file's part of a diff begins at a line; prose that merely mentions ``diff -u`` does not."""
    line = lines[index]
    following = lines[index + 1] if index + 1 < len(lines) else b""
    if line.startswith(b"diff --git "):
        return True
    if line.startswith(b"diff -"):
        return following.startswith((b"--- ", b"index ", b"Binary files ", b"new file mode ", b"deleted file mode "))
    return line.startswith(b"--- ") and following.startswith(b"+++ ")


def hunk(lines: Lines, header: int, at: Place) -> tuple[int, int, int]:
    """Index of the line after a hunk that is exactly as long as its header says, and how many lines it adds and removes."""
    match = HUNK.match(lines[header])
    if match is None:
        combined = lines[header].startswith(b"@@@")
        raise UserError(
            "a merge's combined diff cannot be applied" if combined else "not a hunk header",
            where=at(header),
            expected="the diff against one parent" if combined else "@@ -line,count +line,count @@ on one line",
        )
    old, new = (int(count) if count is not None else 1 for count in match.groups())
    promise = f"{old} old and {new} new lines"
    position, added, removed = header + 1, 0, 0
    while old > 0 or new > 0:
        if position >= len(lines) or _ends_hunk(lines, position):
            lost = f"{old} old and {new} new are missing at {at(min(position, len(lines) - 1))}"
            raise _short(promise, lost, at(header))
        takes = _TAKES.get(lines[position][:1])
        if takes is None:
            raise _wrapped(lines[position], position, at)
        old, new = old - takes[0], new - takes[1]
        added, removed = added + (takes == (0, 1)), removed + (takes == (1, 0))
        if old < 0 or new < 0:
            raise _long(promise, header, position, at)
        position += 1
    if position < len(lines) and lines[position].startswith(b"\\"):
        position += 1
    if position < len(lines) and _strays(lines, position):
        raise _long(promise, header, position, at)
    return position, added, removed


def binary(lines: Lines, position: int, at: Place) -> int:
    """Index of the line after ``GIT binary patch``: one or two blocks, each whole, unpacked to the size it says, then an empty line."""
    start, position = position, position + 1
    while position < len(lines) and (match := _BLOCK.match(lines[position])):
        size, packed, first = int(match.group(2)), bytearray(), position
        position += 1
        while position < len(lines) and lines[position].strip():
            packed += _unpacked(lines[position].rstrip(b"\r\n"), position, at)
            position += 1
        if not _inflates_to(bytes(packed), size):
            raise UserError(
                f"a binary block does not unpack to the {size} bytes that it says",
                where=at(first),
                expected=_WHOLE_BINARY,
            )
        position += 1
    if position == start + 1:
        raise UserError("no block follows `GIT binary patch`", where=at(start), expected=_WHOLE_BINARY)
    return min(position, len(lines))


def _unpacked(line: bytes, position: int, at: Place) -> bytes:
    """One line of git's base 85: a letter for the length (A is 1, a is 27), then five characters for four bytes."""
    letter, digits = line[:1], line[1:]
    length = letter[0] - 64 if b"A" <= letter <= b"Z" else letter[0] - 70 if b"a" <= letter <= b"z" else 0
    try:
        if not length or len(digits) != (length + 3) // 4 * 5:
            raise ValueError(length)
        return base64.b85decode(digits)[:length]
    except ValueError as error:
        raise UserError("a line of a binary block is damaged", where=at(position), expected=_WHOLE_BINARY) from error


def _inflates_to(packed: bytes, size: int) -> bool:
    if size > MAX_BINARY:
        return False
    unpacker = zlib.decompressobj()
    try:
        return len(unpacker.decompress(packed, size + 1)) == size and unpacker.eof
    except (zlib.error, binascii.Error):
        return False


_WHOLE_BINARY = "the block as git format-patch or git diff --binary made it, with the empty line after it"

_TAKES = {b" ": (1, 1), b"\n": (1, 1), b"\r": (1, 1), b"-": (1, 0), b"+": (0, 1), b"\\": (0, 0)}
"""First byte of a hunk's line -> how many old and new lines it is. An empty line is an empty context line to git, too."""


def _ends_hunk(lines: Lines, index: int) -> bool:
    """Whether a line cannot belong to a hunk though its header wants more: the next hunk, the next file, git's signature."""
    if lines[index].startswith((b"@@ -", b"diff --git ")):
        return True
    signature = lines[index].rstrip(b"\r\n") == b"-- "
    return signature and index + 1 < len(lines) and _VERSION.match(lines[index + 1]) is not None


def _strays(lines: Lines, index: int) -> bool:
    """Whether a line after a complete hunk looks like one more line of it; git would drop it without a word.

    After an empty line only what cannot be prose counts, as far as lines begin like those of a hunk: an added line, or
    one with a tab after its first character.
    """
    apart = False
    for position in range(index, len(lines)):
        line = lines[position]
        if not line.strip():
            apart = True
        elif line.rstrip() in (b"--", b"---") or starts_section(lines, position) or line[:1] not in b" +-":
            return False
        elif not apart or _OF_A_HUNK.match(line):
            return True
    return False


def _short(promise: str, lost: str, where: str) -> UserError:
    return UserError(
        f"a hunk is shorter than its header says: it promises {promise}; {lost}",
        where=where,
        expected="the hunk as git made it: lines are lost, or the header was edited",
    )


def _long(promise: str, header: int, position: int, at: Place) -> UserError:
    return UserError(
        f"a hunk is longer than its header says: {at(header)} promises {promise}, and this line is one too many",
        where=at(position),
        expected="the hunk as git made it: a line was added, or the header was edited",
    )


def _wrapped(line: bytes, position: int, at: Place) -> UserError:
    if line.startswith(_NBSP):
        return UserError(
            "a line inside a hunk begins with a no-break space (U+00A0) where a blank belongs",
            where=at(position),
            expected="the diff as git made it: a mail program or a web page changed its white space",
        )
    shown = line.decode(errors="replace").strip()[:60]
    return UserError(
        f"a line inside a hunk begins with neither a blank nor + nor -: {shown!r}",
        where=at(position),
        expected="the diff as git made it: a mail program wrapped the line above, or took away leading white space",
    )
