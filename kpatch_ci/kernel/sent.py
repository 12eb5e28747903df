# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernel source for a machine that has no git tree of it: the baseline's working tree as one file, a patched one as its changes.

Both are artifacts: made here, sent, and unpacked there to where ``checkout`` would have put it. The packed source is made of
the working tree itself: what git exports may be something else than what it checks out (export-subst, export-ignore).
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from kpatch_ci import process
from kpatch_ci.kernel.checkout import GIT, OLD, SUBMODULE, Change, Reader, checkout, fresh, source_place, stamp_old
from kpatch_ci.kernel.kconfig import Kconfigs
from kpatch_ci.model.build import Tree
from kpatch_ci.model.digest import digest
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.process import run
from kpatch_ci.store.artifacts import Artifact, ArtifactStore
from kpatch_ci.store.atomic import disk_errors
from kpatch_ci.store.cache import locked

SOURCE, CHANGES = "source", "changes"
PACKED, LISTED = "source.tar.gz", "changes.json"
UNPACK_TIMEOUT = 1200.0
_VERSION = 1
_STREAM = 1 << 20


def source_key(tree_id: str) -> str:
    """Of the packed working tree of a git tree."""
    return digest([SOURCE, _VERSION, tree_id])


def changes_key(before: str, after: str) -> str:
    """Of the changes from one git tree to another."""
    return digest([CHANGES, _VERSION, before, after])


def pack_source(cache: Path, tree: Tree, store: ArtifactStore) -> Artifact:
    """The baseline's working tree as an artifact: the same bytes each time, so that one sent in part goes on."""
    key = source_key(tree.tree_id)
    source = checkout(cache, tree)

    def fill(place: Path) -> Mapping[str, Any]:
        _pack(source, place / PACKED)
        return {"tree_id": tree.tree_id}

    with locked(source.with_name(f"{source.name}.packed"), process.check_stopping):
        return store.get(SOURCE, key, verify=False) or store.put(SOURCE, key, fill)


def _pack(source: Path, target: Path) -> None:
    with (
        target.open("wb") as raw,
        gzip.GzipFile("", "wb", 1, raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.GNU_FORMAT, bufsize=_STREAM) as archive,
    ):
        for name in _names(source):
            path = source / name
            member = _member(path, name)
            if member.isreg():
                with path.open("rb") as data:
                    archive.addfile(member, data)
            else:
                archive.addfile(member)


def _names(source: Path) -> Iterator[str]:
    """All below a directory, in one order; links are not followed."""
    for place, folders, files in os.walk(source):
        if process.is_stopping():
            raise InfrastructureError("not packing the kernel source: stopping")
        folders.sort()
        base = Path(place).relative_to(source)
        yield from (str(base / name) for name in sorted([*folders, *files]))


def _member(path: Path, name: str) -> tarfile.TarInfo:
    """Of no owner and no time: every machine packs the same."""
    state = path.lstat()
    member = tarfile.TarInfo(name)
    member.mode, member.mtime = state.st_mode & 0o777, OLD
    if path.is_symlink():
        member.type, member.linkname = tarfile.SYMTYPE, str(path.readlink())
    elif path.is_dir():
        member.type = tarfile.DIRTYPE
    else:
        member.size = state.st_size
    return member


def has_source(cache: Path, tree_id: str) -> bool:
    """Whether the working tree of a git tree is there."""
    return source_place(cache, tree_id).is_dir()


def unpack_source(cache: Path, store: ArtifactStore, tree_id: str) -> Path:
    """The working tree, whole or absent; the packed one is dropped then. Raises InfrastructureError."""
    place, key = source_place(cache, tree_id), source_key(tree_id)
    with locked(place, process.check_stopping), disk_errors(place):
        if place.is_dir():
            return place
        packed = store.get(SOURCE, key)
        if packed is None:
            raise InfrastructureError("the packed kernel source is not here, or was damaged")
        work = fresh(place)
        try:
            # tar takes no name that leads outside, and lays links that do only after everything else
            done = run(["tar", "-C", work, "-xpzf", packed.path / PACKED, "--no-same-owner"], timeout=UNPACK_TIMEOUT)
            if not done.ok:
                raise InfrastructureError(f"cannot unpack the kernel source: {done.explain()}", log=done.output)
            stamp_old(work)  # tar stamps neither links that it lays last nor the directories of those
            work.rename(place)
        finally:
            shutil.rmtree(work, ignore_errors=True)
        store.drop(SOURCE, key)
    return place


def pack_changes(tree: Tree, tree_id: str, store: ArtifactStore) -> Artifact:
    """What turns the baseline's working tree into that of another git tree, as an artifact. Raises InfrastructureError."""
    key = changes_key(tree.tree_id, tree_id)

    def fill(place: Path) -> Mapping[str, Any]:
        changes, read = GIT.changes(tree, tree.tree_id, tree_id), GIT.reader(tree)
        for change in changes:
            if change.blob and change.mode != SUBMODULE:
                (place / change.blob).write_bytes(read(change.blob))
        (place / LISTED).write_text(json.dumps([[one.name, one.mode, one.blob] for one in changes]))
        return {"before": tree.tree_id, "after": tree_id}

    return store.get(CHANGES, key) or store.put(CHANGES, key, fill)


class SentTrees:
    """See Trees: from an artifact of changes; of a baseline there is none. Of no other pair of git trees is anything known."""

    def __init__(self, artifact: Artifact | None) -> None:
        self._meta = artifact.meta if artifact else {}
        self._place = artifact.path if artifact else Path()

    def changes(self, _: Tree, before: str, after: str) -> Sequence[Change]:
        """See Trees. Raises InfrastructureError."""
        if (self._meta.get("before"), self._meta.get("after")) != (before, after):
            raise InfrastructureError(f"other changes were sent than those from {before[:12]} to {after[:12]}")
        rows = json.loads((self._place / LISTED).read_text())
        found = [Change(str(name), str(mode), str(blob)) for name, mode, blob in rows]
        for change in found:
            if PurePosixPath(change.name).is_absolute() or ".." in PurePosixPath(change.name).parts:
                raise InfrastructureError(f"a change outside of the kernel source: {change.name}")
        return found

    def reader(self, _: Tree) -> Reader:
        """See Trees."""
        return lambda blob: (self._place / blob).read_bytes()

    def kconfigs(self, _: Tree, __: str) -> Kconfigs | None:
        """See Trees: who asked for the build has the git tree, and looks."""
        return None
