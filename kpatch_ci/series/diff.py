# SPDX-License-Identifier: GPL-2.0-or-later
"""Finds the diff in a body and cuts it out byte for byte; what is no part of it is named, never dropped without a word."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kpatch_ci.model.errors import UserError
from kpatch_ci.series.diffstat import Diffstat, find_diffstat, mismatch, unfit
from kpatch_ci.series.filediff import (
    Section,
    counted,
    names_of,
    pairs_of,
    read_sections,
    refuse_context_diff,
    refuse_stray,
)
from kpatch_ci.series.hunks import Lines, Place, starts_section
from kpatch_ci.series.names import header_name, paths_of, relative, rewritten, strip_level

_BLOB = re.compile(rb"^index ([0-9a-f]{7,64})\.\.[0-9a-f]{7,64}(?: |\r?$)", re.MULTILINE)
_BREAK = re.compile(rb"---[ \t\r]*\n?$")
_SIGNATURE = re.compile(rb"-- ?\r?\n?$")
_KNOWN = re.compile(
    rb"Index: |={20,}|base-commit: |prerequisite-|change-id: |RCS file: |retrieving revision |Property changes on: |_{20,}"
)
_DAMAGED_TAB = re.compile(rb"[ +-] {8}")
_SOURCE = (".c", ".h", ".S", "Makefile", "Kconfig")


@dataclass(frozen=True, slots=True)
class Diff:
    """A diff that was found. The message of the mail is what stands before line ``cut`` of the body."""

    data: bytes
    paths: tuple[str, ...]
    cut: int
    notes: tuple[str, ...] = ()


def find_diff(lines: Lines, at: Place, level: int | None = None) -> Diff | None:
    """The diff in a body, None where there is none. ``level``: as patch's -p, where a quilt series names it.

    Like git-am: the message ends at a line of three dashes, comments and diffstat up to the diff are dropped, and so is
    what follows the last hunk (signature, list footer). A diff in the message, above the line of dashes, is an example
    where the diffstat says so. Raises UserError for a hunk that is not as its header says, or that belongs to no file.
    """
    start = next((i for i in range(len(lines)) if starts_section(lines, i)), None)
    if start is None:
        refuse_context_diff(lines, at)
        return None
    lines, notes = _repaired(lines, start)
    broken_at = next((i for i in range(start) if _BREAK.match(lines[i])), None)
    if broken_at is None and (example := _after_example(lines, start, at)) is not None:
        notes.append(f"a diff in the message, above the line of dashes at {at(example)}: an example, not applied")
        broken_at = example
        start = next(i for i in range(example, len(lines)) if starts_section(lines, i))
    else:
        _refuse_strays(lines, 0 if broken_at is None else broken_at, start, at)
    sections, left = read_sections(lines, start, at)
    if not sections:
        return None
    _refuse_below_signature(lines, sections, left, at)
    _refuse_uncounted(lines, start, sections, at)
    cut = broken_at if broken_at is not None else _before_index_line(lines, start)
    data, paths = _cut_out(lines, sections, level, notes)
    notes += _doubts(lines, lines[cut:start], sections, paths, data)
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
        sections: list[Section] | None = read_sections(lines, start, at)[0]
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
        return stat.same(counted(read_sections(lines, start, at)[0]))
    except UserError:
        return False


def _refuse_strays(lines: Lines, first: int, start: int, at: Place) -> None:
    """Between the line of dashes (or the beginning) and the first file there must be no hunk: its file's name got lost."""
    for index in range(first, start):
        refuse_stray(lines, index, at)


def _refuse_below_signature(lines: Lines, sections: Sequence[Section], left: Sequence[int], at: Place) -> None:
    """Below its signature a mail has no patch: that is another mail, whose headers or separator got lost."""
    signature = next((i for i in left if lines[i].rstrip(b"\r\n") == b"-- "), None)
    below = [section.start for section in sections if signature is not None and section.start > signature]
    if below:
        raise UserError(
            "a second diff below the mail's signature",
            where=at(below[0]),
            expected="one patch a mail, with the mail's own headers (in an mbox: the `From ` line above them)",
        )


def _refuse_uncounted(lines: Lines, start: int, sections: Sequence[Section], at: Place) -> None:
    """Where other words stand between two files' parts, a diffstat that counts one side alone says that the other is no part.

    That is the mail below, whose headers got lost, or an interdiff above the patch.
    """
    above = find_diffstat(lines[:start])
    for position in range(1, len(sections)):
        before, after = sections[position - 1].end, sections[position].start
        between = lines[before:after]
        if not any(line.strip() and not _KNOWN.match(line) for line in between):
            continue
        if above is not None and above.same(counted(sections[:position])):
            raise _second(at(after), "a second diff, which the diffstat does not count, behind other words")
        below = find_diffstat(between)
        if below is not None and below.same(counted(sections[position:])):
            raise _second(at(sections[0].start), "a diff above the diffstat, which does not count it")


def _second(where: str, what: str) -> UserError:
    return UserError(
        what,
        where=where,
        expected="one patch a mail, under its own headers (in an mbox: the `From ` line above them); other diffs indented",
    )


def _before_index_line(lines: Lines, start: int) -> int:
    """A ``Index: name`` and its underline are no part of the message."""
    while start and (_KNOWN.match(lines[start - 1]) or (start > 1 and _KNOWN.match(lines[start - 2]))):
        start -= 1
    return start


def _cut_out(
    lines: Lines, sections: Sequence[Section], level: int | None, notes: list[str]
) -> tuple[bytes, tuple[str, ...]]:
    """The diff's bytes, its names brought to one leading directory, and the paths that it touches."""
    if level is None:
        level = strip_level([pair for section in sections for pair in pairs_of(lines[section.start], section)])
    kept: list[bytes] = []
    paths: list[str] = []
    for section in sections:
        head = list(lines[section.start : section.head])
        head = rewritten(head, level) if level != 1 else head
        kept += [*head, *lines[section.head : section.end]]
        paths += paths_of(head[0], [name for line in head if (name := header_name(line))])
    if level != 1 and sections:
        how = "no leading directory: a/ and b/ added" if not level else f"{level} leading directories: made one"
        notes.append(f"names of files have {how}, such as a/{paths[0] if paths else ''}")
    return b"".join(kept), tuple(dict.fromkeys(paths))


def _doubts(lines: Lines, above: Lines, sections: Sequence[Section], paths: Sequence[str], data: bytes) -> list[str]:
    """What makes one doubt that the diff is whole and as its author made it."""
    notes = []
    stat = find_diffstat(above)
    if stat is not None:
        difference = mismatch(stat, counted(sections), paths)
    else:
        names = [relative(names_of(lines[section.start], section)[1], 1) for section in sections]
        difference = unfit(above, {name: s.added + s.removed for name, s in zip(names, sections, strict=True)})
    notes += [difference] if difference else []
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
