# SPDX-License-Identifier: GPL-2.0-or-later
"""Artifacts: whole or absent, whatever happens to them."""

from __future__ import annotations

import errno
import json
import logging
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.store import artifacts
from kpatch_ci.store.artifacts import ArtifactStore

KEY = "ab" + "0" * 62


def fill(work: Path) -> Mapping[str, Any]:
    (work / "image").write_text("kernel")
    (work / "modules").mkdir()
    (work / "modules" / "null_blk.ko").write_text("module")
    return {"seconds": 1.5}


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(tmp_path / "cache")


def left(store: ArtifactStore) -> list[str]:
    return sorted(str(p.relative_to(store.root)) for p in store.root.rglob("*") if p.is_file() and p.suffix != ".lock")


def test_what_was_put_is_what_is_got(store: ArtifactStore) -> None:
    assert store.get("build", KEY) is None
    made = store.put("build", KEY, fill)
    found = store.get("build", KEY)
    assert found == made
    assert found is not None
    assert found.meta == {"seconds": 1.5}
    assert sorted(found.digests) == ["image", "modules/null_blk.ko"]
    assert (found.path / "image").read_text() == "kernel"


def test_a_maker_that_fails_leaves_nothing(store: ArtifactStore) -> None:
    def fails(work: Path) -> Mapping[str, Any]:
        (work / "image").write_text("half")
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        store.put("build", KEY, fails)
    assert store.get("build", KEY) is None
    assert left(store) == []


def test_a_killed_maker_leaves_no_entry(store: ArtifactStore) -> None:
    """What SIGKILL leaves: a directory beside the place, or one in its place without a manifest."""
    place = store.place("build", KEY)
    place.mkdir(parents=True)
    (place / "image").write_text("half")
    assert store.get("build", KEY) is None
    store.put("build", KEY, fill)
    assert (place / "image").read_text() == "kernel"


def damage_content(place: Path) -> None:
    (place / "image").write_text("kernal")


def damage_size(place: Path) -> None:
    (place / "image").write_text("kern")


def damage_missing(place: Path) -> None:
    (place / "modules" / "null_blk.ko").unlink()


def damage_manifest(place: Path) -> None:
    (place / "manifest.json").write_text("{")


def damage_meta(place: Path) -> None:
    manifest = json.loads((place / "manifest.json").read_text())
    manifest["meta"]["seconds"] = 0.1
    (place / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (damage_content, "image has another checksum"),
        (damage_size, "image has 4 bytes, not 6"),
        (damage_missing, "null_blk.ko is missing"),
        (damage_manifest, "manifest.json"),
        (damage_meta, "its own checksum does not match"),
    ],
)
def test_a_damaged_entry_is_dropped_with_a_warning(
    store: ArtifactStore, caplog: pytest.LogCaptureFixture, damage: Any, words: str
) -> None:
    place = store.put("build", KEY, fill).path
    damage(place)
    with caplog.at_level(logging.WARNING, logger="kpatch_ci"):
        assert store.get("build", KEY) is None
    assert words in caplog.text
    assert "it will be made again" in caplog.text
    assert not place.exists()
    store.put("build", KEY, fill)
    assert store.get("build", KEY) is not None


def test_without_verification_only_presence_and_size_are_looked_at(store: ArtifactStore) -> None:
    place = store.put("build", KEY, fill).path
    damage_content(place)
    assert store.get("build", KEY, verify=False) is not None


def test_of_two_makers_at_once_the_first_stays(store: ArtifactStore) -> None:
    both_working = threading.Barrier(2, timeout=10)
    made: list[artifacts.Artifact] = []

    def maker(name: str) -> None:
        def fill_slowly(work: Path) -> Mapping[str, Any]:
            (work / "image").write_text(name)
            both_working.wait()
            return {"by": name}

        made.append(store.put("build", KEY, fill_slowly))

    threads = [threading.Thread(target=maker, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(made) == 2
    assert made[0] == made[1]
    assert (made[0].path / "image").read_text() == made[0].meta["by"]
    assert left(store) == [f"build/ab/{KEY}/image", f"build/ab/{KEY}/manifest.json"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_the_machines_fault(store: ArtifactStore, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InfrastructureError, match=r"no space left[\s\S]*KPATCH_CI_CACHE"):
        store.put("build", KEY, fill)
    monkeypatch.undo()
    assert store.get("build", KEY) is None
    assert left(store) == []


def test_a_dropped_entry_is_gone(store: ArtifactStore) -> None:
    store.put("build", KEY, fill)
    store.drop("build", KEY)
    store.drop("build", KEY)
    assert store.get("build", KEY) is None
