# SPDX-License-Identifier: GPL-2.0-or-later
"""Why a diff does not apply: each hunk that finds no place, and what the tree has there instead."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from io import StringIO

from unidiff.errors import UnidiffParseError
from unidiff.patch import Hunk, PatchedFile, PatchSet

from kpatch_ci.model.series import HunkFailure
from kpatch_ci.series.haystack import Haystack

_AT = re.compile(r"^error: patch failed: (.+):(\d+)$", re.MULTILINE)
_FILE = re.compile(r"^error: (.+?): (.+)$", re.MULTILINE)
_REASONS = (
    ("does not exist in index", "no such file in the tree"),
    ("already exists in index", "the patch creates this file, but the tree has it already"),
)
ReadFile = Callable[[str], bytes | None]


def explain(diff: bytes, said: str, read: ReadFile) -> tuple[HunkFailure, ...]:
    """Failures of a diff that git apply refused with the words ``said``; ``read`` gives a file of the tree, None where there is none.

    git names the first hunk of a file that fails; those after it are looked for here by the same rule (exact text,
    anchored at the file's end where there is no context after it). Never empty.
    """
    named = {(path, int(line)) for path, line in _AT.findall(said)}
    failures = _missing(said)
    broken = {path for path, _ in named}
    for file in _parse(diff):
        path = file.source_file.partition("/")[2]
        if path not in broken:
            continue
        place = Haystack(_text(read(path) or b""))
        for hunk in file:
            failure = _check(path, hunk, place, refused=(path, hunk.source_start) in named)
            if failure is not None:
                failures.append(failure)
    return tuple(failures) or (_unknown(said),)


def _parse(diff: bytes) -> Sequence[PatchedFile]:
    try:
        return PatchSet(StringIO(diff.decode("utf-8", "surrogateescape")))
    except UnidiffParseError:
        return ()


def _text(data: bytes) -> list[str]:
    return data.decode("utf-8", "surrogateescape").split("\n")


def _missing(said: str) -> list[HunkFailure]:
    return [
        HunkFailure(path=path, line=0, header="", wanted="", found="", reason=reason)
        for path, words in _FILE.findall(said)
        for words_of_git, reason in _REASONS
        if words_of_git in words
    ]


def _unknown(said: str) -> HunkFailure:
    errors = [line.removeprefix("error: ") for line in said.splitlines() if line.startswith(("error: ", "fatal: "))]
    return HunkFailure(
        path="", line=0, header="", wanted="", found="", reason="git: " + ("; ".join(errors) or "no reason")
    )


def _check(path: str, hunk: Hunk, place: Haystack, *, refused: bool) -> HunkFailure | None:
    """The failure of one hunk, None where its text is in the file and git did not name it."""
    wanted = [line.value.removesuffix("\n") for line in hunk if line.is_context or line.is_removed]
    lines = place.lines
    places = place.exact(wanted)
    at_end = not [line for line in hunk if line.line_type != "\\"][-1].is_context
    fitting = [start for start in places if not at_end or start + len(wanted) >= len(lines) - 1]
    if fitting and not refused:
        return None
    start = places[0] if places else place.nearest(wanted, hunk.source_start - 1)
    found, reason = [], "the tree has nothing like it"
    if start is not None:
        extra = 3 if places else 0
        found = lines[start : start + len(wanted) + extra]
        reason = _reason(wanted, found, start, exact=bool(places), at_end=at_end)
    return HunkFailure(
        path=path,
        line=hunk.source_start,
        header=_header(hunk),
        wanted=_shown(wanted),
        found=_shown(found),
        reason=reason,
    )


def _reason(wanted: list[str], found: list[str], start: int, *, exact: bool, at_end: bool) -> str:
    if exact and at_end:
        return f"the text is at line {start + 1}, but the patch wants it at the end of the file"
    if exact:
        return f"the text is at line {start + 1}, but an earlier hunk of the patch changes it or is in between"
    if [" ".join(line.split()) for line in wanted] == [" ".join(line.split()) for line in found]:
        return f"line {start + 1} differs in white space alone: a mail program may have changed tabs to blanks"
    return f"nearest text is at line {start + 1}"


def _header(hunk: Hunk) -> str:
    ranges = f"-{hunk.source_start},{hunk.source_length} +{hunk.target_start},{hunk.target_length}"
    return f"@@ {ranges} @@ {hunk.section_header}".rstrip()


def _shown(lines: list[str]) -> str:
    return "\n".join(lines).encode("utf-8", "surrogateescape").decode(errors="replace")
