# SPDX-License-Identifier: GPL-2.0-or-later
"""What git apply said of each hunk: where it went, with how much context, or that it found no place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from kpatch_ci.series.sections import Hunk, Section

_MOVED = re.compile(r"Hunk #(\d+) succeeded at (\d+) \(offset (-?\d+) lines?\)")
_REDUCED = re.compile(r"Context reduced to \((\d+)/(\d+)\) to apply fragment at (\d+)")
_REFUSED = re.compile(r"error: patch failed: .+:(\d+)$")
_FILE = re.compile(r"error: (.+?): (.+)$")
_CHECKING = "Checking patch "


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a hunk. ``line`` (from 1) is where it begins in the file as it was before the patch."""

    hunk: Hunk
    line: int
    offset: int = 0
    fuzz: int = 0
    refused: bool = False


@dataclass(frozen=True, slots=True)
class FileFate:
    """What became of a file's hunks, and what git said of the file itself."""

    section: Section
    hunks: tuple[Fate, ...]
    errors: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def refused(self) -> bool:
        """Whether anything of it does not apply."""
        return bool(self.errors) or any(fate.refused for fate in self.hunks)


@dataclass(slots=True)
class _Heard:
    refused: set[int] = field(default_factory=set)
    moved: dict[int, int] = field(default_factory=dict)
    fuzz: dict[int, int] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def read_fates(said: str, parts: Sequence[Section]) -> tuple[FileFate, ...]:
    """Fates of a diff's files from the words of ``git apply -v`` (with ``--reject``: of every hunk, else up to the first error).

    git names files in the order of the diff, so their order, not their (quoted, abbreviated) names, says which is meant.
    """
    blocks = list(_blocks(said))
    heard = [_listen(block, part) for block, part in zip(blocks, parts, strict=False)]
    heard += [_Heard() for _ in parts[len(heard) :]]
    return tuple(_fate(part, one) for part, one in zip(parts, heard, strict=True))


def _blocks(said: str) -> Iterator[list[str]]:
    """The lines after each ``Checking patch``, up to where git begins to write."""
    block: list[str] | None = None
    for line in said.split("\n"):
        if line.startswith(_CHECKING):
            if block is not None:
                yield block
            block = []
        elif block is not None:
            if line.startswith(("Applying patch ", "Applied patch ")):
                break
            block.append(line)
    if block is not None:
        yield block


def _listen(block: Sequence[str], part: Section) -> _Heard:
    heard = _Heard()
    last = 0
    searching = False
    for line in block:
        if match := _REFUSED.match(line):
            searching = False
            heard.refused |= {hunk.number for hunk in part.hunks if hunk.old_start == int(match.group(1))}
        elif line == "error: while searching for:":
            searching = True
        elif searching:
            continue
        elif match := _MOVED.match(line):
            last = int(match.group(1))
            heard.moved[last] = int(match.group(3))
        elif match := _REDUCED.match(line):
            _reduced(heard, part, last, match)
        elif line.startswith("warning: "):
            heard.notes.append(line.removeprefix("warning: "))
        elif (match := _FILE.match(line)) and match.group(2) != "patch does not apply":
            heard.errors.append(match.group(2))
    return heard


def _reduced(heard: _Heard, part: Section, last: int, match: re.Match[str]) -> None:
    """git says this right after the hunk's line, and names no hunk where that one did not move.

    For each line of context that git drops in front it looks one line further up, not down, and counts the offset from
    there: what it says of a hunk with fuzz is too much by twice the lines dropped.
    """
    leading, trailing, at = (int(word) for word in match.groups())
    for hunk in part.hunks:
        front = hunk.leading - leading
        expected = hunk.new_start - front + heard.moved.get(hunk.number, 0)
        if expected == at and (hunk.number == last or hunk.number not in heard.moved):
            heard.fuzz[hunk.number] = max(front, hunk.trailing - trailing)
            heard.moved[hunk.number] = at - front - hunk.new_start
            return


def _fate(part: Section, heard: _Heard) -> FileFate:
    fates = []
    grown = 0
    for hunk in part.hunks:
        offset = heard.moved.get(hunk.number, 0)
        fate = Fate(hunk, hunk.new_start + offset - grown, offset, heard.fuzz.get(hunk.number, 0))
        if hunk.number in heard.refused:
            fate = replace(fate, line=hunk.old_start, refused=True)
        else:
            grown += hunk.new_count - hunk.old_count
        fates.append(fate)
    return FileFate(part, tuple(fates), tuple(heard.errors), tuple(heard.notes))
