# SPDX-License-Identifier: GPL-2.0-or-later
"""Fetches artifacts over a link: only the bytes that are missing here, verified before they count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.pipeline.calls import Ref
from kpatch_ci.pipeline.far.frames import unsqueezed
from kpatch_ci.store.artifacts import Artifact, ArtifactStore
from kpatch_ci.store.keyed import Locks
from kpatch_ci.store.parcels import Damaged, Incoming, Parcel, checked

Ask = Callable[[dict[str, Any]], tuple[dict[str, Any], bytes]]
"""A question and its answer; raises PlaceLost where there is none."""


class Fetcher:
    """Safe for concurrent threads; two that want the same artifact fetch it once."""

    def __init__(self, ask: Ask, store: ArtifactStore) -> None:
        self._ask, self._store = ask, store
        self._locks = Locks()

    def fetch(self, ref: Ref) -> Artifact:
        """Bring it here. Raises PlaceLost, Damaged (each time), InfrastructureError (this machine cannot keep it)."""
        with self._locks.of(ref):
            found = self._store.get(*ref)
            if found is not None:
                return found
            said, _ = self._ask({"op": "parcel", "kind": ref[0], "key": ref[1]})
            try:
                parcel = checked(*ref, said.get("manifest"), said.get("modes"))
            except InfrastructureError as error:
                raise Damaged(error.what) from error
            try:
                return self._brought(parcel)
            except Damaged:
                return self._brought(parcel)

    def _brought(self, parcel: Parcel) -> Artifact:
        incoming = Incoming(self._store)
        try:
            for sha, offset in incoming.needed(parcel).items():
                self._blob(incoming, sha, offset, parcel.blobs[sha])
            return incoming.admit(parcel)
        finally:
            incoming.close()

    def _blob(self, incoming: Incoming, sha: str, offset: int, size: int) -> None:
        while offset < size:
            said, data = self._ask({"op": "read", "sha": sha, "offset": offset})
            try:
                data = unsqueezed(said, data)
            except InfrastructureError as error:
                raise Damaged(f"blob {sha[:12]}: {error.what}") from error
            if not data:
                raise Damaged(f"blob {sha[:12]} ended after {offset} of {size} bytes")
            incoming.append(sha, offset, data)
            offset += len(data)
