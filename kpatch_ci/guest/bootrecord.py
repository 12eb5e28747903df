# SPDX-License-Identifier: GPL-2.0-or-later
"""What is known here of a boot that another machine made: its facts, its console, what its replicates are keyed by. No snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from kpatch_ci.guest import qemu
from kpatch_ci.guest.snapshot import boot_meta, boot_result
from kpatch_ci.model.boot import BootResult
from kpatch_ci.store.artifacts import ArtifactStore

KIND = "boot"


def keep(store: ArtifactStore, boot: BootResult) -> BootResult:
    """Keep the record of a boot that passed, and return the boot with the record's console."""
    meta = {**boot_meta(boot), "snapshot": {"digest": boot.snapshot_digest}, "said": boot.said_digest}

    def fill(place: Path) -> Mapping[str, Any]:
        text = boot.console.read_bytes() if boot.console else b""
        (place / qemu.CONSOLE_FILE).write_bytes(text)
        return meta

    old = store.get(KIND, boot.key, verify=False)
    if old and old.meta["said"] != boot.said_digest:
        store.drop(KIND, boot.key)  # it ran otherwise this time: its replicates have other keys
    return replace(boot, console=store.put(KIND, boot.key, fill).path / qemu.CONSOLE_FILE)


def find(store: ArtifactStore, key: str, arm: str) -> BootResult | None:
    """The boot, where another machine made it."""
    artifact = store.get(KIND, key, verify=False)
    return replace(boot_result(artifact, arm, cached=True), snapshot=None) if artifact else None
