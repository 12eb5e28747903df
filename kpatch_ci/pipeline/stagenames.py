# SPDX-License-Identifier: GPL-2.0-or-later
"""How the stages of a run are called, and which of them goes first."""

from __future__ import annotations

from kpatch_ci.model.series import Arm
from kpatch_ci.model.workload import Seed

PRIORITY = {"apply": 0, "image": 0, "build": 1, "boot": 3, "run": 4}
BOOT_SPAN = 10
"""Priorities that one boot seed takes up where a run goes boot by boot."""
OVER = "the time budget was used up"
"""Reason of what was not begun."""
GIVE_UP_AFTER = 2
"""Failures of one case in one arm after which its other seeds are not tried: a hang would cost its timeout each time."""


def apply_name(series: str) -> str:
    """Node that applies a series."""
    return f"apply {series}"


def build_name(arch: str, kernel: str) -> str:
    """Node that builds a kernel: ``baseline`` or the name of an applied series (Arm.kernel)."""
    return f"build {arch} {kernel}"


def image_name(arch: str) -> str:
    """Node that makes the guest image."""
    return f"image {arch}"


def boot_name(arch: str, kernel: str, boot_seed: int) -> str:
    """Node that boots a kernel under a boot seed."""
    return f"boot {arch} {kernel} seed {boot_seed}"


def run_name(arch: str, arm: Arm, workload: str, case: str, seed: Seed) -> str:
    """Node that measures one replicate."""
    return f"run {arch} {arm.label} {workload} {case} seed {seed}"
