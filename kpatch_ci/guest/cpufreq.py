# SPDX-License-Identifier: GPL-2.0-or-later
"""Frequency domains of a machine: for the emulated driver (qemu/cpufreq), the device tree, and the check of the facts."""

from __future__ import annotations

import math
from dataclasses import dataclass

from kpatch_ci.model.machine import Cluster, Machine

MODULE = "kpci_cpufreq"
"""The driver's name, and its module's."""
GOVERNOR = "schedutil"
FULL_CAPACITY = 1024


@dataclass(frozen=True, slots=True)
class Domain:
    """CPUs that change their frequency together. ``frequencies`` in kHz, rising; ``speed`` of 1024 at the highest."""

    cpus: tuple[int, ...]
    frequencies: tuple[int, ...]
    speed: int


def domains(machine: Machine) -> tuple[Domain, ...]:
    """The machine's frequency domains, in the order of their first CPUs; none without frequency scaling."""
    found = []
    for cluster in machine.clusters:
        if not cluster.frequencies:
            continue
        speed = cluster.capacity if machine.capacity_slows and cluster.capacity else FULL_CAPACITY
        groups = [cluster.cpus] if machine.policies == "shared" else [(cpu,) for cpu in cluster.cpus]
        found += [Domain(cpus, cluster.frequencies, speed) for cpus in groups]
    return tuple(sorted(found, key=lambda d: d.cpus[0]))


def parameters(machine: Machine) -> str:
    """The module's parameters, as its source explains them."""
    policies = ",".join(_policy(domain) for domain in domains(machine))
    return f"policy={policies} latency_us={machine.transition_latency_us}"


def _policy(domain: Domain) -> str:
    mask = sum(1 << cpu for cpu in domain.cpus)
    speed = "" if domain.speed == FULL_CAPACITY else f"@{domain.speed}"
    return f"{mask:x}:{'/'.join(str(khz) for khz in domain.frequencies)}{speed}"


def dmips_mhz(machine: Machine, cluster: Cluster) -> int | None:
    """capacity-dmips-mhz for the device tree; None for a cluster without a capacity.

    That property is a capacity *per MHz*: with a frequency driver Linux multiplies it by each policy's highest
    frequency before it scales the largest product to 1024. A common multiple of those frequencies makes the division
    exact, so that cpu_capacity shows what the machine file says.
    """
    if cluster.capacity is None or not machine.scales_frequency:
        return cluster.capacity
    highest = [c.frequencies[-1] // 1000 for c in machine.clusters]
    return cluster.capacity * math.lcm(*highest) // (cluster.frequencies[-1] // 1000)
