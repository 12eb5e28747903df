# SPDX-License-Identifier: GPL-2.0-or-later
"""Finds the diff in a body and cuts it out byte for byte; what is no part of it is named, never dropped without a word."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from kpatch_ci.model.errors import UserError
from kpatch_ci.series.diffstat import Diffstat, find_diffstat, mismatch
from kpatch_ci.series.hunks import HUNK, Lines, Place, binary, hunk, starts_section
from kpatch_ci.series.names import NULL, git_pair, header_name, paths_of, rewrite, strip_level, unquote

_EXTENDED = re.compile(
    rb"index |old mode |new mode |deleted file mode |new file mode |copy from |copy to |rename from |rename to |"
    rb"similarity index |dissimilarity index "
)
_BLOB = re.compile(rb"^index ([0-9a-f]{7,64})\.\.[0-9a-f]{7,64}(?: |\r?$)", re.MULTILINE)
_CHANGES = re.compile(rb"index ([0-9a-f]{7,64})\.\.([0-9a-f]{7,64})")
_BREAK = re.compile(rb"---[ \t\r]*\n?$")
_SIGNATURE = re.compile(rb"-- ?\r?\n?$")
_KNOWN = re.compile(
    rb"Index: |={20,}|base-commit: |prerequisite-|change-id: |RCS file: |retrieving revision |Property changes on: |_{20,}"
)
_DAMAGED_TAB = re.compile(rb"[ +-] {8}")
_SOURCE = (".c", ".h", ".S", "Makefile", "Kconfig")
_EMPTY_BLOBS = (
    "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
    "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
)


@dataclass(frozen=True, slots=True)
class Diff:
    """A diff that was found. The message of the mail is what stands before line ``cut`` of the body."""

    data: bytes
    paths: tuple[str, ...]
    cut: int
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Section:
    """One file's part of a diff, as it stands in the body."""

    start: int
    head: int
    """Index of the line after its header lines."""
    end: int = 0
    names: list[tuple[str, bytes]] = field(default_factory=list)
    added: int = 0
    removed: int = 0


def find_diff(lines: Lines, at: Place, level: int | None = None) -> Diff | None:
    """The diff in a body, None where there is none. ``level``: as patch's -p, where a quilt series names it.

    Like git-am: the message ends at a line of three dashes, comments and diffstat up to the diff are dropped, and so is
    what follows the last hunk (signature, list footer). A diff in the message, above the line of dashes, is an example
    where the diffstat says so. Raises UserError for a hunk that is not as its header says, or that belongs to no file.
    """
    start = next((i for i in range(len(lines)) if starts_section(lines, i)), None)
    if start is None:
        _refuse_context_diff(lines, at)
        return None
    lines, notes = _repaired(lines, start)
    broken_at = next((i for i in range(start) if _BREAK.match(lines[i])), None)
    if broken_at is None and (example := _after_example(lines, start, at)) is not None:
        notes.append(f"a diff in the message, above the line of dashes at {at(example)}: an example, not applied")
        broken_at = example
        start = next(i for i in range(example, len(lines)) if starts_section(lines, i))
    else:
        _refuse_strays(lines, 0 if broken_at is None else broken_at, start, at)
    sections, left = _sections(lines, start, at)
    if not sections:
        return None
    cut = broken_at if broken_at is not None else _before_index_line(lines, start)
    data, paths = _cut_out(lines, sections, level, notes)
    notes += _doubts(lines[cut:start], sections, paths, data)
    notes += _left_over(lines, left, at)
    return Diff(data, paths, cut, tuple(notes))


def preimage_blobs(diff: bytes) -> tuple[str, ...]:
    """Blob ids (often abbreviated) of the files before the patch, as its index lines name them; those of new files left out."""
    names = (match.group(1).decode() for match in _BLOB.finditer(diff))
    return tuple(dict.fromkeys(name for name in names if name.strip("0")))


def _repaired(lines: Lines, start: int) -> tuple[Lines, list[str]]:
    notes: list[str] = []
    if lines[start].endswith(b"\r\n"):
        lines = [line[:-2] + b"\n" if line.endswith(b"\r\n") else line for line in lines]
        notes.append("line ends were CRLF: changed to LF")
    if not lines[-1].endswith(b"\n"):
        lines = [*lines[:-1], lines[-1] + b"\n"]
        notes.append("no newline at the end of the text: added")
    return lines, notes


def _after_example(lines: Lines, start: int, at: Place) -> int | None:
    """The line of dashes that ends a message with a diff in it: the diffstat below it fits the diff below it.

    None where the first diff is the real one. Raises UserError where two diffs stand above and below such a line and
    nothing tells which of them is meant.
    """
    dashes = [i for i in range(start + 1, len(lines)) if _BREAK.match(lines[i])]
    if not dashes:
        return None
    try:
        sections: list[_Section] | None = _sections(lines, start, at)[0]
    except UserError:
        sections = None
    unclear = None
    for index in reversed(dashes):
        if sections is not None and any(section.start <= index < section.end for section in sections):
            continue
        below = next((i for i in range(index, len(lines)) if starts_section(lines, i)), None)
        if below is None:
            continue
        stat = find_diffstat(lines[index:below])
        if stat is not None and _fits(lines, below, stat, at):
            return index
        unclear = index
    if unclear is not None and sections is not None:
        raise UserError(
            "diffs above and below a line of three dashes, and no diffstat that tells which one is the patch",
            where=at(unclear),
            expected="one patch a mail; an example in the message indented by a blank",
        )
    return None


def _fits(lines: Lines, start: int, stat: Diffstat, at: Place) -> bool:
    try:
        return stat.same(_counted(_sections(lines, start, at)[0]))
    except UserError:
        return False


