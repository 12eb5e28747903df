# SPDX-License-Identifier: GPL-2.0-or-later
"""Puts a series on a tree. A series that does not apply is a result, with every hunk that failed, not an exception."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from kpatch_ci.model.build import Tree
from kpatch_ci.model.series import AppliedPatch, ApplyMethod, ApplyResult, Fit, HunkFailure, Patch, Series
from kpatch_ci.model.status import Status
from kpatch_ci.series.gitindex import PrivateIndex
from kpatch_ci.series.onepatch import ALREADY, already, can_be_taken_off, put_mail, put_port, put_what_goes
from kpatch_ci.series.sections import sections

_DIRECTNESS = (ApplyMethod.AS_MAILED, ApplyMethod.THREE_WAY, ApplyMethod.PORT, ApplyMethod.FUZZ)
_FITS = {
    ApplyMethod.AS_MAILED: Fit.AS_MAILED,
    ApplyMethod.THREE_WAY: Fit.THREE_WAY,
    ApplyMethod.PORT: Fit.PORT,
    ApplyMethod.FUZZ: Fit.FUZZ,
}


@dataclass(frozen=True, slots=True)
class _Attempt:
    """Patches one after another on a tree; ``reason`` is empty where all of them went on."""

    patches: tuple[AppliedPatch, ...]
    tree_id: str
    reason: str = ""
    there: bool = False
    """Whether the whole series can be taken off the tree."""


@contextmanager
def open_index(tree: Tree) -> Iterator[PrivateIndex]:
    """A private index for several series on one tree. Raises InfrastructureError where the repository cannot be used."""
    with (
        tempfile.TemporaryDirectory(prefix="kpatch-ci-apply-") as scratch,
        PrivateIndex(tree.repo, Path(scratch)) as index,
    ):
        yield index


def apply_series(series: Series, tree: Tree, *, fuzz: int = 0) -> ApplyResult:
    """Put a series on a tree: as mailed (offsets yes), else by three-way merge, else by the port for the tree's release.

    Only where ``fuzz`` says so, and nothing else works, up to that many lines of context at either end of a hunk are
    ignored. Every hunk that moved or lost context is in the result. A stack is applied member after member, each by its
    own method. New objects go to ``tree.repo``, which no index or working tree of its owner notices. Raises
    InfrastructureError where the repository cannot be used.
    """
    with open_index(tree) as index:
        return apply_on(index, series, tree, fuzz=fuzz)


def apply_on(index: PrivateIndex, series: Series, tree: Tree, *, fuzz: int = 0) -> ApplyResult:
    """Like apply_series, with an index that may have served other series of the same tree.

    Baseline patches go on first, and are no part of the result's changes.
    """
    if series.base is not None:
        below = apply_on(index, series.base, tree, fuzz=fuzz)
        if below.tree_id is None:
            return replace(below, reason=f"its baseline patches do not apply: {below.reason}")
        return apply_on(index, replace(series, base=None), replace(tree, tree_id=below.tree_id), fuzz=fuzz)
    index.focus(touched(series))
    index.read(tree.tree_id)
    attempt = _put(index, series, tree, fuzz)
    empty = not attempt.reason and attempt.tree_id == tree.tree_id
    if empty:
        attempt = replace(attempt, reason="the series changes nothing: the tree after it is the tree before it")
    if attempt.reason:
        fit = Fit.EMPTY if empty else Fit.THERE if attempt.there else _misfit(index, series, attempt.patches)
        return ApplyResult(Status.FAILED, None, None, attempt.patches, reason=attempt.reason, fit=fit)
    changed = index.changed_paths(tree.tree_id, attempt.tree_id)
    used = [patch.method for patch in attempt.patches if patch.method is not None]
    method = max(used, key=_DIRECTNESS.index)
    return ApplyResult(Status.PASSED, method, attempt.tree_id, attempt.patches, changed, fit=_FITS[method])


def touched(series: Series) -> set[str]:
    """All files that the series, its members and their ports name, before and after."""
    groups = [series.patches, *series.ports.values()]
    parts = [part for group in groups for patch in group for part in sections(patch.diff)]
    names = {name for part in parts for name in (part.old, part.new) if name and not is_outside(name)}
    return names.union(*(touched(member) for member in series.members))


def is_outside(path: str) -> bool:
    """Whether a path leaves the tree: git apply refuses those, and other commands fail on them."""
    return path.startswith("/") or ".." in path.split("/")


def _misfit(index: PrivateIndex, series: Series, patches: Sequence[AppliedPatch]) -> Fit:
    """In what way a series does not fit."""
    bad = [patch for patch in patches if patch.status is Status.FAILED]
    if all(failure.there for patch in bad for failure in patch.failures):
        return Fit.PARTLY if len(bad) < len(patches) or not _whole(bad) else Fit.THERE
    subjects = {patch.source for patch in bad if any(not failure.there for failure in patch.failures)}
    blobs = [
        part.old_blob
        for patch in series.patches
        if patch.source in subjects
        for part in sections(patch.diff)
        if part.old_blob
    ]
    return Fit.CONFLICT if blobs and index.has_blobs(blobs) else Fit.PORT_NEEDED


def _whole(patches: Sequence[AppliedPatch]) -> bool:
    return all(failure.reason == ALREADY for patch in patches for failure in patch.failures)


def port_for(series: Series, release: str) -> tuple[str, tuple[Patch, ...]] | None:
    """The port whose version prefix fits a release best: ``6.1`` fits 6.1, 6.1.140 and 6.1-rc3, but not 6.12."""
    fitting = [
        prefix for prefix in series.ports if release == prefix or release.startswith((f"{prefix}.", f"{prefix}-"))
    ]
    best = max(fitting, key=len, default=None)
    return None if best is None else (best, series.ports[best])


def _put(index: PrivateIndex, series: Series, tree: Tree, fuzz: int) -> _Attempt:
    base = tree.tree_id
    if not series.members:
        return _put_one(index, series, base, tree.release, fuzz)
    done: tuple[AppliedPatch, ...] = ()
    for position, member in enumerate(series.members):
        attempt = _put(index, member, replace(tree, tree_id=base), fuzz)
        done += attempt.patches
        if attempt.reason:
            later = chain.from_iterable(m.patches for m in series.members[position + 1 :])
            reason = f"member {member.name}: {attempt.reason}"
            return _Attempt((*done, *(_skipped(patch) for patch in later)), base, reason)
        base = attempt.tree_id
    return _Attempt(done, base)


def _put_one(index: PrivateIndex, series: Series, base: str, release: str, fuzz: int) -> _Attempt:
    mailed = _put_mails(index, series.patches, base)
    if not mailed.reason:
        return mailed
    index.read(base)
    failed = mailed
    if port := port_for(series, release):
        prefix, patches = port
        ported = _put_port(index, patches, base)
        if not ported.reason:
            return replace(ported, patches=_keep_failures(ported.patches, mailed.patches))
        reason = f"{mailed.reason}; the port for {prefix} does not apply either: {ported.reason}"
        failed = replace(ported, reason=reason)
        index.read(base)
    if fuzz:
        loose = _put_mails(index, series.patches, base, fuzz)
        if not loose.reason:
            return loose
    return _or_already(index, failed, series.patches, base)


def _put_mails(index: PrivateIndex, patches: Sequence[Patch], base: str, fuzz: int = 0) -> _Attempt:
    """Patches in order. After one that fails the later ones are still looked at, on what could be applied of it."""
    done: list[AppliedPatch] = []
    reason = ""
    for patch in patches:
        applied = put_mail(index, patch, base, fuzz=fuzz)
        if applied.tree_id is None:
            reason = reason or _why(patch, applied.failures)
            base = put_what_goes(index, patch, base)
        else:
            base = applied.tree_id
            applied = _skipped(patch) if reason else applied
        done.append(applied)
    return _Attempt(tuple(done), base, reason)


def _put_port(index: PrivateIndex, patches: Sequence[Patch], base: str) -> _Attempt:
    done: list[AppliedPatch] = []
    for position, patch in enumerate(patches):
        applied = put_port(index, patch, base)
        done.append(applied)
        if applied.tree_id is None:
            later = (_skipped(later) for later in patches[position + 1 :])
            return _Attempt((*done, *later), base, _why(patch, applied.failures))
        base = applied.tree_id
    return _Attempt(tuple(done), base)


def _or_already(index: PrivateIndex, attempt: _Attempt, patches: Sequence[Patch], base: str) -> _Attempt:
    """Look whether the whole series can be taken off the tree: patch 1 alone often cannot, for patch 2 changed it further."""
    index.read(base)
    if len(patches) > 1 and all(can_be_taken_off(index, patch) for patch in reversed(patches)):
        taken = tuple(_failed(patch, (already(patch),)) for patch in patches)
        return _Attempt(taken, base, f"the whole series is {ALREADY}", there=True)
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


def _failed(patch: Patch, failures: tuple[HunkFailure, ...]) -> AppliedPatch:
    return AppliedPatch(patch.subject, patch.source, Status.FAILED, None, failures=failures)


def _skipped(patch: Patch) -> AppliedPatch:
    return AppliedPatch(patch.subject, patch.source, Status.SKIPPED, None)
