# SPDX-License-Identifier: GPL-2.0-or-later
"""A file system on the null_blk device: made and mounted before anything is measured."""

from __future__ import annotations

from kpatch_ci.workloads.null_blk import DEVICE
from kpatch_ci.workloads.types import Step

MOUNT_POINT = "/mnt"
SMALLEST_MIB = 300
"""mkfs.xfs refuses less."""
DEFAULT_MIB = 320

_MKFS: dict[str, tuple[str, ...]] = {
    "xfs": ("/usr/sbin/mkfs.xfs", "-q", "-f", "-K", DEVICE),
    "ext4": ("/usr/sbin/mke2fs", "-q", "-F", "-t", "ext4", "-N", "4096", "-J", "size=8", "-E", "nodiscard", DEVICE),
}
FILE_SYSTEMS = tuple(_MKFS)


def filesystem(fs: str) -> tuple[Step, ...]:
    """Steps that put ``fs`` on /dev/nullb0 and mount it at /mnt."""
    return (Step("prep", _MKFS[fs]), Step("mkdir", (MOUNT_POINT,)), Step("mount", (fs, DEVICE, MOUNT_POINT)))
