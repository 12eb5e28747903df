# SPDX-License-Identifier: GPL-2.0-or-later
"""The rate of this host's time-stamp counter, which an x86 guest's counter has too in real time (TCG and KVM alike).

A guest measures it in 50 ms of its boot. On a busy host it may be wrong by any factor (seen: 181 MHz for 2,596), and then
every second that it tells is. Given the rate, Linux only refines it, over a second, and takes nothing that is 1 % off.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import platform
import re
import time
from collections.abc import Callable
from dataclasses import replace

from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.model.machine import Machine

_RDTSC = bytes.fromhex("0f31 48c1e220 4809d0 c3")
"""rdtsc; shl rdx, 32; or rax, rdx; ret"""
_TRIES = 200
_SPAN = 0.25
"""Seconds between the two readings."""
_REFINED = re.compile(r"tsc: Refined TSC clocksource calibration: \d+\.\d+ MHz")


@functools.lru_cache(maxsize=1)
def host_tsc_khz() -> int:
    """Rate in kHz, to some parts in a million. Raises InfrastructureError where it cannot be read."""
    if platform.machine() != "x86_64":
        raise InfrastructureError(f"an x86_64 guest in real time wants an x86_64 host, this is {platform.machine()}")
    try:
        page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError as error:
        raise InfrastructureError(f"cannot read this host's time-stamp counter: {error}") from error
    page.write(_RDTSC)
    held = ctypes.c_char.from_buffer(page)
    read = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(held))
    ticks, nanoseconds = _reading(read)
    time.sleep(_SPAN)
    later, then = _reading(read)
    return round((later - ticks) * 1_000_000 / (then - nanoseconds))


def _reading(read: Callable[[], int]) -> tuple[int, int]:
    """Counter and clock at one moment: of many tries the one whose clock readings before and after are closest."""
    best: tuple[int, int, int] | None = None
    for _ in range(_TRIES):
        before, ticks, after = time.monotonic_ns(), int(read()), time.monotonic_ns()
        if best is None or after - before < best[0]:
            best = (after - before, ticks, (before + after) // 2)
    assert best is not None  # noqa: S101 - there is a try
    return best[1], best[2]


def told_its_rate(machine: Machine) -> Machine:
    """The machine whose kernel is told its counter's rate, where that is the host's. Raises InfrastructureError."""
    if not (machine.real_time and machine.arch == "x86_64"):
        return machine
    return replace(machine, kernel_args=(*machine.kernel_args, f"tsc_early_khz={host_tsc_khz()}"))


def keeps_time(machine: Machine, console: str) -> bool:
    """Whether the guest's clock may be believed: in real time an x86 kernel must have refined its rate."""
    return not (machine.real_time and machine.arch == "x86_64") or bool(_REFINED.search(console))
