# SPDX-License-Identifier: GPL-2.0-or-later
"""Working trees for builds: the baseline is checked out once, a patched one is hard links to it plus what differs.

Make goes by time stamps, so these are set, not left to chance: what comes from the baseline is older than any object, and
what a patch changed is made newer than the objects that a build starts from, just before it starts. (A patched tree may
well be older than those objects: it is made once, for all architectures.) Builds see these trees read-only.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kpatch_ci.kernel.git import git_errors, open_repo
from kpatch_ci.kernel.kconfig import Kconfigs
from kpatch_ci.model.build import Tree
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.process import check_stopping, run
from kpatch_ci.store.atomic import disk_errors
from kpatch_ci.store.cache import locked

COPY_TIMEOUT = 600.0
OLD = 1_500_000_000
"""Time stamp (seconds) of every file that comes from the baseline."""
SUBMODULE = "160000"
"""Mode of a commit of another repository: nothing is checked out of it."""
_TICK = 0.01
"""Seconds by which a source is newer than an object that was made just now: more than a file system's clock is coarse."""


Reader = Callable[[str], bytes]
"""Contents of a blob."""


@dataclass(frozen=True, slots=True)
class Change:
    """A file in which two git trees differ."""

    name: str
    mode: str
    """As git writes it."""
    blob: str
    """Empty for a file that is gone."""


class Trees(Protocol):
    """Knows in which files git trees differ, and what is in those."""

    def changes(self, tree: Tree, before: str, after: str, /) -> Sequence[Change]:
        """From git tree ``before`` to ``after``."""

    def reader(self, tree: Tree, /) -> Reader:
        """Reads the blobs of changes."""

    def kconfigs(self, tree: Tree, tree_id: str, /) -> Kconfigs | None:
        """What explains why a symbol is not as asked; None where nothing does."""


class GitTrees:
    """See Trees: from the tree's repository."""

    def changes(self, tree: Tree, before: str, after: str) -> Sequence[Change]:
        """See Trees."""
        argv = ["git", "diff-tree", "-r", "-z", "--no-renames", before, after]
        raw = open_repo(tree.repo).git.execute(argv, strip_newline_in_stdout=False)
        fields = str(raw).split("\0")
        found = []
        for meta, name in zip(fields[0::2], fields[1::2], strict=False):
            _, mode, _, blob, status = meta.split(" ")
            found.append(Change(name, mode, "" if status == "D" else blob))
        return found

    def reader(self, tree: Tree) -> Reader:
        """See Trees."""
        repo = open_repo(tree.repo)
        return lambda blob: bytes(repo.odb.stream(bytes.fromhex(blob)).read())

    def kconfigs(self, tree: Tree, tree_id: str) -> Kconfigs | None:
        """See Trees."""
        return Kconfigs(open_repo(tree.repo), tree_id)


GIT = GitTrees()


def source_place(cache: Path, tree_id: str, *, patched: bool = False) -> Path:
    """Where the working tree of a git tree is or would be."""
    return cache / "src" / f"{'patched-' if patched else ''}{tree_id[:16]}"


def checkout(cache: Path, tree: Tree) -> Path:
    """The baseline's working tree, complete; made when it is not there."""
    place = source_place(cache, tree.tree_id)
    with locked(place, check_stopping), disk_errors(place):
        if place.is_dir():
            return place
        work = fresh(place)
        repo = open_repo(tree.repo)
        with (
            git_errors("check the tree out"),
            tempfile.TemporaryDirectory(dir=place.parent, prefix=".index-") as scratch,
            repo.git.custom_environment(GIT_INDEX_FILE=f"{scratch}/index"),
        ):
            repo.git.read_tree(tree.tree_id)
            repo.git.execute(
                ["git", f"--git-dir={tree.repo}", f"--work-tree={work}", "checkout-index", "--all", "--force"]
            )
        stamp_old(work)
        work.rename(place)
    return place


