# SPDX-License-Identifier: GPL-2.0-or-later
"""Machines: what a guest consists of, as told by a file in qemu/."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from kpatch_ci.model.board import Board


class Accel(StrEnum):
    """What executes a guest's CPUs, and so what its clock is made of (docs/accelerators.md)."""

    DETERMINISTIC = "deterministic"
    """TCG, all CPUs in one thread, in virtual time."""
    TCG = "tcg"
    """TCG, in real time."""
    KVM = "kvm"
    """The host's own CPUs, in real time."""
    HARDWARE = "hardware"
    """A board: not a guest at all, and not to be chosen, for the machine file says it (docs/boards.md)."""


class TcgThreads(StrEnum):
    """How TCG executes a guest's CPUs in real time."""

    SINGLE = "single"
    """All of them in turns, in one thread."""
    MULTI = "multi"
    """Each in a thread of its own. Not safe for x86_64: docs/accelerators.md, Threads."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """CPUs that share a cluster, and their relative capacity (0..1024) where the architecture has such a notion."""

    name: str
    cpus: tuple[int, ...]
    capacity: int | None = None
    frequencies: tuple[int, ...] = ()
    """What its CPUs can run at, in kHz, rising; none: no frequency scaling."""


@dataclass(frozen=True, slots=True)
class Machine:
    """One file in qemu/."""

    name: str
    description: str
    arch: str
    qemu_machine: str
    """QEMU's -machine."""
    cpu: str
    """QEMU's -cpu."""
    memory_mib: int
    clusters: tuple[Cluster, ...]
    icount_shift: int
    """One guest instruction lasts 2**icount_shift ns of virtual time."""
    kernel_args: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    policies: str = "shared"
    """Frequency domains: ``shared`` by a cluster's CPUs, or ``per-cpu``."""
    transition_latency_us: int = 10
    """What the frequency driver says that a change takes. Governors change no more often than a multiple of it."""
    capacity_slows: bool = False
    """Whether CPUs of less than the full capacity are slowed at their highest frequency too."""
    accel: Accel = Accel.DETERMINISTIC
    """``cpu``, ``kernel_args`` and ``properties`` are those for it."""
    tcg_threads: TcgThreads = TcgThreads.SINGLE
    """Counts with ``accel`` tcg only."""
    context_switch_cost_ns: int | None = None
    """What a switch to another task costs besides its own instructions, in ns of its CPU's own time. None: nothing is added."""
    board: Board | None = None
    """Where it is a board: how it is reached and started. What is QEMU's means nothing then."""

    @property
    def cpus(self) -> int:
        """Number of CPUs."""
        return sum(len(c.cpus) for c in self.clusters)

    @property
    def real_time(self) -> bool:
        """Whether the guest's clock is the host's: no two runs are alike then, and none is kept."""
        return self.accel is not Accel.DETERMINISTIC

    @property
    def scales_frequency(self) -> bool:
        """Whether the guest gets the emulated frequency driver."""
        return any(c.frequencies for c in self.clusters)

    @property
    def modules(self) -> tuple[str, ...]:
        """Our modules that its guests load: folders of qemu/, in load order. The switch cost is measured at full speed, so first."""
        wanted = {"switchcost": self.context_switch_cost_ns is not None, "cpufreq": self.scales_frequency}
        return tuple(name for name, is_wanted in wanted.items() if is_wanted)
