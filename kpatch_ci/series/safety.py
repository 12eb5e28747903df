# SPDX-License-Identifier: GPL-2.0-or-later
"""What a patch must not do before anything is done with it, and what in it does not look like what it is.

Refused: names that leave the tree or mean git's own files, links that lead out of it, submodules, names and binary blocks of
absurd size, control and direction-changing characters in names. Flagged, with file and line: such characters in added lines
and in the mail's words, where they can make a reviewer read other code than the compiler does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kpatch_ci.model.errors import UserError

FLAG = "look closely: "
"""Every note that flags something begins so."""
MAX_BINARY = 64 * 1024 * 1024
MAX_NAME, MAX_PART = 4095, 255
"""Bytes of a path and of one name in it: what Linux takes."""
MAX_FLAGS = 5

_DIRECTION = "\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c"
_INVISIBLE = "\u200b-\u200d\u2060\ufeff\u00ad"
_CONTROL = "\x00-\x08\x0b\x0e-\x1f\x7f-\x9f"
_ODD = re.compile(f"[{_DIRECTION}{_INVISIBLE}{_CONTROL}]")
_IN_NAMES = re.compile(f"[{_DIRECTION}{_INVISIBLE}{_CONTROL}\t\n\r\f]")
_HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_MODE = re.compile(rb"(?:new file mode|new mode|index [0-9a-f]+\.\.[0-9a-f]+) (\d{6})\s*$")
_BLOCK = re.compile(rb"(?:literal|delta) (\d+)\s*$")
_LINK, _SUBMODULE = b"120000", b"160000"
_GIT = re.compile(r"\.git[ .]*$|git~\d", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Added:
    path: str
    line: int
    data: bytes
    link: bool


def inspect(diff: bytes, paths: Sequence[str], where: str, words: Sequence[tuple[str, str]] = ()) -> tuple[str, ...]:
    """Flags of a patch, for people. ``words``: what the mail says, each with what it is called (``subject``, ...).

    ``paths`` are those that the diff touches, below the tree's root. Raises UserError for what is refused.
    """
    for path in paths:
        _check_name(path, where)
    flags = [f"{FLAG}the {name} holds {_named(text)}" for name, text in words if _ODD.search(text)]
    lines = []
    for added in _walk(diff, where):
        text = added.data.decode("utf-8", "replace").rstrip("\r\n")
        if added.link:
            _check_link(added.path, text, where)
        if _ODD.search(text):
            lines.append(f"{FLAG}{added.path}:{added.line} holds {_named(text)}: {visible(text.strip())[:100]}")
    more = [f"{FLAG}{len(lines) - MAX_FLAGS} more such lines"] if len(lines) > MAX_FLAGS else []
    return (*flags, *lines[:MAX_FLAGS], *more)


def visible(text: str) -> str:
    """``text`` with every character that hides or moves others written as its number."""
    return _IN_NAMES.sub(lambda match: f"<U+{ord(match[0]):04X}>", text)


def _named(text: str) -> str:
    found = sorted({ord(char) for char in _ODD.findall(text)})
    kinds = [
        kind
        for kind, pattern in (
            ("changes the direction of text", _DIRECTION),
            ("is invisible", _INVISIBLE),
            ("is a control character", _CONTROL),
        )
        if any(re.match(f"[{pattern}]", chr(code)) for code in found)
    ]
    return f"{', '.join(f'U+{code:04X}' for code in found)}, which {' or '.join(kinds)}"


def _check_name(path: str, where: str) -> None:
    parts = path.split("/")
    shown = visible(path)[:200]
    if path.startswith("/") or ".." in parts or "" in parts or "." in parts:
        raise UserError(
            f"refused: '{shown}' is no path inside of a tree", where=where, expected="a path such as mm/slub.c"
        )
    if any(_GIT.match(part) for part in parts):
        raise UserError(f"refused: '{shown}' is one of git's own files", where=where, expected="files of the tree")
    if _IN_NAMES.search(path):
        expected = "a name of characters that can be seen"
        raise UserError(f"refused: the name '{shown}' holds {_odd_in_name(path)}", where=where, expected=expected)
    size = len(path.encode("utf-8", "surrogateescape"))
    if size > MAX_NAME or any(len(part.encode("utf-8", "surrogateescape")) > MAX_PART for part in parts):
        expected = f"at most {MAX_NAME} bytes, and {MAX_PART} between slashes"
        raise UserError(f"refused: a name of {size} bytes: '{shown[:60]}...'", where=where, expected=expected)


def _odd_in_name(path: str) -> str:
    return ", ".join(f"U+{ord(char):04X}" for char in sorted(set(_IN_NAMES.findall(path))))


def _check_link(path: str, target: str, where: str) -> None:
    """A link may lead up to the root and down again: ``..`` behind a name could climb from what that name links to."""
    parts = [part for part in target.split("/") if part not in ("", ".")]
    up = next((n for n, part in enumerate(parts) if part != ".."), len(parts))
    depth = path.count("/")
    if target.startswith("/") or ".." in parts[up:] or up > depth:
        raise UserError(
            f"refused: the link '{visible(path)}' leads out of the tree, to '{visible(target)[:100]}'",
            where=where,
            expected="a link to a file of the tree",
        )


def _walk(diff: bytes, where: str) -> Iterator[_Added]:
    """Added lines of a diff whose hunks are as long as they say. Refuses submodules and binary blocks of absurd size."""
    lines = diff.split(b"\n")
    path, link, position = "", False, 0
    while position < len(lines):
        line = lines[position]
        position += 1
        if line.startswith(b"diff "):
            path, link = "", False
        elif line.startswith(b"+++ "):
            path = _name(line)
        elif match := _MODE.match(line):
            if match[1] == _SUBMODULE:
                raise UserError("refused: a submodule", where=where, expected="files of the tree")
            link = link or match[1] == _LINK
        elif (match := _BLOCK.match(line)) and int(match[1]) > MAX_BINARY:
            raise UserError(
                f"refused: a binary file of {match[1].decode()} bytes", where=where, expected="at most 64 MiB"
            )
        elif hunk := _HUNK.match(line):
            old, first, new = int(hunk[1] or 1), int(hunk[2]), int(hunk[3] or 1)
            start = position
            position = _end(lines, start, old, new)
            yield from _added(lines[start:position], path, first, link=link)


def _end(lines: Sequence[bytes], position: int, old: int, new: int) -> int:
    while position < len(lines) and (old > 0 or new > 0):
        kind = lines[position][:1]
        old -= kind in (b" ", b"-", b"", b"\r")
        new -= kind in (b" ", b"+", b"", b"\r")
        position += 1
    return position


def _added(lines: Sequence[bytes], path: str, number: int, *, link: bool) -> Iterator[_Added]:
    for line in lines:
        if line.startswith(b"+"):
            yield _Added(path, number, line[1:], link)
        number += not line.startswith((b"-", b"\\"))


def _name(line: bytes) -> str:
    name = line[4:].split(b"\t", 1)[0].strip().strip(b'"').decode("utf-8", "replace")
    return name.partition("/")[2] or name