def stamp_old(work: Path) -> None:
    """Everything below a baseline's working tree is older than any object."""
    for path in work.rglob("*"):
        os.utime(path, (OLD, OLD), follow_symlinks=False)


def checkout_patched(cache: Path, tree: Tree, tree_id: str, *, newer_than: float = 0.0, trees: Trees = GIT) -> Path:
    """A patched working tree beside the baseline's: hard links, with the files that differ written anew.

    The files that differ are stamped as newer than ``newer_than``: the time stamp (seconds) of the newest object that
    the build starts from. The host's clock may have been set back since that was made.
    """
    place = source_place(cache, tree_id, patched=True)
    if tree_id == tree.tree_id:
        return checkout(cache, tree)
    base = checkout(cache, tree)
    changes = trees.changes(tree, tree.tree_id, tree_id)
    stamp = max(time.time(), newer_than + 1)
    with locked(place, check_stopping), disk_errors(place), git_errors("write the patched tree"):
        if not place.is_dir():
            work = _linked(base, place)
            _write(trees.reader(tree), changes, work)
            work.rename(place)
        _stamp(changes, place, stamp)
    return place


def checkout_movable(cache: Path, tree: Tree, place: Path) -> None:
    """The baseline's working tree once more, as hard links at ``place``, for ``move``."""
    base = checkout(cache, tree)
    with disk_errors(place):
        _linked(base, place).rename(place)


def move(tree: Tree, place: Path, before: str, after: str, *, newer_than: float) -> tuple[str, ...]:
    """Turn a movable working tree of git tree ``before`` into that of ``after``; the files in which they differ.

    Those are stamped as newer than ``newer_than`` (seconds), just before a build that starts from older objects.
    """
    changes = GIT.changes(tree, before, after)
    with disk_errors(place), git_errors("write the working tree"):
        _write(GIT.reader(tree), changes, place)
    _stamp(changes, place, max(time.time(), newer_than) + _TICK)
    return tuple(change.name for change in changes)


def _stamp(changes: Sequence[Change], place: Path, stamp: float) -> None:
    for change in changes:
        if change.blob:
            os.utime(place / change.name, (stamp, stamp), follow_symlinks=False)


def _linked(base: Path, place: Path) -> Path:
    """Hard links to all of ``base`` in a new directory beside ``place``."""
    work = fresh(place)
    work.rmdir()
    done = run(["cp", "-alT", base, work], timeout=COPY_TIMEOUT)
    if not done.ok:
        raise InfrastructureError(f"cannot link the source tree: {done.explain()}", log=done.output)
    return work


def fresh(place: Path) -> Path:
    """A new directory beside ``place``: never one that an orphan of a killed run may still write to."""
    place.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".new-{place.name}-", dir=place.parent))
    work.chmod(0o755)
    return work


def changed_paths(tree: Tree, tree_id: str, trees: Trees = GIT) -> tuple[str, ...]:
    """Files in which a git tree differs from the baseline, but for those that are gone."""
    return tuple(change.name for change in trees.changes(tree, tree.tree_id, tree_id) if change.blob)


def differing_paths(tree: Tree, before: str, after: str) -> frozenset[str]:
    """Files in which two git trees differ, gone ones among them."""
    return frozenset(change.name for change in GIT.changes(tree, before, after))


def _write(read: Reader, changes: Sequence[Change], work: Path) -> None:
    for change in changes:  # all that goes, before a link can stand where a directory was and lead elsewhere
        target = work / change.name
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target)
        target.unlink(missing_ok=True)  # never write through a hard link
    for change in changes:
        target = work / change.name
        if not change.blob or change.mode == SUBMODULE:
            continue
        if target.is_dir():
            shutil.rmtree(target)  # what is left of a directory whose files are gone
        target.parent.mkdir(parents=True, exist_ok=True)
        data = read(change.blob)
        if change.mode == "120000":
            target.symlink_to(os.fsdecode(data))
            continue
        target.write_bytes(data)
        target.chmod(0o755 if change.mode == "100755" else 0o644)
