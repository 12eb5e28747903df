# SPDX-License-Identifier: GPL-2.0-or-later
"""A working tree with a series on it as commits, and the first conflict left in it for a person to resolve.

The worktree belongs to kpatch-ci's own repository of the tree, never to the user's. It stops inside ``git am``, so that
``git am --continue`` commits what was resolved with the mail's author, date and message, and goes on with the rest.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kpatch_ci.model.build import Tree
from kpatch_ci.model.errors import InfrastructureError, UserError
from kpatch_ci.model.series import Fit, Patch, Series
from kpatch_ci.process import Completed, run
from kpatch_ci.series.apply import apply_on, open_index
from kpatch_ci.series.commits import as_mail, commit_all
from kpatch_ci.series.fates import FileFate, read_fates
from kpatch_ci.series.gitindex import PrivateIndex, isolated_work
from kpatch_ci.series.letter import split_lines
from kpatch_ci.series.placements import Files, applicable, judge, refuse
from kpatch_ci.series.sections import sections

TIMEOUT = 900.0
"""Seconds that writing a kernel's working tree may take."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A worktree: what is to be resolved in it. ``marked`` has merge markers, ``rejected`` are *.rej files."""

    directory: Path
    applied: int
    """Patches that are in it as commits."""
    stopped_at: str
    """Subject of the patch that is to be resolved; empty where all are in."""
    marked: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    left: int = 0
    """Patches after it."""


def keep(series: Series, tree: Tree, directory: Path, *, fuzz: int = 0) -> Kept:
    """Make the worktree: with the mails as far as they go, ports left aside.

    Raises UserError where the directory is in use or there is nothing to resolve, InfrastructureError where git fails.
    """
    directory = directory.expanduser().absolute()
    if series.members:
        what = f"{series.name} is a stack: its members are resolved one by one"
        raise UserError(what, where="--keep", expected=f"one of {', '.join(m.name for m in series.members)}")
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise UserError(f"{directory} is there already", where="--keep", expected="a directory that is new or empty")
    mails = replace(series, ports={})
    with open_index(tree) as index:
        result = apply_on(index, mails, tree, fuzz=fuzz)
        if result.fit in (Fit.THERE, Fit.EMPTY):
            raise UserError(result.reason, where="--keep", expected="a series that changes the tree")
        count = next((i for i, p in enumerate(result.patches) if p.tree_id is None), len(result.patches))
        tip = (tree.commit, *commit_all(index, tree.commit, series, result.patches))[-1]
        index.must("worktree", "prune")
        _checked(_git(tree, None, "worktree", "add", "--force", "--detach", directory, tip), "make the worktree")
        rest = series.patches[count:]
        if not rest:
            return Kept(directory, count, "")
        _stop_inside_am(directory, rest)
        base = index.must("rev-parse", f"{tip}^{{tree}}").strip()
        index.read(base)
        marked, rejected = _leave(index, base, rest[0], directory)
    return Kept(directory, count, rest[0].subject, marked, rejected, len(rest) - 1)


def _stop_inside_am(directory: Path, patches: Sequence[Patch]) -> None:
    """Begin ``git am`` and have it stop before it applies the first patch: a hook of ours says no."""
    with tempfile.TemporaryDirectory(prefix="kpatch-ci-am-") as scratch:
        hook = Path(scratch) / "applypatch-msg"
        hook.write_text("#!/bin/sh\nexit 1\n")
        hook.chmod(0o755)
        files = []
        for number, patch in enumerate(patches, 1):
            files.append(Path(scratch) / f"{number:04}.patch")
            files[-1].write_bytes(as_mail(patch))
        argv: list[str | Path] = [
            "-c",
            f"core.hooksPath={scratch}",
            "am",
            "--3way",
            "--keep-cr",
            "--keep-non-patch",
            *files,
        ]
        done = _git(None, directory, *argv)
    if done.ok or not _git(None, directory, "am", "--show-current-patch=diff").ok:
        raise InfrastructureError("git am did not stop where it should", log=done.output)


def _leave(index: PrivateIndex, base: str, patch: Patch, directory: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Put into the worktree what goes; the rest as merge markers where the blobs are there, as *.rej files where not."""
    parts = sections(patch.diff)
    blobs = [part.old_blob for part in parts if part.old_blob]
    if blobs and index.has_blobs(blobs):
        _apply(directory, patch.diff, "--3way")
        listed = _git(None, directory, "diff", "--name-only", "-z", "--diff-filter=U").output
        if marked := tuple(path for path in listed.split("\0") if path):
            return marked, ()
        _checked(_git(None, directory, "reset", "--hard", "--quiet"), "clean the worktree")
    fates = read_fates(index.apply(patch.diff, "--reject", "--check").said, parts)
    fates = refuse(fates, judge(fates, Files(index.file, base)))
    if rest := applicable(patch.diff, fates):
        _checked(_apply(directory, rest, "--index"), "apply what applies")
    return (), tuple(_reject(directory, patch.diff, fate) for fate in fates if fate.refused)


def _apply(directory: Path, diff: bytes, *options: str) -> Completed:
    with tempfile.TemporaryDirectory(prefix="kpatch-ci-am-") as scratch:
        patch = Path(scratch) / "patch"
        patch.write_bytes(diff)
        return _git(None, directory, "apply", "--whitespace=nowarn", *options, patch)


def _reject(directory: Path, diff: bytes, fate: FileFate) -> str:
    """Write the hunks of a file that found no place beside it, as git apply --reject does; returns the file's name."""
    rows = split_lines(diff)
    first, end = fate.section.rows
    starts = [*(hunk.hunk.row for hunk in fate.hunks), end]
    path = fate.section.path
    text = f"diff a/{path} b/{path}\t(rejected hunks)\n".encode()
    for hunk, stop in zip(fate.hunks, starts[1:], strict=True):
        if hunk.refused or fate.errors:
            text += b"".join(rows[hunk.hunk.row : stop])
    if not fate.hunks:
        text += b"".join(rows[first:end])
    place = directory / f"{path}.rej"
    if not place.resolve().is_relative_to(directory.resolve()):
        raise UserError(f"{path} leaves the tree", expected="a patch below the tree")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(text)
    return f"{path}.rej"


def _git(tree: Tree | None, directory: Path | None, *words: str | Path) -> Completed:
    git_dir = tree.repo.resolve() if tree else None
    return run([*isolated_work(git_dir, directory), *words], timeout=TIMEOUT, cwd=directory)


def _checked(done: Completed, what: str) -> None:
    if not done.ok:
        full = "No space left" in done.output
        hint = "free some disk space: a kernel's working tree takes 1.5 GB" if full else None
        raise InfrastructureError(f"cannot {what}: {done.explain()}", log=done.output, hint=hint)
