# SPDX-License-Identifier: GPL-2.0-or-later
"""Finds the diff in a body and cuts it out byte for byte, checking that every hunk is as long as its header says."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kpatch_ci.model.errors import UserError

Place = Callable[[int], str]
"""Index of a line in the body -> ``file:line``."""

_HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_EXTENDED = re.compile(
    rb"index |old mode |new mode |deleted file mode |new file mode |copy from |copy to |rename from |rename to |"
    rb"similarity index |dissimilarity index "
)
_NAMES = re.compile(rb"(copy from|copy to|rename from|rename to|---|\+\+\+) (.*?)(?:\t.*)?\r?\n?$", re.DOTALL)
_BLOB = re.compile(rb"^index ([0-9a-f]{7,64})\.\.[0-9a-f]{7,64}(?: |\r?$)", re.MULTILINE)
_BREAK = re.compile(rb"---[ \t\r]*\n?$")
_VERSION = re.compile(rb"\d+\.\d+")


@dataclass(frozen=True, slots=True)
class Diff:
    """A diff that was found. The message of the mail is what stands before line ``cut`` of the body."""

    data: bytes
    paths: tuple[str, ...]
    cut: int
    notes: tuple[str, ...] = ()


def find_diff(lines: Sequence[bytes], at: Place) -> Diff | None:
    """The diff in a body, None where there is none.

    Like git-am: the message ends at a line of three dashes, comments and diffstat up to the diff are dropped, and so is
    what follows the last hunk (signature, list footer). Raises UserError for a hunk that is not as its header says.
    """
    start = next((i for i in range(len(lines)) if _starts(lines, i)), None)
    if start is None:
        return None
    notes: list[str] = []
    if lines[start].endswith(b"\r\n"):
        lines = [line[:-2] + b"\n" if line.endswith(b"\r\n") else line for line in lines]
        notes.append("line ends were CRLF: changed to LF")
    if not lines[-1].endswith(b"\n"):
        lines = [*lines[:-1], lines[-1] + b"\n"]
        notes.append("no newline at the end of the text: added")
    kept: list[bytes] = []
    paths: list[str] = []
    position = start
    while position < len(lines):
        if not _starts(lines, position):
            position += 1
            continue
        end, names = _section(lines, position, at)
        kept += lines[position:end]
        paths += names
        position = end
    cut = next((i for i in range(start) if _BREAK.match(lines[i])), start)
    return Diff(b"".join(kept), tuple(dict.fromkeys(paths)), cut, tuple(notes))


def preimage_blobs(diff: bytes) -> tuple[str, ...]:
    """Blob ids (often abbreviated) of the files before the patch, as its index lines name them; those of new files left out."""
    names = (match.group(1).decode() for match in _BLOB.finditer(diff))
    return tuple(dict.fromkeys(name for name in names if name.strip("0")))


def _starts(lines: Sequence[bytes], index: int) -> bool:
    line = lines[index]
    if line.startswith((b"diff --git ", b"diff -")):
        return True
    following = lines[index + 1] if index + 1 < len(lines) else b""
    return line.startswith(b"--- ") and following.startswith(b"+++ ")


def _section(lines: Sequence[bytes], start: int, at: Place) -> tuple[int, list[str]]:
    """One file's part of a diff: index of the line after it, and the paths it touches."""
    position = start
    if lines[start].startswith(b"diff "):
        position += 1
    names: list[tuple[bytes, bytes]] = []
    while position < len(lines) and _is_header(lines, position):
        if match := _NAMES.match(lines[position]):
            names.append((match.group(1), match.group(2)))
        position += 1
    following = lines[position] if position < len(lines) else b""
    if following.startswith(b"GIT binary patch"):
        position = _binary(lines, position)
    elif following.startswith((b"Binary files ", b"Files ")) and following.rstrip().endswith(b" differ"):
        raise UserError(
            "a binary file changes, but its content is not in the diff",
            where=at(position),
            expected="a diff made with git format-patch or git diff --binary",
        )
    else:
        position = _hunks(lines, position, at, needed=any(key in (b"---", b"+++") for key, _ in names))
    return position, _paths(lines[start], names)


def _is_header(lines: Sequence[bytes], index: int) -> bool:
    line = lines[index]
    if _EXTENDED.match(line) or line.startswith(b"+++ "):
        return True
    return line.startswith(b"--- ") and index + 1 < len(lines) and lines[index + 1].startswith(b"+++ ")


