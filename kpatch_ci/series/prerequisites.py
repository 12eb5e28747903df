# SPDX-License-Identifier: GPL-2.0-or-later
"""``prerequisite-patch-id:`` trailers: patches that have to be there first, recognised by git's patch id."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence

import git

from kpatch_ci.series.draft import Account, Draft
from kpatch_ci.store.gitenv import ALONE

TIMEOUT = 60.0
"""Seconds that git may take for the patch ids of one diff."""


def in_order(groups: list[list[Draft]], covers: Sequence[Draft], account: Account) -> list[list[Draft]]:
    """Series in an order in which the prerequisites that were given come first; those that were not are named."""
    needs = [_needed(group, covers) for group in groups]
    if not any(needs):
        return groups
    gives = [{patch_id(draft.patch.diff) for draft in group if draft.patch} for group in groups]
    missing = sorted({wanted for need in needs for wanted in need} - {given for give in gives for given in give})
    if missing:
        shown = ", ".join(wanted[:12] for wanted in missing)
        account.notes.append(f"patches that it says have to be there first, and were not given: {shown} (patch ids)")
    ordered: list[int] = []
    waiting = list(range(len(groups)))
    while waiting:
        ready = [i for i in waiting if not any(needs[i] & gives[j] for j in waiting if j != i)] or waiting[:1]
        ordered.append(ready[0])
        waiting.remove(ready[0])
    if ordered != sorted(ordered):
        account.notes.append("prerequisites are applied first, though they came later")
    return [groups[i] for i in ordered]


def patch_id(diff: bytes) -> str:
    """git's stable patch id; empty where git finds no patch in it."""
    with tempfile.TemporaryFile() as stream:
        stream.write(diff)
        stream.seek(0)
        command = git.Git(tempfile.gettempdir())
        command.update_environment(**ALONE, GIT_DIR=os.devnull)
        said = command.execute(
            ["git", "patch-id", "--stable"], istream=stream, with_exceptions=False, kill_after_timeout=TIMEOUT
        )
    return str(said).split(" ")[0]


def _needed(group: Sequence[Draft], covers: Sequence[Draft]) -> set[str]:
    needed = {wanted for draft in group for wanted in draft.prerequisites}
    shapes = {(draft.subject.rank, draft.subject.total) for draft in group}
    return needed | {
        wanted
        for cover in covers
        if (cover.subject.rank, cover.subject.total) in shapes
        for wanted in cover.prerequisites
    }