def _sections(lines: Lines, start: int, at: Place) -> tuple[list[_Section], list[int]]:
    """Every file's part from ``start`` on, and the lines between and after them."""
    sections: list[_Section] = []
    left: list[int] = []
    position = start
    while position < len(lines):
        if starts_section(lines, position):
            section = _section(lines, position, at)
            if section.end > position + 1:
                sections.append(section)
            else:
                left.append(position)
            position = section.end
        else:
            left.append(position)
            position += 1
    for index in left:
        _refuse_stray(lines, index, at)
    return sections, left


def _section(lines: Lines, start: int, at: Place) -> _Section:
    position = start + lines[start].startswith(b"diff ")
    section = _Section(start, position)
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


def _is_header(lines: Lines, index: int) -> bool:
    line = lines[index]
    if _EXTENDED.match(line) or line.startswith(b"+++ "):
        return True
    return line.startswith(b"--- ") and index + 1 < len(lines) and lines[index + 1].startswith(b"+++ ")


def _read_hunks(lines: Lines, section: _Section, at: Place) -> None:
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


def _no_content(where: str) -> UserError:
    return UserError(
        "a binary file changes, but its content is not in the diff",
        where=where,
        expected="a diff made with git format-patch or git diff --binary",
    )


def _refuse_strays(lines: Lines, first: int, start: int, at: Place) -> None:
    """Between the line of dashes (or the beginning) and the first file there must be no hunk: its file's name got lost."""
    for index in range(first, start):
        _refuse_stray(lines, index, at)


def _refuse_stray(lines: Lines, index: int, at: Place) -> None:
    line, following = lines[index], lines[index + 1] if index + 1 < len(lines) else b""
    if HUNK.match(line) and following[:1] in (b" ", b"+", b"-", b"\n"):
        raise UserError(
            "a hunk without the names of its file above it",
            where=at(index),
            expected="lines `--- a/...` and `+++ b/...` before the first hunk of a file, and no line between its hunks",
        )
    if line.startswith(b"Binary files ") and line.rstrip().endswith(b" differ"):
        raise _no_content(at(index))
    _refuse_context_diff(lines[index : index + 3], lambda offset: at(index + offset))


def _refuse_context_diff(lines: Lines, at: Place) -> None:
    for index in range(len(lines) - 2):
        if (
            lines[index].startswith(b"*** ")
            and lines[index + 1].startswith(b"--- ")
            and lines[index + 2][:5] == b"*****"
        ):
            raise UserError(
                "a context diff (*** and ---)", where=at(index), expected="a unified diff: diff -u, or git format-patch"
            )


def _before_index_line(lines: Lines, start: int) -> int:
    """A ``Index: name`` and its underline are no part of the message."""
    while start and (_KNOWN.match(lines[start - 1]) or (start > 1 and _KNOWN.match(lines[start - 2]))):
        start -= 1
    return start


def _cut_out(
    lines: Lines, sections: Sequence[_Section], level: int | None, notes: list[str]
) -> tuple[bytes, tuple[str, ...]]:
    """The diff's bytes, its names brought to one leading directory, and the paths that it touches."""
    if level is None:
        level = strip_level([_pair(lines[section.start], section) for section in sections])
    kept: list[bytes] = []
    paths: list[str] = []
    for section in sections:
        head = [rewrite(line, level) if level != 1 else line for line in lines[section.start : section.head]]
        kept += [*head, *lines[section.head : section.end]]
        paths += paths_of(head[0], [name for line in head if (name := header_name(line))])
    if level != 1 and sections:
        how = "no leading directory: a/ and b/ added" if not level else f"{level} leading directories: made one"
        notes.append(f"names of files have {how}, such as a/{paths[0] if paths else ''}")
    return b"".join(kept), tuple(dict.fromkeys(paths))


def _pair(first: bytes, section: _Section) -> tuple[str, str]:
    known = {key: unquote(raw) for key, raw in section.names}
    if "---" in known or "+++" in known:
        return known.get("---", NULL), known.get("+++", NULL)
    return (git_pair(first) or (NULL, NULL)) if first.startswith(b"diff --git ") else (NULL, NULL)


def _counted(sections: Sequence[_Section]) -> Diffstat:
    return Diffstat(len(sections), sum(s.added for s in sections), sum(s.removed for s in sections))


def _doubts(above: Lines, sections: Sequence[_Section], paths: Sequence[str], data: bytes) -> list[str]:
    """What makes one doubt that the diff is whole and as its author made it."""
    notes = []
    stat = find_diffstat(above)
    if stat is not None and (difference := mismatch(stat, _counted(sections), paths)):
        notes.append(difference)
    if b"\t" not in data and paths and all(path.endswith(_SOURCE) for path in paths):
        damaged = next((line for line in data.split(b"\n") if _DAMAGED_TAB.match(line)), None)
        if damaged is not None:
            shown = damaged.decode(errors="replace")[:60]
            notes.append(f"no tab in the diff: a mail program may have made blanks of them, as in {shown!r}")
    return notes


def _left_over(lines: Lines, left: Sequence[int], at: Place) -> list[str]:
    """Lines after the first file that are no part of the diff, and that no mail has there as a rule."""
    notes, odd = [], []
    for index in left:
        line = lines[index]
        if _SIGNATURE.match(line):
            break
        if line.startswith(b"Only in "):
            notes.append(
                f"a file that is only named, its content is not in the diff: {line.decode(errors='replace').strip()}"
            )
        elif line.strip() and not _KNOWN.match(line) and not _BREAK.match(line):
            odd.append(index)
    if odd:
        shown = lines[odd[0]].decode(errors="replace").strip()[:60]
        notes.append(
            f"{len(odd)} line(s) between or after the hunks are no part of the diff, the first at {at(odd[0])}: {shown!r}"
        )
    return notes
