# SPDX-License-Identifier: GPL-2.0-or-later
"""Is the board that answers what was asked for: that very kernel, on those CPUs?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kpatch_ci.board.install import board_of
from kpatch_ci.guest.cpulist import format_cpus
from kpatch_ci.model.build import BuildResult
from kpatch_ci.model.machine import Machine

NOTES = "/usr/bin/busybox od -An -v -tx1 /sys/kernel/notes"
"""The running kernel's ELF notes, among them its build id: the linker's digest of all that was linked."""


def is_that_kernel(notes: str, build: BuildResult) -> str | None:
    """None where the notes stand in the image that was sent; else what is wrong."""
    try:
        running = bytes.fromhex(notes)
    except ValueError:
        running = b""
    if b"GNU\0" not in running:
        return "kernel: it does not show its build id (/sys/kernel/notes)"
    if build.artifact is None or running not in _bytes(build.artifact / "image"):
        return "kernel: the build id of what runs is not that of the image that was sent"
    return None


def _bytes(path: Path) -> bytes:
    return path.read_bytes()


def differences(facts: Mapping[str, Any], machine: Machine, release: str, modules: Sequence[str]) -> tuple[str, ...]:
    """What of the agent's ``facts`` contradicts machine file or build, one sentence each."""
    board = board_of(machine)
    found = []
    rows = [("kernel release", facts.get("release"), release), ("CPUs", facts.get("cpus"), machine.cpus)]
    if board.clocksource:
        rows.append(("clock source", facts.get("clocksource"), board.clocksource))
    found += [f"{what}: {got}, it should be {wanted}" for what, got, wanted in rows if got != wanted]
    if facts.get("clocksource") == "tsc-early":
        found.append("clock source: tsc-early, the counter's rate is not known yet")
    mib = int(facts.get("mem_kb") or 0) // 1024
    if not machine.memory_mib * 0.75 <= mib <= machine.memory_mib:
        found.append(f"memory: {mib} MiB, the machine file says {machine.memory_mib}")
    found += _cluster_differences({entry["cpu"]: entry for entry in facts.get("cpu", ())}, machine)
    loaded = set(facts.get("modules", ()))
    return (*found, *(f"module {name}: not loaded" for name in modules if name not in loaded))


def _cluster_differences(seen: Mapping[int, Mapping[str, Any]], machine: Machine) -> list[str]:
    """Capacities one by one; who shares a cluster where the machine file has several and the kernel tells."""
    found = []
    for cluster in machine.clusters:
        wanted = format_cpus(cluster.cpus)
        for cpu in cluster.cpus:
            entry = seen.get(cpu, {})
            if cluster.capacity is not None and entry.get("capacity") != cluster.capacity:
                found.append(
                    f"capacity of CPU {cpu}: {entry.get('capacity')}, the machine file says {cluster.capacity}"
                )
            told = entry.get("cluster_cpus")
            if len(machine.clusters) > 1 and told is not None and told != wanted:
                found.append(f"cluster of CPU {cpu}: {told}, the machine file says {wanted}")
    return found
