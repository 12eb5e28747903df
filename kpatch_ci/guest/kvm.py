# SPDX-License-Identifier: GPL-2.0-or-later
"""Does KVM really run a guest here? /dev/kvm may exist, open, create a machine, and still hang: only a guest can tell."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from kpatch_ci.debian.toolroot import ToolRoot
from kpatch_ci.process import run

DEVICE = Path("/dev/kvm")
_WORK = "/kpci/work"
_EXIT_PORT = 0xF4
_EXIT_VALUE = 0x2A
_EXIT_STATUS = (_EXIT_VALUE << 1) | 1
"""What isa-debug-exit makes of it."""
_CODE = bytes([0xB0, _EXIT_VALUE, 0xE6, _EXIT_PORT, 0xF4, 0xEB, 0xFD])
"""mov al, value; out port, al; hlt; jmp to the hlt."""


def boot_sector() -> bytes:
    """A disk of one sector that ends QEMU as soon as the firmware has started it."""
    return _CODE.ljust(510, b"\0") + b"\x55\xaa"


def _argv(accelerator: str) -> list[str]:
    args = ["qemu-system-x86_64", "-machine", f"pc,accel={accelerator}", "-m", "16", "-nodefaults", "-no-reboot"]
    args += ["-display", "none", "-device", f"isa-debug-exit,iobase={_EXIT_PORT:#x},iosize=1"]
    return [*args, "-drive", f"file={_WORK}/disk,format=raw,if=ide"]


def probe_kvm(tools: ToolRoot, timeout: float = 15.0) -> tuple[bool, str]:
    """Boot a guest of one disk sector under KVM: whether it ran, and in one sentence what was tried and seen.

    Answers within ``timeout`` seconds and a little.
    """
    if not DEVICE.exists():
        return False, f"{DEVICE} is not there (no virtualisation, or its module is not loaded)"
    if not os.access(DEVICE, os.R_OK | os.W_OK):
        return False, f"{DEVICE} may not be opened by this user (group kvm?)"
    return _boot(tools, "kvm", timeout)


def _boot(tools: ToolRoot, accelerator: str, timeout: float) -> tuple[bool, str]:
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "disk").write_bytes(boot_sector())
        devices = [DEVICE] if accelerator == "kvm" else []
        argv = tools.argv(_argv(accelerator), write_mounts=[(Path(scratch), _WORK)], devices=devices)
        done = run(argv, timeout=timeout)
    seconds = time.monotonic() - started
    if done.returncode == _EXIT_STATUS and not done.timed_out:
        return True, f"a guest of one disk sector ran to its end under {accelerator} in {seconds:.1f} s"
    if done.timed_out:
        return (
            False,
            f"{DEVICE} opens, but a guest of one disk sector was not done after {timeout:g} s: it hangs, or crawls",
        )
    lines = done.output.strip().splitlines()
    return False, f"{done.explain()}{': ' + lines[-1] if lines else ''}"
