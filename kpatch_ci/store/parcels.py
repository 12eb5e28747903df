# SPDX-License-Identifier: GPL-2.0-or-later
"""Artifacts that come from another machine: which bytes are missing here, and an entry made of them once all are verified.

A file's bytes are a *blob*, named by their sha256. One that came in part goes on where it stopped; one that another artifact
of the kind has already is not asked for.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from kpatch_ci.model.digest import digest, file_digest
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.store.artifacts import MANIFEST, Artifact, ArtifactStore
from kpatch_ci.store.atomic import disk_errors

FORGET_AFTER = 7 * 86400.0
"""Seconds after which a blob that came in part is given up."""
_SHA = re.compile(r"[0-9a-f]{64}")
_WORD = re.compile(r"[a-z][a-z-]*")


class Damaged(InfrastructureError):
    """A blob is not what its name says. It is gone; it may be sent again."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """An artifact as it is announced: its manifest (of the store) and the modes of its files."""

    kind: str
    key: str
    manifest: Mapping[str, Any]
    modes: Mapping[str, int]

    @property
    def blobs(self) -> dict[str, int]:
        """sha256 -> size."""
        return {one["sha256"]: int(one["size"]) for one in self.manifest["files"].values()}


def parcel_of(store: ArtifactStore, kind: str, key: str) -> Parcel:
    """An artifact of ours. Raises InfrastructureError where there is none."""
    found = store.get(kind, key, verify=False)
    if found is None:
        raise InfrastructureError(
            f"artifact {kind}/{key[:12]} is not in {store.root}", hint="run the same command again"
        )
    manifest = json.loads((found.path / MANIFEST).read_text())
    return Parcel(kind, key, manifest, {name: (found.path / name).stat().st_mode & 0o777 for name in found.digests})


def checked(kind: str, key: str, manifest: Any, modes: Any) -> Parcel:
    """What came over a connection, as a parcel. Raises InfrastructureError where it is none, or names a file outside itself."""
    try:
        files = manifest["files"]
        good = (
            bool(_WORD.fullmatch(kind) and _SHA.fullmatch(key))
            and manifest["sum"] == digest([manifest["meta"], files])
            and all(
                _is_below(name) and _SHA.fullmatch(f["sha256"]) and int(f["size"]) >= 0 for name, f in files.items()
            )
            and set(modes) == set(files)
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        good = False
    if not good:
        raise InfrastructureError(f"artifact {kind}/{key[:12]}: its manifest is damaged or none of ours")
    return Parcel(kind, key, manifest, {name: int(mode) & 0o777 for name, mode in modes.items()})


def _is_below(name: str) -> bool:
    parts = PurePosixPath(name).parts
    return bool(parts) and not name.startswith("/") and ".." not in parts and "\0" not in name and name != MANIFEST


class Incoming:
    """Blobs on their way into one store. For one thread; others, and other processes, may receive beside it."""

    def __init__(self, store: ArtifactStore) -> None:
        self.store = store
        self.place = store.root / ".incoming"
        self._streams: dict[str, IO[bytes]] = {}
        self._known: dict[str, dict[str, Path]] = {}
        with contextlib.suppress(FileNotFoundError):
            for old in self.place.iterdir():
                if time.time() - old.stat().st_mtime > FORGET_AFTER:
                    old.unlink(missing_ok=True)

    def needed(self, parcel: Parcel) -> dict[str, int]:
        """sha256 -> offset from which each missing blob is wanted; empty where nothing is."""
        if self.store.get(parcel.kind, parcel.key, verify=False):
            return {}
        there = self._blobs_of(parcel.kind)
        wanted = {}
        for sha, size in parcel.blobs.items():
            if sha in there and there[sha].is_file():
                continue
            have = self._open(sha).seek(0, os.SEEK_END)
            if have > size:
                have = self._open(sha).truncate(0)
            if have < size or size == 0:
                wanted[sha] = have
        return wanted

    def append(self, sha: str, offset: int, data: bytes) -> None:
        """Bytes of a blob. Raises InfrastructureError where they are not the next ones, or there is no room."""
        stream = self._open(sha)
        at = stream.seek(0, os.SEEK_END)
        if at != offset:
            raise InfrastructureError(f"blob {sha[:12]}: bytes for {offset} came at {at}")
        with disk_errors(self.place):
            stream.write(data)

    def admit(self, parcel: Parcel) -> Artifact:
        """Make the entry. Raises Damaged where a blob is not what it should be."""
        there = self._blobs_of(parcel.kind)
        paths: dict[str, Path] = {}
        for name, one in parcel.manifest["files"].items():
            sha = one["sha256"]
            stream = self._streams.get(sha)
            if stream is not None:
                stream.flush()
            paths[name] = (
                Path(stream.name) if stream is not None and sha not in there else there.get(sha, self.place / sha)
            )
        damaged = [name for name, path in paths.items() if not self._whole(path, parcel.manifest["files"][name])]
        for name in damaged:
            self._discard(parcel.manifest["files"][name]["sha256"], there)
        if damaged:
            raise Damaged(f"artifact {parcel.kind}/{parcel.key[:12]}: {damaged[0]} has another checksum than it should")
        artifact = _put(self.store, parcel, paths)
        for sha in parcel.blobs:
            self._discard(sha, {})
        for name, sha in artifact.digests.items():
            there[sha] = artifact.path / name
        return artifact

    def close(self) -> None:
        """Let go of what came in part, so that another process may go on with it."""
        for stream in self._streams.values():
            stream.close()
        self._streams.clear()

    def _whole(self, path: Path, wanted: Mapping[str, Any]) -> bool:
        return path.is_file() and path.stat().st_size == wanted["size"] and file_digest(path) == wanted["sha256"]

    def _open(self, sha: str) -> IO[bytes]:
        """The blob's file, locked: where another process or thread receives it too, one of our own."""
        if not _SHA.fullmatch(sha):
            raise InfrastructureError("a blob without a name")
        if sha not in self._streams:
            with disk_errors(self.place):
                self.place.mkdir(parents=True, exist_ok=True)
                stream = (self.place / sha).open("ab", buffering=0)
                try:
                    fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    stream.close()
                    stream = (self.place / f"{sha}.{threading.get_native_id()}").open("wb", buffering=0)
            self._streams[sha] = stream
        return self._streams[sha]

    def _discard(self, sha: str, there: dict[str, Path]) -> None:
        there.pop(sha, None)
        stream = self._streams.pop(sha, None)
        if stream is not None:
            Path(stream.name).unlink(missing_ok=True)
            stream.close()

    def _blobs_of(self, kind: str) -> dict[str, Path]:
        """Blobs of the artifacts of a kind that are here; read once."""
        if kind not in self._known:
            found: dict[str, Path] = {}
            for path in (self.store.root / kind).glob(f"*/*/{MANIFEST}"):
                with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                    files = json.loads(path.read_text())["files"]
                    found |= {one["sha256"]: path.parent / name for name, one in files.items()}
            self._known[kind] = found
        return self._known[kind]


def _put(store: ArtifactStore, parcel: Parcel, paths: Mapping[str, Path]) -> Artifact:
    def fill(work: Path) -> Mapping[str, Any]:
        for name, path in paths.items():
            target = work / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
            target.chmod(parcel.modes[name])
        meta: Mapping[str, Any] = parcel.manifest["meta"]
        return meta

    store.get(parcel.kind, parcel.key, verify=False)  # one that is damaged is dropped, and may be written anew
    made = store.put(parcel.kind, parcel.key, fill)
    if dict(made.digests) != {name: one["sha256"] for name, one in parcel.manifest["files"].items()}:
        store.drop(parcel.kind, parcel.key)
        raise Damaged(f"artifact {parcel.kind}/{parcel.key[:12]} is not what was announced")
    return made
