# SPDX-License-Identifier: GPL-2.0-or-later
"""Snapshots as artifacts: the machine's state, the boot's console, and (in the manifest) what the guest said of itself.

The state is a sparse file: as large as the guest's memory, with a twentieth of it on disk. Hashing all of it would take as
long as half a boot, so it joins its artifact after the store has hashed the rest, under a digest that skips the zeros.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from kpatch_ci.guest import qemu
from kpatch_ci.model.boot import BootResult
from kpatch_ci.model.digest import digest, file_digest
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.model.status import Status
from kpatch_ci.process import check_stopping, run
from kpatch_ci.store.artifacts import Artifact, ArtifactStore
from kpatch_ci.store.cache import locked

log = logging.getLogger(__name__)

KIND = "snapshot"
COPY_TIMEOUT = 300.0
BLOCK = 64 * 1024
MIB = 1024 * 1024
_ZEROS = bytes(BLOCK)


def memory_digest(snapshot: Path, memory_mib: int) -> str:
    """Digest (hex) of the guest's memory alone, which QEMU writes first, from the first MiB on (mapped-ram).

    The devices' state, behind it, holds offsets of the host's clock that a guest never sees: no two boots agree in it.
    """
    return sparse_digest(snapshot, (1 + memory_mib) * MIB)


def sparse_digest(path: Path, limit: int | None = None) -> str:
    """Digest (hex) of a file's size and of its blocks that are not all zero, each with its offset; with ``limit`` only of the blocks
    that start before it.

    It depends on the bytes alone, not on which of them the file system keeps as holes; holes are not read.
    """
    state = hashlib.sha256()
    with path.open("rb") as stream:
        for offset in _data_blocks(stream.fileno()):
            if limit is not None and offset >= limit:
                break
            stream.seek(offset)
            data = stream.read(BLOCK)
            if data != _ZEROS[: len(data)]:
                state.update(offset.to_bytes(8, "little"))
                state.update(data)
        if limit is None:
            state.update(stream.seek(0, os.SEEK_END).to_bytes(8, "little"))
    return state.hexdigest()


def _data_blocks(descriptor: int) -> Iterator[int]:
    """Offsets of the blocks that hold data, in order."""
    following = 0
    while True:
        try:
            start = os.lseek(descriptor, following, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return
            raise
        end = os.lseek(descriptor, start, os.SEEK_HOLE)
        following = max(following, start - start % BLOCK)
        while following < end:
            yield following
            following += BLOCK


def boot_meta(boot: BootResult) -> dict[str, Any]:
    """What ``boot_result`` reads of a boot beside its digests."""
    return {
        "arch": boot.arch,
        "machine": boot.machine,
        "boot_seed": boot.boot_seed,
        "seconds": boot.seconds,
        "qemu_argv": boot.qemu_argv,
        "reproduce": boot.reproduce,
        "facts": dict(boot.facts),
    }


def keep(store: ArtifactStore, boot: BootResult, work: Path) -> Artifact:
    """Move a boot's files from ``work`` into the store. When another process kept the same boot meanwhile, that one stays."""
    state = work / qemu.SNAPSHOT_FILE
    state.chmod(0o644)
    meta = {
        **boot_meta(boot),
        "snapshot": {"digest": sparse_digest(state), "size": state.stat().st_size},
        "said": digest([file_digest(work / name) for name in (qemu.CONSOLE_FILE, qemu.RESULT_FILE)]),
    }
    key = boot.key

    def fill(place: Path) -> Mapping[str, Any]:
        _move(work / qemu.CONSOLE_FILE, place / qemu.CONSOLE_FILE)
        return meta

    with _joining(store, key):
        found = store.get(KIND, key, verify=False)
        if found and not _damage(found, verify=False):
            return found
        store.drop(KIND, key)
        artifact = store.put(KIND, key, fill)
        _move(state, artifact.path / qemu.SNAPSHOT_FILE)
    return artifact


def find(store: ArtifactStore, key: str, *, verify: bool = False) -> Artifact | None:
    """The artifact with its snapshot, or None. ``verify`` hashes; a damaged one is dropped and said aloud."""
    artifact = store.get(KIND, key, verify=verify)
    if artifact is None or not _damage(artifact, verify=verify):
        return artifact
    with _joining(store, key):  # it may have been about to join
        artifact = store.get(KIND, key, verify=False)
        damage = _damage(artifact, verify=verify) if artifact else None
        if artifact and damage:
            log.warning("cache entry %s/%s is damaged (%s): dropped, it will be made again", KIND, key[:12], damage)
            store.drop(KIND, key)
            return None
    return artifact


def _joining(store: ArtifactStore, key: str) -> AbstractContextManager[None]:
    """Held while a snapshot joins its artifact."""
    place = store.place(KIND, key)
    return locked(place.with_name(place.name + ".join"), check_stopping)


def _damage(artifact: Artifact, *, verify: bool) -> str | None:
    state, wanted = artifact.path / qemu.SNAPSHOT_FILE, artifact.meta["snapshot"]
    if not state.is_file():
        return "its snapshot is missing"
    if state.stat().st_size != wanted["size"]:
        return f"its snapshot has {state.stat().st_size} bytes, not {wanted['size']}"
    if verify and sparse_digest(state) != wanted["digest"]:
        return "its snapshot has another checksum"
    return None


def _rename(source: Path, target: Path) -> None:
    source.replace(target)


def _move(source: Path, target: Path) -> None:
    try:
        _rename(source, target)
    except OSError:  # another file system
        done = run(["cp", "--sparse=always", source, target], timeout=COPY_TIMEOUT)
        if not done.ok:
            raise InfrastructureError(f"cannot keep {source.name}: {done.explain()}", log=done.output) from None


def boot_result(artifact: Artifact, arm: str, *, cached: bool) -> BootResult:
    """The boot that an artifact is the fruit of."""
    meta = artifact.meta
    return BootResult(
        status=Status.PASSED,
        arm=arm,
        arch=meta["arch"],
        machine=meta["machine"],
        boot_seed=meta["boot_seed"],
        key=artifact.key,
        seconds=meta["seconds"],
        cached=cached,
        facts=meta["facts"],
        snapshot=artifact.path / qemu.SNAPSHOT_FILE,
        snapshot_digest=meta["snapshot"]["digest"],
        said_digest=meta["said"],
        console=artifact.path / qemu.CONSOLE_FILE,
        qemu_argv=tuple(meta["qemu_argv"]),
        reproduce=meta["reproduce"],
    )
