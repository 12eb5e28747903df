# SPDX-License-Identifier: GPL-2.0-or-later
"""Why a diff does not apply: each hunk that finds no place, and what the tree has there instead."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from kpatch_ci.model.series import HunkFailure
from kpatch_ci.series.fates import Fate, FileFate
from kpatch_ci.series.functions import body_of, function_at, is_known, short_name
from kpatch_ci.series.haystack import Haystack
from kpatch_ci.series.placements import Files, Verdict, end_fuzz, named_function, places_of
from kpatch_ci.series.sections import Hunk, Section, shown

_REASONS = {
    "does not exist in index": "no such file in the tree",
    "already exists in index": "the patch creates this file, but the tree has it already",
    "removal patch leaves file contents": "the patch deletes this file, but the tree's has more in it",
}


def explain(said: str, strict: Sequence[FileFate], loose: Sequence[FileFate], files: Files) -> tuple[HunkFailure, ...]:
    """Failures of a diff that git apply refused with the words ``said``: all that do not apply, not the first alone.

    ``strict`` are the fates of its hunks, ``loose`` those with all but one line of context ignored. Never empty.
    """
    found: list[HunkFailure] = []
    for file, with_fuzz in zip(strict, loose, strict=True):
        found += [_of_file(file.section, error, files) for error in file.errors]
        for fate, other in zip(file.hunks, with_fuzz.hunks, strict=True):
            if fate.refused:
                found.append(_of_hunk(file.section, fate.hunk, files, fuzz=_fuzz(other, files.get(file.section.path))))
    return tuple(found) or (_unknown(said),)


def misplaced(parts: Sequence[Section], verdict: Verdict, files: Files) -> tuple[HunkFailure, ...]:
    """Failures of hunks that git would have put into another function than the mail names."""
    found = []
    by_hunk = {(p.path, p.hunk): p for p in verdict.placements}
    for index, number in verdict.wrong:
        part = parts[index]
        hunk = part.hunks[number - 1]
        placement = by_hunk[part.old, number]
        place = files.get(part.old)
        named, took = short_name(named_function(hunk)), short_name(placement.found_in) or "no function"
        there = places_of(hunk, hunk.old, place)
        why = f"where the text stands at lines {', '.join(map(str, there))}" if there else "where the text is another"
        reason = f"git alone would put it at line {placement.line}, into {took}; the mail changes {named}, {why}"
        start = _nearest(hunk, place)
        lines = [] if start is None else place.lines[start : start + hunk.old_count]
        found.append(_failure(part.old, hunk, reason, found=lines, at=0 if start is None else start + 1))
    return tuple(found)


def _fuzz(loose: Fate, place: Haystack) -> int | None:
    return None if loose.refused else max(1, loose.fuzz, end_fuzz(loose.hunk, loose.line, place))


def _of_file(part: Section, error: str, files: Files) -> HunkFailure:
    reason, there = _REASONS.get(error, f"git: {error}"), False
    if error == "does not exist in index" and not part.new:
        reason, there = "already in the tree: the file is gone", True
    elif error == "already exists in index" and len(part.hunks) == 1:
        lines = files.get(part.path).lines
        there = part.hunks[0].new == (lines[:-1] if lines[-1:] == [""] else lines)
        reason = "already in the tree: the same file" if there else reason
    return HunkFailure(path=part.path, line=0, header="", wanted="", found="", reason=reason, there=there)


def _unknown(said: str) -> HunkFailure:
    errors = [line.removeprefix("error: ") for line in said.splitlines() if line.startswith(("error: ", "fatal: "))]
    reason = "git: " + ("; ".join(dict.fromkeys(errors)) or "no reason")
    return HunkFailure(path="", line=0, header="", wanted="", found="", reason=reason)


def _of_hunk(part: Section, hunk: Hunk, files: Files, *, fuzz: int | None) -> HunkFailure:
    """The failure of one hunk: what is there, and where it was looked for."""
    place = files.get(part.path)
    lines = place.lines
    if (there := places_of(hunk, hunk.new, place)) and _changes(hunk):
        found = lines[there[0] - 1 : there[0] - 1 + hunk.new_count]
        reason = f"already in the tree, at line {there[0]}"
        return _failure(part.path, hunk, reason, found=found, at=there[0], there=True)
    wanted = hunk.old
    exact = place.exact(wanted)
    start = exact[0] if exact else _nearest(hunk, place)
    if start is None:
        return _failure(part.path, hunk, "the tree has nothing like it", fuzz=fuzz)
    found = lines[start : start + len(wanted) + (3 if exact else 0)]
    reason = _reason(hunk, found, start, place, exact=bool(exact))
    return _failure(part.path, hunk, reason, found=found, at=start + 1, function=function_at(lines, start), fuzz=fuzz)


def _nearest(hunk: Hunk, place: Haystack) -> int | None:
    """The line (from 0) that is most like the hunk: in the function that it changes, where the tree has that."""
    body = body_of(named, place.lines) if (named := named_function(hunk)) else None
    if body is not None:
        inside = Haystack(place.lines[body.start : body.stop])
        found = inside.nearest(hunk.old, hunk.old_start - 1 - body.start)
        if found is not None:
            return body.start + found
    return place.nearest(hunk.old, hunk.old_start - 1)


def _changes(hunk: Hunk) -> bool:
    return hunk.old != hunk.new


def _failure(
    path: str,
    hunk: Hunk,
    reason: str,
    *,
    found: Sequence[str] = (),
    at: int = 0,
    function: str = "",
    there: bool = False,
    fuzz: int | None = None,
) -> HunkFailure:
    return HunkFailure(
        path=path,
        line=hunk.old_start,
        header=hunk.header,
        wanted=shown(hunk.old),
        found=shown(found),
        reason=reason,
        hunk=hunk.number,
        function=hunk.function if is_known(hunk.function) else function,
        text=shown(hunk.lines),
        at=at,
        differing=() if there else tuple(at + i for i in _differing(hunk.old, found)),
        there=there,
        fuzz=fuzz,
    )


def _differing(wanted: Sequence[str], found: Sequence[str]) -> list[int]:
    """Indices of the lines of ``found`` that are not as wanted; those around a gap, where lines are only missing."""
    matcher = difflib.SequenceMatcher(None, wanted, found, autojunk=False)
    changes = [code for code in matcher.get_opcodes() if code[0] != "equal"]
    lines = {i for _, _, _, first, end in changes for i in range(first, end)}
    if not lines:
        lines = {i for _, _, _, first, _ in changes for i in (first - 1, first) if 0 <= i < len(found)}
    return sorted(lines)


def _reason(hunk: Hunk, found: list[str], start: int, place: Haystack, *, exact: bool) -> str:
    wanted = hunk.old
    if exact and not hunk.trailing and start + len(wanted) < len(place.lines) - 1:
        return f"the text is at line {start + 1}, but the patch wants it at the end of the file"
    if exact:
        return f"the text is at line {start + 1}, but an earlier hunk of the patch changes it or is in between"
    plain = [" ".join(line.split()) for line in wanted], [" ".join(line.split()) for line in found]
    if plain[0] == plain[1]:
        endings = all(line.endswith("\r") for line in found) and not any(line.endswith("\r") for line in wanted)
        if endings:
            return f"line {start + 1}: the tree's file has CRLF line ends, the patch has LF"
        return f"line {start + 1} differs in white space alone: a mail program may have changed tabs to blanks"
    function = function_at(place.lines, start)
    elsewhere = is_known(hunk.function) and function and short_name(function) != short_name(hunk.function)
    return f"nearest text is at line {start + 1}" + (f", in {short_name(function)}" if elsewhere else "")
