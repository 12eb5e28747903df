# SPDX-License-Identifier: GPL-2.0-or-later
"""A tool root as one file, for a machine that has none: packed here, unpacked and verified there.

Versions of packages say what a tool root should be; the digest of its contents says that it is that.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kpatch_ci.debian.toolroot import ToolRoot, find_toolroot, toolroot_place
from kpatch_ci.model.digest import digest, file_digest
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.process import run
from kpatch_ci.store.artifacts import Artifact, ArtifactStore
from kpatch_ci.store.atomic import disk_errors
from kpatch_ci.store.cache import locked

KIND = "toolroot"
PACKED = "root.tar.gz"
PACK_TIMEOUT = 900.0


def contents_digest(root: Path) -> str:
    """Digest (hex) of every file, link and directory below ``root``: name, permissions, bytes or target. Owners and times do not count."""
    return digest(list(_entries(root)))


def _entries(root: Path) -> Iterator[list[Any]]:
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_symlink():
            yield [name, "link", str(path.readlink())]
        elif path.is_dir():
            yield [name, "directory", path.stat().st_mode & 0o777]
        else:
            yield [name, "file", path.stat().st_mode & 0o777, file_digest(path)]


def pack(tools: ToolRoot, store: ArtifactStore) -> Artifact:
    """The tool root as an artifact, whose key is the digest of its contents. Raises InfrastructureError."""
    root = tools.path.resolve()
    key = contents_digest(root)

    def fill(place: Path) -> Mapping[str, Any]:
        argv: list[str | Path] = [
            "tar",
            "--use-compress-program=gzip -1",
            "--sort=name",
            "-C",
            root,
            "-cf",
            place / PACKED,
            ".",
        ]
        done = run(argv, timeout=PACK_TIMEOUT)
        if not done.ok:
            raise InfrastructureError(f"cannot pack the tool root: {done.explain()}", log=done.output)
        return {"suite": tools.suite, "fingerprint": tools.fingerprint}

    return store.get(KIND, key, verify=False) or store.put(KIND, key, fill)


def unpack(cache: Path, store: ArtifactStore, key: str) -> ToolRoot:
    """Make the tool root of a packed one, whole or not at all, in place of what is there. Raises InfrastructureError."""
    packed = store.get(KIND, key, verify=True)
    if packed is None:
        raise InfrastructureError("the packed tool root is not here, or was damaged")
    suite = str(packed.meta["suite"])
    place = toolroot_place(cache, suite)
    with locked(place), disk_errors(place.parent):
        work = Path(tempfile.mkdtemp(prefix=".new-", dir=place.parent))
        try:
            work.chmod(0o755)
            done = run(["tar", "-C", work, "-xpzf", packed.path / PACKED, "--no-same-owner"], timeout=PACK_TIMEOUT)
            if not done.ok:
                raise InfrastructureError(f"cannot unpack the tool root: {done.explain()}", log=done.output)
            if contents_digest(work) != key:
                raise InfrastructureError("the tool root that was unpacked is not the one that was packed")
            if place.is_symlink():
                place.unlink()
            shutil.rmtree(place, ignore_errors=True)
            work.replace(place)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    made = find_toolroot(cache, suite)
    if made is None or made.fingerprint != packed.meta["fingerprint"]:
        raise InfrastructureError(f"{place} is not the tool root that was sent")
    store.drop(KIND, key)
    return made
