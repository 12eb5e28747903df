# SPDX-License-Identifier: GPL-2.0-or-later
"""One file's part of a diff after another, as they stand in a body: headers, hunks or binary blocks, and what is between them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from kpatch_ci.model.errors import UserError
from kpatch_ci.series.diffstat import Diffstat
from kpatch_ci.series.hunks import HUNK, Lines, Place, binary, hunk, starts_section
from kpatch_ci.series.names import NULL, git_pair, header_name, unquote

_EXTENDED = re.compile(
    rb"index |old mode |new mode |deleted file mode |new file mode |copy from |copy to |rename from |rename to |"
    rb"similarity index |dissimilarity index "
)
_CHANGES = re.compile(rb"index ([0-9a-f]{7,64})\.\.([0-9a-f]{7,64})")
_EMPTY_BLOBS = (
    "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
    "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
)


@dataclass(slots=True)
class Section:
    """One file's part of a diff, as it stands in the body."""

    start: int
    head: int
    """Index of the line after its header lines."""
    end: int = 0
    names: list[tuple[str, bytes]] = field(default_factory=list)
    added: int = 0
    removed: int = 0


def read_sections(lines: Lines, start: int, at: Place) -> tuple[list[Section], list[int]]:
    """Every file's part from ``start`` on, and the lines between and after them."""
    sections: list[Section] = []
    left: list[int] = []
    position = start
    while position < len(lines):
        if starts_section(lines, position):
            section = _section(lines, position, at)
            if section.end > position + 1:
                _refuse_nameless(lines, section, at)
                sections.append(section)
            else:
                left.append(position)
            position = section.end
        else:
            left.append(position)
            position += 1
    for index in left:
        refuse_stray(lines, index, at)
    return sections, left


def _section(lines: Lines, start: int, at: Place) -> Section:
    position = start + lines[start].startswith(b"diff ")
    section = Section(start, position)
    while position < len(lines) and _is_header(lines, position):
        if name := header_name(lines[position]):
            section.names.append(name)
        position += 1
    section.head = position
    following = lines[position] if position < len(lines) else b""
    if following.startswith(b"GIT binary patch"):
        section.end = binary(lines, position, at)
    elif following.startswith((b"Binary files ", b"Files ")) and following.rstrip().endswith(b" differ"):
        raise _no_content(at(position))
    else:
        _read_hunks(lines, section, at)
    return section


def _refuse_nameless(lines: Lines, section: Section, at: Place) -> None:
    first = lines[section.start]
    if not section.names and not (first.startswith(b"diff --git ") and git_pair(first)):
        raise UserError(
            "a part of the diff names no file", where=at(section.start), expected="`diff --git a/NAME b/NAME`"
        )


def _is_header(lines: Lines, index: int) -> bool:
    line = lines[index]
    if _EXTENDED.match(line) or line.startswith(b"+++ "):
        return True
    return line.startswith(b"--- ") and index + 1 < len(lines) and lines[index + 1].startswith(b"+++ ")


def _read_hunks(lines: Lines, section: Section, at: Place) -> None:
    position = section.head
    while position < len(lines) and lines[position].startswith(b"@@"):
        position, added, removed = hunk(lines, position, at)
        section.added, section.removed = section.added + added, section.removed + removed
    section.end = position
    keys = {key for key, _ in section.names}
    if position == section.head:
        if keys & {"---", "+++"} or _promises(lines[section.start : section.head]):
            raise UserError(
                "no hunk follows the names of the files",
                where=at(min(position, len(lines) - 1)),
                expected="a line such as @@ -10,7 +10,9 @@",
            )
    elif not {"---", "+++"} <= keys:
        raise UserError(
            "a hunk without the names of its file above it",
            where=at(section.head),
            expected="lines `--- a/...` and `+++ b/...` before the first hunk of a file",
        )


def _promises(head: Sequence[bytes]) -> bool:
    """Whether an index line says that content changes: an empty file that comes or goes has no hunk, any other has."""
    for line in head:
        if match := _CHANGES.match(line):
            old, new = (match.group(n).decode() for n in (1, 2))
            return old != new and not any(
                full.startswith(blob) for blob in (old, new) for full in _EMPTY_BLOBS if blob.strip("0")
            )
    return False


def refuse_stray(lines: Lines, index: int, at: Place) -> None:
    """Raise UserError for a hunk, binary note or context diff at a line that belongs to no file: it would be lost."""
    line, following = lines[index], lines[index + 1] if index + 1 < len(lines) else b""
    if HUNK.match(line) and following[:1] in (b" ", b"+", b"-", b"\n"):
        raise UserError(
            "a hunk without the names of its file above it",
            where=at(index),
            expected="lines `--- a/...` and `+++ b/...` before the first hunk of a file, and no line between its hunks",
        )
    if line.startswith(b"Binary files ") and line.rstrip().endswith(b" differ"):
        raise _no_content(at(index))
    refuse_context_diff(lines[index : index + 3], lambda offset: at(index + offset))


def refuse_context_diff(lines: Lines, at: Place) -> None:
    """Raise UserError where lines begin a context diff."""
    for index in range(len(lines) - 2):
        if (
            lines[index].startswith(b"*** ")
            and lines[index + 1].startswith(b"--- ")
            and lines[index + 2][:5] == b"*****"
        ):
            raise UserError(
                "a context diff (*** and ---)", where=at(index), expected="a unified diff: diff -u, or git format-patch"
            )


def _no_content(where: str) -> UserError:
    return UserError(
        "a binary file changes, but its content is not in the diff",
        where=where,
        expected="a diff made with git format-patch or git diff --binary",
    )


def pairs_of(first: bytes, section: Section) -> list[tuple[str, str]]:
    """What tells how many directories to strip: both names of a file, or each on its own where it is moved or copied."""
    old, new = names_of(first, section)
    moved = any(key.startswith(("rename ", "copy ")) for key, _ in section.names)
    return [(old, NULL), (NULL, new)] if moved else [(old, new)]


def names_of(first: bytes, section: Section) -> tuple[str, str]:
    """The two names of a section, /dev/null for what cannot be told."""
    known = {key: unquote(raw) for key, raw in section.names}
    if "---" in known or "+++" in known:
        return known.get("---", NULL), known.get("+++", NULL)
    return (git_pair(first) or (NULL, NULL)) if first.startswith(b"diff --git ") else (NULL, NULL)


def counted(sections: Sequence[Section]) -> Diffstat:
    """What a diffstat of these sections would say."""
    return Diffstat(len(sections), sum(s.added for s in sections), sum(s.removed for s in sections))
