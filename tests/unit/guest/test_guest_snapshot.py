# SPDX-License-Identifier: GPL-2.0-or-later
"""Snapshots in the store: sparse, whole or absent."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpatch_ci.guest import snapshot
from kpatch_ci.guest.snapshot import BLOCK, MIB, boot_result, find, keep, memory_digest, sparse_digest
from kpatch_ci.model.boot import BootResult
from kpatch_ci.model.status import Status
from kpatch_ci.store.artifacts import ArtifactStore

BOOT = BootResult(
    status=Status.FAILED,
    arm="baseline",
    arch="arm64",
    machine="m",
    boot_seed=1,
    key="ab" * 32,
    seconds=1.5,
    cached=False,
    facts={"cpus": 8},
    qemu_argv=("qemu",),
    reproduce="by hand",
)
DATA = b"x" * 100 + bytes(5 * BLOCK) + b"y" + bytes(3 * BLOCK)


def sparse(path: Path, data: bytes) -> Path:
    """Write ``data`` with holes for its zeros."""
    with path.open("wb") as stream:
        for at in range(0, len(data), 4096):
            if data[at : at + 4096].strip(b"\0"):
                stream.seek(at)
                stream.write(data[at : at + 4096])
        stream.truncate(len(data))
    return path


def worked(folder: Path) -> Path:
    folder.mkdir()
    sparse(folder / "snapshot", DATA)
    (folder / "console.log").write_text("ready\n")
    (folder / "result.jsonl").write_text('{"event": "ready", "uptime_ns": 7}\n')
    return folder


def test_holes_and_zeros_have_the_same_digest(tmp_path: Path) -> None:
    dense = tmp_path / "dense"
    dense.write_bytes(DATA)
    assert sparse_digest(dense) == sparse_digest(sparse(tmp_path / "sparse", DATA))


@pytest.mark.parametrize("other", [DATA + b"\0", DATA[:-1], DATA.replace(b"y", b"z"), b"\0" + DATA[:-1]])
def test_other_bytes_have_another_digest(tmp_path: Path, other: bytes) -> None:
    assert sparse_digest(sparse(tmp_path / "a", DATA)) != sparse_digest(sparse(tmp_path / "b", other))


def test_what_was_kept_is_found_and_still_sparse(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path / "store")
    kept = keep(store, BOOT, worked(tmp_path / "work"))
    found = find(store, BOOT.key, verify=True)
    assert found == kept
    result = boot_result(kept, "patched", cached=True)
    assert (result.status, result.arm, result.facts, result.seconds) == (Status.PASSED, "patched", {"cpus": 8}, 1.5)
    assert len(result.said_digest) == 64, "what it said is part of every replicate's key"
    assert result.snapshot is not None
    assert result.snapshot.read_bytes() == DATA
    assert result.snapshot.stat().st_blocks * 512 < len(DATA) / 2


def test_the_first_of_two_keeps_its_place(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path / "store")
    first = keep(store, BOOT, worked(tmp_path / "one"))
    second = worked(tmp_path / "two")
    sparse(second / "snapshot", DATA + b"other")
    assert keep(store, BOOT, second) == first
    assert find(store, BOOT.key, verify=True) == first


@pytest.mark.parametrize("damage", ["missing", "short", "changed"])
def test_a_damaged_snapshot_is_a_miss_and_can_be_kept_again(tmp_path: Path, damage: str) -> None:
    store = ArtifactStore(tmp_path / "store")
    path = keep(store, BOOT, worked(tmp_path / "one")).path / "snapshot"
    if damage == "missing":
        path.unlink()
    elif damage == "short":
        path.write_bytes(b"short")
    else:
        sparse(path, DATA.replace(b"y", b"z"))
        assert find(store, BOOT.key) is not None, "only hashing can tell"
    assert find(store, BOOT.key, verify=True) is None
    assert find(store, BOOT.key) is None
    keep(store, BOOT, worked(tmp_path / "two"))
    assert find(store, BOOT.key, verify=True) is not None


def test_another_file_system_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def across(self: Path, target: Path) -> None:
        raise OSError(18, "Invalid cross-device link")

    store = ArtifactStore(tmp_path / "store")
    work = worked(tmp_path / "work")
    monkeypatch.setattr(snapshot, "_rename", across)
    kept = keep(store, BOOT, work)
    monkeypatch.undo()
    assert (kept.path / "snapshot").read_bytes() == DATA


def test_the_memorys_digest_leaves_out_what_is_behind_it(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for path, devices in ((one, b"clock 1"), (two, b"clock 2, longer")):
        with path.open("wb") as stream:
            stream.seek(2 * MIB)
            stream.write(b"page")
            stream.seek(3 * MIB)
            stream.write(devices)
    assert memory_digest(one, 2) == memory_digest(two, 2)
    assert sparse_digest(one) != sparse_digest(two)
    assert memory_digest(one, 3) != memory_digest(two, 3)
    with two.open("r+b") as stream:
        stream.seek(2 * MIB)
        stream.write(b"PAGE")
    assert memory_digest(one, 2) != memory_digest(two, 2)
