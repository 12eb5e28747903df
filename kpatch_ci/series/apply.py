# SPDX-License-Identifier: GPL-2.0-or-later
"""Puts a series on a tree. A series that does not apply is a result, with every hunk that failed, not an exception."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from kpatch_ci.model.build import Tree
from kpatch_ci.model.series import AppliedPatch, ApplyMethod, ApplyResult, HunkFailure, Patch, Series
from kpatch_ci.model.status import Status
from kpatch_ci.series.diff import preimage_blobs
from kpatch_ci.series.failures import explain
from kpatch_ci.series.gitindex import PrivateIndex

_DIRECTNESS = (ApplyMethod.AS_MAILED, ApplyMethod.THREE_WAY, ApplyMethod.PORT)
ALREADY = "already in the tree"


@dataclass(frozen=True, slots=True)
class _Attempt:
    """Patches one after another on a tree; ``reason`` is empty where all of them went on."""

    patches: tuple[AppliedPatch, ...]
    tree_id: str
    reason: str = ""


def apply_series(series: Series, tree: Tree) -> ApplyResult:
    """Put a series on a tree: as mailed (offsets yes, fuzz never), else by three-way merge, else by the port for the tree's release.

    A stack is applied member after member, each by its own method. New objects go to ``tree.repo``, which no index or
    working tree of its owner notices. Baseline patches go on first, and are no part of the result's changes.
    Raises InfrastructureError where the repository cannot be used.
    """
    if series.base is not None:
        below = apply_series(series.base, tree)
        if below.tree_id is None:
            return replace(below, reason=f"its baseline patches do not apply: {below.reason}")
        return apply_series(replace(series, base=None), replace(tree, tree_id=below.tree_id))
    with (
        tempfile.TemporaryDirectory(prefix="kpatch-ci-apply-") as scratch,
        PrivateIndex(tree.repo, Path(scratch)) as index,
    ):
        index.read(tree.tree_id)
        attempt = _put(index, series, tree)
        if not attempt.reason and attempt.tree_id == tree.tree_id:
            attempt = replace(attempt, reason="the series changes nothing: the tree after it is the tree before it")
        if attempt.reason:
            return ApplyResult(Status.FAILED, None, None, attempt.patches, reason=attempt.reason)
        changed = index.changed_paths(tree.tree_id, attempt.tree_id)
    used = [patch.method for patch in attempt.patches if patch.method is not None]
    method = max(used, key=_DIRECTNESS.index)
    return ApplyResult(Status.PASSED, method, attempt.tree_id, attempt.patches, changed)


def port_for(series: Series, release: str) -> tuple[str, tuple[Patch, ...]] | None:
    """The port whose version prefix fits a release best: ``6.1`` fits 6.1, 6.1.140 and 6.1-rc3, but not 6.12."""
    fitting = [
        prefix for prefix in series.ports if release == prefix or release.startswith((f"{prefix}.", f"{prefix}-"))
    ]
    best = max(fitting, key=len, default=None)
    return None if best is None else (best, series.ports[best])


def _put(index: PrivateIndex, series: Series, tree: Tree) -> _Attempt:
    base = tree.tree_id
    if not series.members:
        return _put_one(index, series, base, tree.release)
    done: tuple[AppliedPatch, ...] = ()
    for position, member in enumerate(series.members):
        attempt = _put(index, member, replace(tree, tree_id=base))
        done += attempt.patches
        if attempt.reason:
            later = chain.from_iterable(m.patches for m in series.members[position + 1 :])
            reason = f"member {member.name}: {attempt.reason}"
            return _Attempt((*done, *(_skipped(patch) for patch in later)), base, reason)
        base = attempt.tree_id
    return _Attempt(done, base)


def _put_one(index: PrivateIndex, series: Series, base: str, release: str) -> _Attempt:
    mailed = _put_mails(index, series.patches, base)
    if not mailed.reason:
        return mailed
    port = port_for(series, release)
    if port is None:
        return _or_already(index, mailed, series.patches, base)
    prefix, patches = port
    if mailed.patches[0].tree_id is not None:
        index.read(base)
    ported = _put_port(index, patches, base)
    if ported.reason:
        reason = f"{mailed.reason}; the port for {prefix} does not apply either: {ported.reason}"
        return _or_already(index, replace(ported, reason=reason), series.patches, base)
    return replace(ported, patches=_keep_failures(ported.patches, mailed.patches))


def _put_mails(index: PrivateIndex, patches: Sequence[Patch], base: str) -> _Attempt:
    done: list[AppliedPatch] = []
    for position, patch in enumerate(patches):
        applied = _put_mail(index, patch, base)
        done.append(applied)
        if applied.tree_id is None:
            reason = _why(patch, applied.failures)
            return _Attempt((*done, *(_skipped(later) for later in patches[position + 1 :])), base, reason)
        base = applied.tree_id
    return _Attempt(tuple(done), base)


def _put_mail(index: PrivateIndex, patch: Patch, base: str) -> AppliedPatch:
    """One mail on the index, which holds ``base``, and holds it again where the mail does not go on."""
    direct = index.apply(patch.diff)
    if direct.ok:
        return _passed(patch, ApplyMethod.AS_MAILED, index.write(), direct.offsets)
    failures = _refusal(index, patch, direct.said)
    blobs = preimage_blobs(patch.diff)
    if failures[0].reason != ALREADY and blobs and index.has_blobs(blobs):
        merged = index.apply(patch.diff, "--3way")
        new = index.write() if merged.ok else base
        if new != base:
            return _passed(patch, ApplyMethod.THREE_WAY, new, (), failures)
        index.read(base)
        if merged.ok:
            return _failed(patch, (_already(patch),))
    return _failed(patch, failures)


def _put_port(index: PrivateIndex, patches: Sequence[Patch], base: str) -> _Attempt:
    done: list[AppliedPatch] = []
    for position, patch in enumerate(patches):
        outcome = index.apply(patch.diff)
        if not outcome.ok:
            failures = _refusal(index, patch, outcome.said)
            done.append(_failed(patch, failures))
            later = (_skipped(later) for later in patches[position + 1 :])
            return _Attempt((*done, *later), base, _why(patch, failures))
        base = index.write()
        done.append(_passed(patch, ApplyMethod.PORT, base, outcome.offsets))
    return _Attempt(tuple(done), base)


def _refusal(index: PrivateIndex, patch: Patch, said: str) -> tuple[HunkFailure, ...]:
    """Why git refused a patch, never empty: what can be taken off is there already."""
    if index.apply(patch.diff, "--reverse", "--check").ok:
        return (_already(patch),)
    return explain(patch.diff, said, index.file)


def _or_already(index: PrivateIndex, attempt: _Attempt, patches: Sequence[Patch], base: str) -> _Attempt:
    """Look whether the whole series can be taken off the tree: patch 1 alone often cannot, for patch 2 changed it further."""
    index.read(base)
    if len(patches) > 1 and all(index.apply(patch.diff, "--reverse").ok for patch in reversed(patches)):
        taken = tuple(_failed(patch, (_already(patch),)) for patch in patches)
        return _Attempt(taken, base, f"the whole series is {ALREADY}")
    return attempt


def _keep_failures(ported: Sequence[AppliedPatch], mailed: Sequence[AppliedPatch]) -> tuple[AppliedPatch, ...]:
    """Give the port's patches the failures of the mails they replace; all to the first where they are not as many."""
    if len(ported) == len(mailed):
        return tuple(replace(new, failures=old.failures) for new, old in zip(ported, mailed, strict=True))
    together = tuple(failure for old in mailed for failure in old.failures)
    return (replace(ported[0], failures=together), *ported[1:])


def _why(patch: Patch, failures: Sequence[HunkFailure]) -> str:
    first = failures[0]
    place = f"{first.path}:{first.line}: " if first.line else f"{first.path}: " if first.path else ""
    more = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
    what = f"`{patch.subject}`"
    if first.reason == ALREADY:
        return f"{what} is {ALREADY}"
    return f"{what} does not apply: {place}{first.reason}{more}"


def _already(patch: Patch) -> HunkFailure:
    return HunkFailure(
        path=patch.paths[0] if patch.paths else "", line=0, header="", wanted="", found="", reason=ALREADY
    )


def _passed(
    patch: Patch, method: ApplyMethod, tree_id: str, offsets: tuple[int, ...], failures: tuple[HunkFailure, ...] = ()
) -> AppliedPatch:
    return AppliedPatch(patch.subject, patch.source, Status.PASSED, method, offsets, tree_id, failures)


def _failed(patch: Patch, failures: tuple[HunkFailure, ...]) -> AppliedPatch:
    return AppliedPatch(patch.subject, patch.source, Status.FAILED, None, failures=failures)


def _skipped(patch: Patch) -> AppliedPatch:
    return AppliedPatch(patch.subject, patch.source, Status.SKIPPED, None)
