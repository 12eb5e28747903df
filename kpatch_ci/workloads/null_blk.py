# SPDX-License-Identifier: GPL-2.0-or-later
"""A block device with no host in it: null_blk, memory-backed, of any latency (Documentation/block/null_blk.rst)."""

from __future__ import annotations

from kpatch_ci.workloads.types import Kind, Option, Step

DEVICE = "/dev/nullb0"
SECTOR = 512
_DIR = "/sys/kernel/config/nullb/nullb0"

LATENCY_HELP = "completion time of each request of the null_blk device, in microseconds of the guest's clock"
SIZE_HELP = "size of the null_blk device, in MiB; memory is used only for what is written"


def size_option(default: int | None, minimum: int = 1) -> Option:
    """The device's size as an option."""
    return Option("size_mib", Kind.INTEGER, SIZE_HELP, default=default, minimum=minimum, maximum=1 << 20)


def null_blk(size_mib: int, latency_us: int) -> tuple[Step, ...]:
    """Steps that make /dev/nullb0. ``irqmode=2`` completes each request by a timer after ``latency_us``, 0 at once."""
    attributes = {
        "size": str(size_mib),
        "blocksize": str(SECTOR),
        "memory_backed": "1",
        "irqmode": "2" if latency_us else "0",
        "completion_nsec": str(latency_us * 1000),
        "submit_queues": "1",
        "power": "1",
    }
    return (
        Step("mkdir", (_DIR,)),
        *(Step("write", (f"{_DIR}/{name}", value)) for name, value in attributes.items()),
    )
