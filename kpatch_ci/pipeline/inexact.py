# SPDX-License-Identifier: GPL-2.0-or-later
"""Which workloads were seen to differ between repeats: their replicates are measured anew each time, and say so.

A mark holds for one emulator and one machine, whatever the kernel: a new QEMU, or another machine file, starts innocent. A
verification that passes later does not take it back: one counterexample is enough.
"""

from __future__ import annotations

from kpatch_ci.debian.toolroot import ToolRoot
from kpatch_ci.guest.files import machine_slice
from kpatch_ci.guest.image import GuestImage
from kpatch_ci.model.digest import digest
from kpatch_ci.model.machine import Machine
from kpatch_ci.model.status import Mode
from kpatch_ci.store.artifacts import ArtifactStore

KIND = "inexact"


def mode_of(store: ArtifactStore, tools: ToolRoot, image: GuestImage, machine: Machine, workload: str) -> Mode:
    """Deterministic, unless repeats were seen to differ; in real time the accelerator's own."""
    if machine.real_time:
        return Mode(machine.accel)
    seen = store.get(KIND, _key(tools, image, machine, workload))
    return Mode.VIRTUAL_TIME if seen else Mode.DETERMINISTIC


def mark(
    store: ArtifactStore, tools: ToolRoot, image: GuestImage, machine: Machine, workload: str, *, because: str
) -> None:
    """From now on the workload's replicates on that machine are not reused."""
    key = _key(tools, image, machine, workload)
    meta = {"machine": machine.name, "workload": workload, "because": because}
    store.put(KIND, key, lambda _: meta)


def _key(tools: ToolRoot, image: GuestImage, machine: Machine, workload: str) -> str:
    return digest([KIND, tools.fingerprint, image.preload_digest, machine_slice(machine), workload])
