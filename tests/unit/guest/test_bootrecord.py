# SPDX-License-Identifier: GPL-2.0-or-later
"""What is kept of a boot that another machine made."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kpatch_ci.guest import bootrecord
from kpatch_ci.model.boot import BootResult
from kpatch_ci.model.status import Status
from kpatch_ci.store.artifacts import ArtifactStore

KEY = "a" * 64


def made(tmp_path: Path, said: str = "1" * 64) -> BootResult:
    console = tmp_path / "console.log"
    console.write_text(f"booted, {said[:1]}\n")
    facts = {"cpus": [0, 1], "release": "6.1"}
    return BootResult(Status.PASSED, "patched", "arm64", "m", 3, KEY, 1.5, False, facts=facts, said_digest=said, snapshot_digest="5" * 64,
                      console=console, qemu_argv=("qemu", "-smp"), reproduce="qemu by hand")  # fmt: skip


def test_a_boot_is_known_again_without_its_snapshot(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path / "store")
    boot = made(tmp_path)
    kept = bootrecord.keep(store, boot)
    assert kept.console is not None
    assert kept.console.read_text() == "booted, 1\n"
    assert kept.console.is_relative_to(store.root)
    found = bootrecord.find(store, KEY, "another")
    assert found == replace(kept, arm="another", cached=True)
    assert found is not None
    assert found.snapshot is None


def test_a_boot_that_ran_otherwise_takes_the_old_one_s_place(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path / "store")
    bootrecord.keep(store, made(tmp_path))
    bootrecord.keep(store, made(tmp_path, said="2" * 64))
    found = bootrecord.find(store, KEY, "patched")
    assert found is not None
    assert found.said_digest == "2" * 64
    assert found.console is not None
    assert found.console.read_text() == "booted, 2\n"


@pytest.mark.parametrize("key", ["b" * 64])
def test_what_nobody_made_is_not_known(tmp_path: Path, key: str) -> None:
    assert bootrecord.find(ArtifactStore(tmp_path / "store"), key, "patched") is None
