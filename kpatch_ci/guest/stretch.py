# SPDX-License-Identifier: GPL-2.0-or-later
"""Each boot seed has an initramfs of a length of its own.

What happens before user space draws from no random pool: under one kernel all boots would go through the same instants and
the same addresses until then, whatever their seed, and a kernel in which nothing but addresses differ would go through others. Runs
that inherit such a state (hackbench's do) then differ between the arms under every seed alike, which a test over seeds takes for
the patch (T. Mytkowicz, A. Diwan, M. Hauswirth, P. F. Sweeney, ASPLOS 2009, "Producing wrong data without doing anything obviously
wrong!"). So the state is drawn too: a file of 0 to 1 MiB that nobody reads moves what the kernel unpacks, where, and until when.
docs/calibration.md has what that did.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from kpatch_ci.guest import cpio

MOST = 1 << 20
"""Bytes below which the file's size is drawn."""
NAME = "kpci.stretch"


def size_of(boot_seed: int) -> int:
    """Bytes of the file under a boot seed: 0 to MOST - 1."""
    drawn = hashlib.sha256(f"{NAME} {boot_seed}".encode()).digest()
    return int.from_bytes(drawn[:8], "big") % MOST


def stretched(initrd: Path, boot_seed: int, work: Path) -> Path:
    """``initrd`` with the file of a boot seed behind it, in ``work``. A resumed guest needs what it was booted with."""
    into = work / "initrd"
    into.write_bytes(cpio.whole_blocks(initrd.read_bytes()) + cpio.one_file(NAME, bytes(size_of(boot_seed))))
    return into
