# SPDX-License-Identifier: GPL-2.0-or-later
"""A depot in a directory: whole or absent, verified on arrival, and clear words where it cannot be used."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from kpatch_ci.model.digest import digest
from kpatch_ci.model.errors import InfrastructureError, UserError
from kpatch_ci.store.artifacts import ArtifactStore
from kpatch_ci.store.depot import Depot
from tests.contracts.depot import COMMON, KEY, artifact, holds


@pytest.fixture
def depot(tmp_path: Path) -> Depot:
    return Depot(f"file://{tmp_path}/depot")


def blob_of(tmp_path: Path, text: str) -> Path:
    return next(p for p in (tmp_path / "depot" / "blobs").rglob("*") if p.is_file() and p.read_text() == text)


def test_a_directory_keeps_every_promise(depot: Depot, tmp_path: Path) -> None:
    holds(depot, tmp_path)
    assert not list((tmp_path / "depot").rglob("*.new")), "nothing half-written is left"
    assert not list((tmp_path / "depot").glob("probe-*"))


def test_the_manifest_is_written_last_so_that_half_an_entry_is_none(depot: Depot, tmp_path: Path) -> None:
    one = artifact(ArtifactStore(tmp_path / "here"), KEY, "one")
    depot.push(one)
    (tmp_path / "depot" / "build" / KEY[:2] / f"{KEY}.json").unlink()  # as if it was killed just before
    assert depot.pull("build", KEY, ArtifactStore(tmp_path / "there")) is None
    assert 0 < depot.push(one) < len(COMMON), "the same command goes on: the files were there"
    assert depot.pull("build", KEY, ArtifactStore(tmp_path / "there"))


@pytest.mark.parametrize("damage", ["other bytes", "cut", "gone"])
def test_a_file_that_is_damaged_there_is_never_taken_and_is_sent_again(
    depot: Depot, tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    there = ArtifactStore(tmp_path / "there")
    one = artifact(ArtifactStore(tmp_path / "here"), KEY, "one")
    depot.push(one)
    blob = blob_of(tmp_path, "one")
    blob.unlink() if damage == "gone" else blob.write_text("eno" if damage == "other bytes" else "on")
    assert depot.pull("build", KEY, there) is None
    assert f"build/{KEY[:12]} is damaged (image)" in caplog.text
    assert there.get("build", KEY) is None
    assert list((tmp_path / "there").rglob(".new-*")) == []
    depot.push(one, again=True)
    assert depot.pull("build", KEY, there)
    assert there.get("build", KEY)


@pytest.mark.parametrize("text", ["{", "[]", '{"files": {}, "meta": {}, "sum": "0"}'])
def test_a_manifest_that_is_damaged_is_a_miss(depot: Depot, tmp_path: Path, text: str) -> None:
    depot.push(artifact(ArtifactStore(tmp_path / "here"), KEY, "one"))
    (tmp_path / "depot" / "build" / KEY[:2] / f"{KEY}.json").write_text(text)
    assert depot.pull("build", KEY, ArtifactStore(tmp_path / "there")) is None


@pytest.mark.parametrize("name", ["../../../evil", "/evil"])
def test_a_manifest_cannot_write_outside_its_artifact(depot: Depot, tmp_path: Path, name: str) -> None:
    one = artifact(ArtifactStore(tmp_path / "here"), KEY, "one")
    depot.push(one)
    files = {name: {"sha256": one.digests["image"], "size": 3}}
    evil = {"meta": {}, "files": files, "sum": digest([{}, files])}
    (tmp_path / "depot" / "build" / KEY[:2] / f"{KEY}.json").write_text(json.dumps(evil))
    assert depot.pull("build", KEY, ArtifactStore(tmp_path / "there")) is None
    assert not list(tmp_path.rglob("evil"))


def test_threads_that_want_the_same_fetch_it_once(depot: Depot, tmp_path: Path) -> None:
    depot.push(artifact(ArtifactStore(tmp_path / "here"), KEY, "one"))
    there, came = ArtifactStore(tmp_path / "there"), []
    threads = [threading.Thread(target=lambda: came.append(depot.pull("build", KEY, there))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(n > 0 for n in came if n is not None) == [False] * 7 + [True]


@pytest.mark.parametrize("url", ["", "/srv/depot", "ftp://host/x", "file://", "s3:///", "memory://x"])
def test_what_is_no_store_is_refused_with_what_would_be_one(url: str) -> None:
    with pytest.raises(UserError, match=r"no store at .*\(file:///DIRECTORY, sftp://USER@HOST/DIRECTORY or s3://"):
        Depot(url)


def test_no_password_is_written_down_and_none_is_shown() -> None:
    with pytest.raises(UserError, match=r"sftp://ci:\*\*\*@host/x: a password is not written down"):
        Depot("sftp://ci:hunter2@host/x")
    with pytest.raises(UserError, match="store s3://b/x: secret is not written down here"):
        Depot("s3://b/x", {"secret": "hunter2"})


def test_a_store_that_cannot_be_written_or_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InfrastructureError, match=rf"store file://{tmp_path}/file/x: cannot write: .*Not a directory"):
        Depot(f"file://{tmp_path}/file/x").write_probe()


def test_a_store_that_another_machine_does_not_see_is_named(depot: Depot, tmp_path: Path) -> None:
    probe = depot.write_probe()
    with pytest.raises(InfrastructureError, match="what was written to it a moment ago is not there: is it shared"):
        Depot(f"file://{tmp_path}/other").read_probe(probe)
