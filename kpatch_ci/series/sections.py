# SPDX-License-Identifier: GPL-2.0-or-later
"""A diff taken apart: its files, what blobs they were and become, and their hunks.

Paths may be quoted, renamed, new or gone; ``find_diff`` has checked that every hunk is as long as its header says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kpatch_ci.series.letter import split_lines
from kpatch_ci.series.names import unquote

_AT = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)")
_INDEX = re.compile(rb"index ([0-9a-f]{4,64})\.\.([0-9a-f]{4,64})")
_TIMESTAMP = re.compile(rb"\t.*$")


@dataclass(frozen=True, slots=True)
class Hunk:
    """One hunk. ``lines`` begin with a blank, ``-`` or ``+``, and have no line end; markers of a missing one are left out."""

    number: int
    """From 1, in its file: as git apply counts."""
    old_start: int
    old_count: int
    new_start: int
    new_count: int
    row: int
    """Index of its header among the diff's lines."""
    function: str
    """What stands after the second ``@@``: git's idea of the function that the hunk begins in."""
    lines: tuple[str, ...]

    @property
    def header(self) -> str:
        """The ``@@`` line."""
        ranges = f"-{self.old_start},{self.old_count} +{self.new_start},{self.new_count}"
        return f"@@ {ranges} @@ {self.function}".rstrip()

    @property
    def old(self) -> list[str]:
        """Lines that the file must have."""
        return [line[1:] for line in self.lines if line[:1] in " -"]

    @property
    def new(self) -> list[str]:
        """Lines that the file has afterwards."""
        return [line[1:] for line in self.lines if line[:1] in " +"]

    @property
    def leading(self) -> int:
        """Lines of context before the first change."""
        return next((i for i, line in enumerate(self.lines) if line[:1] in "-+"), len(self.lines))

    @property
    def trailing(self) -> int:
        """Lines of context after the last change. None: the hunk belongs at the file's end."""
        return next((i for i, line in enumerate(reversed(self.lines)) if line[:1] in "-+"), len(self.lines))


@dataclass(frozen=True, slots=True)
class Section:
    """One file's part of a diff. ``old`` is empty for a new file, ``new`` for one that goes."""

    old: str
    new: str
    old_blob: str
    """As the index line has it, often abbreviated; empty where there is no such line, or for a new file."""
    new_blob: str
    hunks: tuple[Hunk, ...]
    rows: tuple[int, int]
    """Indices of its first line in the diff, and of the line after its last."""

    @property
    def path(self) -> str:
        """The file as the tree has it before."""
        return self.old or self.new

    @property
    def indexed(self) -> bool:
        """Whether the section says which blob it was made for (a new file says: none)."""
        return bool(self.old_blob or (self.new_blob and not self.old))


def sections(diff: bytes) -> tuple[Section, ...]:
    """The files of a diff, in order."""
    return tuple(_sections([line.rstrip(b"\n") for line in split_lines(diff)]))


def text(data: bytes) -> list[str]:
    """A file's lines, as hunks have them: no line ends, every byte kept."""
    return data.decode("utf-8", "surrogateescape").split("\n")


def shown(lines: Sequence[str]) -> str:
    """Lines as one text that can be printed."""
    return "\n".join(lines).encode("utf-8", "surrogateescape").decode(errors="replace")


def _sections(lines: Sequence[bytes]) -> Iterator[Section]:
    position = 0
    while position < len(lines):
        start = position
        names: dict[str, bytes] = {}
        while position < len(lines) and not lines[position].startswith((b"@@ ", b"GIT binary patch")):
            if position > start and _begins(lines, position, names):
                break
            _note(lines[position], names)
            position += 1
        hunks: list[Hunk] = []
        while position < len(lines) and (match := _AT.match(lines[position])):
            hunk, position = _hunk(lines, position, match, len(hunks) + 1)
            hunks.append(hunk)
        if position < len(lines) and lines[position].startswith(b"GIT binary patch"):
            position = _after_binary(lines, position)
        yield _section(names, tuple(hunks), (start, position))


def _begins(lines: Sequence[bytes], position: int, names: dict[str, bytes]) -> bool:
    """Whether the next file begins here, though the one before has no hunk (a mode change, a pure rename)."""
    line = lines[position]
    return line.startswith(b"diff ") or (line.startswith(b"--- ") and "---" in names)


def _note(line: bytes, names: dict[str, bytes]) -> None:
    if match := _INDEX.match(line):
        names["old blob"], names["new blob"] = match.groups()
        return
    for key in ("diff --git", "rename from", "rename to", "copy from", "copy to", "new file", "deleted file"):
        if line.startswith(key.encode() + b" "):
            names[key] = line[len(key) + 1 :]
            return
    for key in ("---", "+++"):
        if line.startswith(key.encode() + b" ") and key not in names:
            names[key] = _TIMESTAMP.sub(b"", line[4:])


def _hunk(lines: Sequence[bytes], position: int, match: re.Match[bytes], number: int) -> tuple[Hunk, int]:
    start, old, begin, new, function = match.groups()
    old_count, new_count = (int(count) if count is not None else 1 for count in (old, new))
    left_old, left_new = old_count, new_count
    taken: list[str] = []
    row, position = position, position + 1
    while position < len(lines) and (left_old > 0 or left_new > 0):
        line = (lines[position] or b" ").decode("utf-8", "surrogateescape")
        if line[0] != "\\":
            line = line if line[0] in " +-" else f" {line}"
            left_old -= line[0] in " -"
            left_new -= line[0] in " +"
            taken.append(line)
        position += 1
    if position < len(lines) and lines[position].startswith(b"\\"):
        position += 1
    name = function.decode(errors="replace").strip()
    return Hunk(number, int(start), old_count, int(begin), new_count, row, name, tuple(taken)), position


def _after_binary(lines: Sequence[bytes], position: int) -> int:
    while position < len(lines) and not lines[position].startswith((b"diff ", b"--- ")):
        position += 1
    return position


def _section(names: dict[str, bytes], hunks: tuple[Hunk, ...], rows: tuple[int, int]) -> Section:
    old = _name(names, "---", ("rename from", "copy from"))
    new = _name(names, "+++", ("rename to", "copy to"))
    if not old and not new and "diff --git" in names:
        old = new = _same(names["diff --git"])
    old_blob, new_blob = (_blob(names.get(key, b"")) for key in ("old blob", "new blob"))
    return Section(
        old="" if "new file" in names else old,
        new="" if "deleted file" in names else new,
        old_blob="" if "new file" in names else old_blob,
        new_blob="" if "deleted file" in names else new_blob,
        hunks=hunks,
        rows=rows,
    )


def _name(names: dict[str, bytes], key: str, moved: tuple[str, ...]) -> str:
    for other in moved:
        if other in names:
            return unquote(names[other])
    raw = unquote(names.get(key, b""))
    return "" if raw in ("", "/dev/null") else raw.partition("/")[2] or raw


def _same(pair: bytes) -> str:
    """The path of ``a/PATH b/PATH``, where both are the same: there is nothing else to go by."""
    return unquote(pair[len(pair) // 2 + 1 :]).partition("/")[2]


def _blob(name: bytes) -> str:
    return name.decode() if name.strip(b"0") else ""
