# SPDX-License-Identifier: GPL-2.0-or-later
"""How a stage ended, and what a comparison says."""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    """Outcome of one stage. ``FAILED``: the patch's fault. ``ERROR``: ours or the machine's. ``SKIPPED``: a prerequisite failed."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    ERROR = "error"


class Verdict(StrEnum):
    """What a comparison says of a patch (design.md, Words)."""

    IMPROVED = "improved"
    REGRESSED = "regressed"
    NO_CHANGE = "no change"
    INCONCLUSIVE = "inconclusive"
    FAILED = "failed"
    SKIPPED = "skipped"
    ERROR = "error"


class Mode(StrEnum):
    """What a guest's clock is made of, and so what its samples are worth."""

    DETERMINISTIC = "deterministic"
    VIRTUAL_TIME = "virtual-time"
    TCG = "tcg"
    KVM = "kvm"
    HARDWARE = "hardware"


REAL_TIME = frozenset({Mode.TCG, Mode.KVM, Mode.HARDWARE})
"""Modes whose clock is a real one: arms alternate, nothing is reused, and they are compared unpaired."""
