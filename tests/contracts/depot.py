# SPDX-License-Identifier: GPL-2.0-or-later
"""What a depot is to do, whatever lies behind its URL: run on a directory, on a real SFTP server and on an S3 one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kpatch_ci.store.artifacts import Artifact, ArtifactStore
from kpatch_ci.store.depot import Depot

KEY, OTHER = "a1" * 32, "b2" * 32
COMMON = "c" * 50_000


def artifact(store: ArtifactStore, key: str, own: str) -> Artifact:
    """With a file of its own and one that all have, in a folder."""

    def fill(place: Path) -> Mapping[str, Any]:
        (place / "image").write_text(own)
        (place / "modules").mkdir()
        (place / "modules" / "null_blk.ko").write_text(COMMON)
        return {"modules": ["null_blk.ko"]}

    return store.put("build", key, fill)


def holds(depot: Depot, place: Path) -> None:
    """Every promise of Depot. ``place``: for the stores of two machines."""
    here, there = ArtifactStore(place / "here"), ArtifactStore(place / "there")
    first, second = artifact(here, KEY, "one"), artifact(here, OTHER, "two")
    fresh = Depot(**depot.told())  # as another machine makes it

    probe = depot.write_probe()
    fresh.read_probe(probe)
    depot.remove_probe(probe)

    assert fresh.pull("build", KEY, there) is None, "it is not there yet"
    assert not depot.has("build", KEY)
    whole = depot.push(first)
    assert whole > len(COMMON)
    assert depot.has("build", KEY)
    assert depot.push(first) == 0, "a second time nothing is sent"
    assert depot.push(second) < whole - len(COMMON) + 100, "a file that is there is not sent again"

    assert fresh.pull("build", KEY, there) == whole
    found = there.get("build", KEY)
    assert found is not None
    assert (found.meta, found.digests) == (first.meta, first.digests)
    assert (found.path / "modules" / "null_blk.ko").read_text() == COMMON
    assert fresh.pull("build", KEY, there) == 0, "what is here is not fetched again"
