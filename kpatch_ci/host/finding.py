# SPDX-License-Identifier: GPL-2.0-or-later
"""What doctor found, here or on another machine, and what is enough."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

GIB = 1024**3
GB = 1000**3
MEMORY_NEEDED = 4 * GIB
MEMORY_SLACK = 0.9
"""A machine that is sold with 4 GiB shows less: firmware and kernel keep some."""
DISK_COLD = 16 * GB
DISK_WARM = 8 * GB
"""Once the tool root is there, what remains is trees, objects and snapshots."""
WORK_COLD = 3 * GB
"""On a machine that boots guests alone: the tool root, packed and unpacked, kernels, a snapshot of each boot."""
WORK_WARM = 1 * GIB
BUILD_ROOM = 2 * GB
"""More on one that builds and has no kernel source yet: 1.5 GB of source, 0.5 GB while it arrives, 0.2 GB of objects for each architecture
and for each patched kernel that is being built."""
PYTHON = (3, 11)


@dataclass(frozen=True, slots=True)
class Finding:
    """``ok`` is None where it is neither good nor bad, or cannot be told. ``fix`` is what to do; empty where nothing is."""

    name: str
    ok: bool | None
    detail: str
    fix: str = ""

    def as_dict(self) -> Mapping[str, str | bool | None]:
        """For ``--json``."""
        return {"name": self.name, "ok": self.ok, "detail": self.detail, "fix": self.fix}


def cores(count: int) -> Finding:
    """Any number will do; one is slow."""
    if count >= 2:
        return Finding("cores", True, str(count))
    return Finding("cores", None, f"{count}: builds and replicates cannot run side by side")


def memory(total: int) -> Finding:
    """``total`` in bytes, as the machine (or the container's limit) says."""
    detail = f"{total / GIB:.1f} GiB"
    if total >= MEMORY_NEEDED * MEMORY_SLACK:
        return Finding("memory", True, detail)
    return Finding("memory", False, f"{detail}, 4 GiB are needed", "fewer jobs need less: --jobs 1")


def disk(free: int, where: str, *, warm: bool) -> Finding:
    """``free`` in bytes on the disk that holds ``where``; ``warm``: the tool root is there already."""
    wanted = DISK_WARM if warm else DISK_COLD
    detail = f"{free / GB:.1f} GB free for {where}"
    if free >= wanted:
        return Finding("disk", True, detail)
    return Finding("disk", False, f"{detail}, {wanted / GB:.0f} GB wanted", "set KPATCH_CI_CACHE to a larger disk")


def work(free: int, where: str, *, warm: bool, source: bool = False) -> Finding:
    """``free`` in bytes on the disk of a host's work directory ``where``; ``warm``: a tool root is there already.

    ``source``: it will get kernel source.
    """
    wanted = (WORK_WARM if warm else WORK_COLD) + source * BUILD_ROOM
    detail = f"{free / GB:.1f} GB free for {where}"
    if free >= wanted:
        return Finding("disk", True, detail)
    fix = "make room there, or name another directory: `work:` of the host in pipeline.yaml"
    return Finding("disk", False, f"{detail}, {wanted / GB:.0f} GB wanted", fix)


def python(version: str) -> Finding:
    """``version`` as in ``3.11.2``."""
    found = re.search(r"(\d+)\.(\d+)\S*", version)
    if found and (int(found[1]), int(found[2])) >= PYTHON:
        return Finding("python", True, found[0])
    fix = "a newer system: Debian 12 has 3.11" if found else "sudo apt-get install -y python3"
    return Finding("python", False, f"{version.strip() or 'not there'}; 3.11 or newer is needed", fix)


def program(name: str, package: str, version: str) -> Finding:
    """``version`` is what ``name --version`` printed; empty where there is no such program."""
    found = re.search(r"\d+(\.\d+)+", version)
    if found:
        return Finding(package, True, found[0])
    return Finding(package, False, f"no {name} here", f"sudo apt-get install -y {package}")
