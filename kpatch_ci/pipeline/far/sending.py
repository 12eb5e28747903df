# SPDX-License-Identifier: GPL-2.0-or-later
"""Sends artifacts over a link: only the bytes that are missing there, verified before they count."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.pipeline.calls import Ref
from kpatch_ci.pipeline.far.frames import squeezed
from kpatch_ci.pipeline.far.link import Link
from kpatch_ci.pipeline.places import PlaceLost
from kpatch_ci.store.artifacts import ArtifactStore
from kpatch_ci.store.keyed import Locks
from kpatch_ci.store.parcels import Parcel, parcel_of

CHUNK = 128 * 1024
"""Bytes in a frame: what a slow line carries in a second or two, so that signs of life get through."""
ASK_TIMEOUT = 120.0
"""Seconds in which an announcement or the making of an entry is answered."""
Progress = Callable[[int, int], None]
"""Told how many bytes of how many are there."""


class Sender:
    """Safe for concurrent threads; two that want the same artifact sent send it once."""

    def __init__(self, link: Link, store: ArtifactStore) -> None:
        self._link, self._store = link, store
        self._locks = Locks()

    def send(self, ref: Ref, progress: Progress = lambda _, __: None) -> None:
        """See to it that the artifact is there. Raises PlaceLost, InfrastructureError."""
        with self._locks.of(ref):
            parcel = parcel_of(self._store, *ref)
            what = {"kind": parcel.kind, "key": parcel.key, "manifest": parcel.manifest, "modes": parcel.modes}
            for attempt in (1, 2):
                needed = self._link.ask({"op": "offer", **what}, timeout=ASK_TIMEOUT)[0]["needed"]
                self._blobs(parcel, needed, progress)
                try:
                    if needed or attempt == 2:
                        self._link.ask({"op": "commit", **what}, timeout=ASK_TIMEOUT)
                    return
                except InfrastructureError:
                    if attempt == 2:
                        raise

    def _blobs(self, parcel: Parcel, needed: dict[str, int], progress: Progress) -> None:
        folder = self._store.place(parcel.kind, parcel.key)
        names = {one["sha256"]: name for name, one in parcel.manifest["files"].items()}
        whole = sum(parcel.blobs.values())
        there = whole - sum(parcel.blobs[sha] - offset for sha, offset in needed.items())
        for sha, offset in needed.items():
            there = self._blob(folder / names[sha], sha, offset, lambda n: progress(n, whole), there)

    def _blob(self, path: Path, sha: str, offset: int, progress: Callable[[int], None], there: int) -> int:
        squeeze, given_up = True, self._link.given_up
        with path.open("rb") as stream:
            stream.seek(offset)
            data = stream.read(CHUNK)
            while True:
                squeeze, payload = squeezed(data) if squeeze else (False, data)
                header = {"op": "blob", "sha": sha, "offset": offset, "zlib": squeeze}
                if self._link.given_up != given_up:
                    raise PlaceLost("stopped")
                self._link.tell(header, payload)
                offset += len(data)
                there += len(data)
                progress(there)
                data = stream.read(CHUNK)
                if not data:
                    return there
