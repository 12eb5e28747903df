# SPDX-License-Identifier: GPL-2.0-or-later
"""Who last changed the lines that keep a hunk from applying: git blame on just these, bounded in time."""

from __future__ import annotations

import re
import time
from dataclasses import replace

from kpatch_ci.model.build import Tree
from kpatch_ci.model.series import ApplyResult, HunkFailure, LastChange
from kpatch_ci.series.gitindex import PrivateIndex
from kpatch_ci.series.haystack import Haystack
from kpatch_ci.series.sections import text

SECONDS = 10.0
"""For all hunks of a series together: blame goes as far back as it must."""
_LINE = re.compile(r"([0-9a-f]{40,64}) \d+ (\d+)")


def with_last_changes(index: PrivateIndex, tree: Tree, result: ApplyResult, *, seconds: float = SECONDS) -> ApplyResult:
    """The result with the commits that last changed what each bad hunk found, where the tree has a history."""
    if not has_history(index, tree):
        return result
    end = time.monotonic() + seconds
    patches = []
    for patch in result.patches:
        failures = tuple(_blamed(index, tree, failure, end) for failure in patch.failures)
        patches.append(replace(patch, failures=failures))
    return replace(result, patches=tuple(patches))


def has_history(index: PrivateIndex, tree: Tree) -> bool:
    """Whether there is a commit before the tree's."""
    return bool(tree.commit) and index.git("rev-parse", "--verify", "--quiet", f"{tree.commit}^") is not None


def _blamed(index: PrivateIndex, tree: Tree, failure: HunkFailure, end: float) -> HunkFailure:
    left = end - time.monotonic()
    if not failure.at or failure.there or left <= 0:
        return failure
    found = failure.found.split("\n")
    place = Haystack(text(index.file(failure.path, tree.tree_id) or b""))
    starts = place.exact(found)  # an earlier patch of the series may have moved it
    if not starts:
        return failure
    start = min(starts, key=lambda at: abs(at + 1 - failure.at))
    lines = [line + start + 1 - failure.at for line in failure.differing]
    ranges = [word for line in lines for word in ("-L", f"{line},{line}")]
    if not ranges:
        return failure
    said = index.git("blame", "--line-porcelain", *ranges, tree.commit, "--", failure.path, timeout=left)
    return failure if said is None else replace(failure, last_changes=_changes(said))


def _changes(said: str) -> tuple[LastChange, ...]:
    """Commits of ``git blame --line-porcelain``, newest first."""
    found: dict[str, tuple[int, LastChange]] = {}
    commit, line = "", 0
    about: dict[str, str] = {}
    for row in said.split("\n"):
        if row.startswith("\t"):
            when = int(about.get("author-time", "0"))
            day = time.strftime("%Y-%m-%d", time.gmtime(when))
            known = found[commit][1].lines if commit in found else ()
            change = LastChange(commit, about.get("author", ""), day, about.get("summary", ""), (*known, line))
            found[commit] = (when, change)
            about = {}
        elif match := _LINE.match(row):
            commit, line = match.group(1), int(match.group(2))
        else:
            key, _, value = row.partition(" ")
            about[key] = value
    return tuple(change for _, change in sorted(found.values(), key=lambda pair: -pair[0]))
