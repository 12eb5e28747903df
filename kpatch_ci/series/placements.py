# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether hunks went where the mail means them: the same text may stand in two functions, and git takes the nearer one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from kpatch_ci.model.series import Placement
from kpatch_ci.series.fates import Fate, FileFate
from kpatch_ci.series.functions import body_of, function_at, is_known, is_same, short_name
from kpatch_ci.series.haystack import Haystack
from kpatch_ci.series.letter import split_lines
from kpatch_ci.series.sections import Hunk, Section, text


class Files:
    """Files of a tree, each read and indexed once. ``read`` takes a path and the tree's id."""

    def __init__(self, read: Callable[[str, str], bytes | None], tree_id: str = "") -> None:
        self._read, self._tree_id = read, tree_id
        self._known: dict[str, Haystack] = {}

    def get(self, path: str) -> Haystack:
        """A file's lines; none where there is no such file."""
        if path not in self._known:
            self._known[path] = Haystack(text(self._read(path, self._tree_id) or b""))
        return self._known[path]


@dataclass(frozen=True, slots=True)
class Verdict:
    """``wrong`` maps (file's index, hunk's number) to the line where the hunk belongs, 0 where several would do."""

    placements: tuple[Placement, ...]
    wrong: Mapping[tuple[int, int], int]


def judge(fates: Sequence[FileFate], files: Files) -> Verdict:
    """Say of every hunk that moved, lost context, or stands in another function than the mail says, where it went.

    A hunk is wrong where its first change is in the body of a function, the tree has that function, and git put it into
    another. Where the tree does not have it (it was renamed), that is said, and no more.
    """
    placements: list[Placement] = []
    wrong: dict[tuple[int, int], int] = {}
    for index, file in enumerate(fates):
        if not file.section.old:
            continue
        for fate in file.hunks:
            if fate.refused:
                continue
            placement, right = _judge(file.section.old, fate, files)
            if placement is not None:
                placements.append(placement)
            if right is not None:
                wrong[index, fate.hunk.number] = right
    return Verdict(tuple(placements), wrong)


def places_of(hunk: Hunk, wanted: Sequence[str], place: Haystack) -> list[int]:
    """Lines (from 1) at which exactly ``wanted`` begins in the function that the hunk's header names, or anywhere if none."""
    named = named_function(hunk)
    return [at + 1 for at in place.exact(wanted) if is_same(named, function_at(place.lines, at))]


def named_function(hunk: Hunk) -> str:
    """The function that a hunk changes, from its header; empty where the header cannot tell.

    The header names the last function above the hunk: where that ends in the hunk's context, or another begins there, the
    change is elsewhere.
    """
    before = [line[1:] for line in hunk.lines[: hunk.leading]]
    outside = any(line.startswith("}") or is_known(line) for line in before)
    return "" if outside or not is_known(hunk.function) else hunk.function


def relocate(diff: bytes, parts: Sequence[Section], lines: Mapping[tuple[int, int], int]) -> bytes:
    """The diff with the line numbers of some hunks changed, so that git finds them where they belong."""
    rows = split_lines(diff)
    for index, part in enumerate(parts):
        grown = 0
        for hunk in part.hunks:
            if (right := lines.get((index, hunk.number))) is not None:
                ranges = f"@@ -{right},{hunk.old_count} +{right + grown},{hunk.new_count} @@"
                rows[hunk.row] = ranges.encode() + rows[hunk.row].partition(b" @@")[2]
            grown += hunk.new_count - hunk.old_count
    return b"".join(rows)


def refuse(fates: Sequence[FileFate], verdict: Verdict) -> tuple[FileFate, ...]:
    """The fates with hunks that went into the wrong function refused."""
    return tuple(
        replace(
            file, hunks=tuple(replace(f, refused=f.refused or (i, f.hunk.number) in verdict.wrong) for f in file.hunks)
        )
        for i, file in enumerate(fates)
    )


def applicable(diff: bytes, fates: Sequence[FileFate]) -> bytes:
    """The part of a diff that git did not refuse: what is left of it may be empty."""
    rows = split_lines(diff)
    kept: list[bytes] = []
    for file in fates:
        first, end = file.section.rows
        if file.errors or (file.hunks and all(fate.refused for fate in file.hunks)):
            continue
        starts = [*(fate.hunk.row for fate in file.hunks), end]
        kept += rows[first : starts[0]]
        for fate, stop in zip(file.hunks, starts[1:], strict=True):
            if not fate.refused:
                kept += rows[fate.hunk.row : stop]
    return b"".join(kept)


def _judge(path: str, fate: Fate, files: Files) -> tuple[Placement | None, int | None]:
    hunk, place = fate.hunk, files.get(path)
    fuzz = max(fate.fuzz, end_fuzz(hunk, fate.line, place))
    found_in = function_at(place.lines, fate.line - 1)
    if not fate.offset and not fuzz and is_same(named_function(hunk), found_in):
        return None, None
    others = [at + 1 for at in place.exact(hunk.old) if at + 1 != fate.line]
    warning, right = _warning(hunk, fate, found_in, others, place) if hunk.old_count else ("", None)
    placement = Placement(
        path=path,
        hunk=hunk.number,
        line=fate.line,
        offset=fate.offset,
        fuzz=fuzz,
        function=hunk.function if is_known(hunk.function) else "",
        found_in=found_in,
        also=tuple(others),
        warning=warning,
    )
    return placement, right


def _warning(hunk: Hunk, fate: Fate, found_in: str, others: Sequence[int], place: Haystack) -> tuple[str, int | None]:
    """What is odd about where a hunk went, and, where that is wrong, the line where it belongs."""
    words: list[str] = []
    right = None
    named = named_function(hunk)
    meant = [at for at in others if is_same(named, function_at(place.lines, at - 1))]
    if not is_same(named, found_in):
        words.append(f"the mail says {short_name(named)}, this is {short_name(found_in) or 'no function'}")
        if meant or body_of(named, place.lines):
            right = meant[0] if len(meant) == 1 and not fate.fuzz else 0
            where = f"is at line {_lines(meant)} there" if meant else "is not there as the mail has it"
            words.append(f"the tree has {short_name(named)}, and the text {where}")
    elif meant and fate.offset:
        words.append(f"the same text stands at line {_lines(meant)}, too")
    if end_fuzz(hunk, fate.line, place):
        words.append(
            f"the mail has it at the {'end' if not hunk.trailing else 'beginning'} of the file, here it is not"
        )
    return "; ".join(words), right


def end_fuzz(hunk: Hunk, line: int, place: Haystack) -> int:
    """Context that is missing because a file's end (or beginning) is not where the mail has it; 0 where that is as mailed.

    A hunk with less context at one end is at that end of the file. git demands it, until any context may be ignored; patch(1)
    counts the missing lines as fuzz, and so does this.
    """
    if hunk.leading > hunk.trailing == 0 and line + hunk.old_count - 1 < len(place.lines) - 1:
        return hunk.leading
    return hunk.trailing - hunk.leading if hunk.old_start <= 1 < line and hunk.trailing > hunk.leading else 0


def _lines(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers[:5])) + (", ..." if len(numbers) > 5 else "")
