# SPDX-License-Identifier: GPL-2.0-or-later
"""Boots: one guest brought up under one boot seed, checked, and stopped as a snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kpatch_ci.model.status import Status


@dataclass(frozen=True, slots=True)
class Lost:
    """How a guest was lost, where another was booted in its place (guest/secondlook.py)."""

    reason: str
    log_tail: str = ""


@dataclass(frozen=True, slots=True)
class BootResult:
    """One boot of one arm. ``facts`` is what the guest reported of itself; ``differences`` what in it contradicts the machine file."""

    status: Status
    arm: str
    arch: str
    machine: str
    boot_seed: int
    key: str
    seconds: float
    cached: bool
    facts: Mapping[str, Any] = field(default_factory=dict)
    differences: tuple[str, ...] = ()
    snapshot: Path | None = None
    snapshot_digest: str = ""
    said_digest: str = ""
    """Of console and result channel up to the snapshot, with their time stamps: equal for boots that ran alike."""
    memory_digest: str = ""
    """Of the guest's memory at the snapshot, where it was asked for."""
    console: Path | None = None
    qemu_argv: tuple[str, ...] = ()
    reason: str = ""
    log_tail: str = ""
    reproduce: str = ""
    first: Lost | None = None
    """Of the guest before this one, under the same seed."""