def _hunks(lines: Sequence[bytes], position: int, at: Place, *, needed: bool) -> int:
    first = position
    while position < len(lines) and lines[position].startswith(b"@@"):
        position = _hunk(lines, position, at)
    if position == first and needed:
        raise UserError(
            "no hunk follows the names of the files",
            where=at(min(position, len(lines) - 1)),
            expected="a line such as @@ -10,7 +10,9 @@",
        )
    return position


def _hunk(lines: Sequence[bytes], header: int, at: Place) -> int:
    """Index of the line after a hunk that is exactly as long as its header says."""
    match = _HUNK.match(lines[header])
    if match is None:
        combined = lines[header].startswith(b"@@@")
        raise UserError(
            "a merge's combined diff cannot be applied" if combined else "not a hunk header",
            where=at(header),
            expected="the diff against one parent" if combined else "@@ -line,count +line,count @@ on one line",
        )
    old, new = (int(count) if count is not None else 1 for count in match.groups())
    promise = f"{old} old and {new} new lines"
    position = header + 1
    while old > 0 or new > 0:
        if position >= len(lines) or _ends_hunk(lines, position):
            lost = f"{old} old and {new} new are missing at {at(position)}"
            raise _short(promise, lost, at(header))
        takes = _TAKES.get(lines[position][:1])
        if takes is None:
            raise _wrapped(lines[position], position, at)
        old, new = old - takes[0], new - takes[1]
        if old < 0 or new < 0:
            raise _long(promise, header, position, at)
        position += 1
    if position < len(lines) and lines[position].startswith(b"\\"):
        position += 1
    if position < len(lines) and _strays(lines, position):
        raise _long(promise, header, position, at)
    return position


_TAKES = {b" ": (1, 1), b"\n": (1, 1), b"\r": (1, 1), b"-": (1, 0), b"+": (0, 1), b"\\": (0, 0)}
"""First byte of a hunk's line -> how many old and new lines it is. An empty line is an empty context line to git, too."""


def _ends_hunk(lines: Sequence[bytes], index: int) -> bool:
    """Whether a line cannot belong to a hunk though its header wants more: the next hunk, the next file, git's signature."""
    if lines[index].startswith((b"@@ -", b"diff --git ")):
        return True
    signature = lines[index].rstrip(b"\r\n") == b"-- "
    return signature and index + 1 < len(lines) and _VERSION.match(lines[index + 1]) is not None


def _strays(lines: Sequence[bytes], index: int) -> bool:
    """Whether a line after a complete hunk looks like one more line of it; git would drop it without a word."""
    line = lines[index]
    if not line.strip() or line.rstrip() in (b"--", b"---") or _starts(lines, index):
        return False
    return line.startswith((b" ", b"+", b"-"))


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
    shown = line.decode(errors="replace").strip()[:60]
    return UserError(
        f"a line inside a hunk begins with neither a blank nor + nor -: {shown!r}",
        where=at(position),
        expected="the diff as git made it: a mail program wrapped the line above, or took away leading white space",
    )


def _binary(lines: Sequence[bytes], position: int) -> int:
    """Skip ``GIT binary patch``: one or two blocks, each ended by an empty line."""
    position += 1
    while position < len(lines) and lines[position].startswith((b"literal ", b"delta ")):
        while position < len(lines) and lines[position].strip():
            position += 1
        position += 1
    return min(position, len(lines))


def _paths(first: bytes, names: Sequence[tuple[bytes, bytes]]) -> list[str]:
    """Paths below the tree's root; a rename touches two."""
    found: dict[str, str] = {}
    for key, raw in names:
        name = _unquote(raw)
        if name != "/dev/null":
            found[key.decode()] = name if key not in (b"---", b"+++") else _strip(name)
    moved = [found[key] for key in ("rename from", "rename to", "copy to") if key in found]
    changed = found.get("+++", found.get("---"))
    if moved or changed:
        return list(dict.fromkeys([*moved, *([changed] if changed else [])]))
    pair = first.removeprefix(b"diff --git ").rstrip(b"\r\n")
    return [_strip(_unquote(pair[len(pair) // 2 + 1 :]))] if first.startswith(b"diff --git ") else []


def _strip(name: str) -> str:
    return name.partition("/")[2] or name


def _unquote(raw: bytes) -> str:
    """A path as git prints it: C-quoted where it holds control or non-ASCII bytes."""
    raw = raw.strip()
    if len(raw) >= 2 and raw.startswith(b'"') and raw.endswith(b'"'):
        try:
            raw = raw[1:-1].decode("unicode_escape").encode("latin-1")
        except UnicodeError:
            raw = raw[1:-1]
    return raw.decode(errors="replace")
