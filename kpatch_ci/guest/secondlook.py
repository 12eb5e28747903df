# SPDX-License-Identifier: GPL-2.0-or-later
"""A second look at a guest that was lost in real time under TCG: is it the kernel, or the emulator?

QEMU's own faults (docs/accelerators.md, Threads) look like the kernel's: a panic, a hang, silence. So such a guest is booted once more,
under the same seed and with the same job. Lost twice, it is the kernel's fault as anywhere else. Lost once, nobody can tell: a rare
race of the kernel looks the same, so it is told as what it is, and never as a pass (pipeline/assemble.py).
In virtual time there is no second look: the same seed would only say the same.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from kpatch_ci.guest import qemu
from kpatch_ci.guest.events import find_event
from kpatch_ci.guest.runner import Ended
from kpatch_ci.guest.watch import CRASHED
from kpatch_ci.model.boot import Lost
from kpatch_ci.model.machine import Accel, Machine
from kpatch_ci.process import tail

UNLIKE = "the guest is not what was asked for"
"""How a reason begins that is the guest's own word, and no loss."""


def lost(machine: Machine, ended: Ended, work: Path) -> Lost | None:
    """How the guest was lost, where it may have been the emulator's doing; None where it told its end, or what it is."""
    if machine.accel is not Accel.TCG:
        return None
    reason = ended.lost or ""
    results = work / qemu.RESULT_FILE
    told = results.exists() and find_event(results.read_text(errors="replace"), "end") is not None
    if reason.startswith(UNLIKE) or (told and not reason.startswith(CRASHED)):
        return None
    if not reason:
        reason = f"QEMU ended with exit status {ended.code}" if ended.code else "the guest ended without a word"
    return Lost(reason, tail(work / qemu.CONSOLE_FILE))


def keep_first(work: Path, log: Path) -> None:
    """Keep the console of a guest that was lost: beside ``log``, the second guest's, as ``NAME.first.console.log``."""
    console = work / qemu.CONSOLE_FILE
    if console.exists():
        log.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(console, log.with_name(log.name.replace(".console.log", ".first.console.log")))


def twice(reason: str, first: Lost | None) -> str:
    """Why a guest failed, and how the one before it was lost."""
    return f"{reason}; booted again after the first guest was lost: {first.reason}" if first and reason else reason
