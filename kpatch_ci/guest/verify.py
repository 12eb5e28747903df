# SPDX-License-Identifier: GPL-2.0-or-later
"""What a guest says of itself, held against what was asked for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from kpatch_ci.guest.cpufreq import GOVERNOR, MODULE, Domain, domains
from kpatch_ci.guest.cpulist import CAPACITY_ARCHES, format_cpus
from kpatch_ci.guest.switchcost import switch_cost_differences
from kpatch_ci.model.machine import Cluster, Machine

_CLOCKSOURCES = {"arm64": "arch_sys_counter", "x86_64": "tsc"}
"""Clocks that the guest reads without leaving it. With another one the figures would be about the clock."""


def differences(facts: Mapping[str, Any], machine: Machine, release: str, modules: Sequence[str]) -> tuple[str, ...]:
    """Everything in ``facts`` (the agent's event) that contradicts the machine file, the build's release or its modules.

    One sentence each, with both sides named; empty when the guest is what was asked for.
    """
    found = []
    if facts.get("release") != release:
        found.append(f"kernel release: {facts.get('release')}, the build is {release}")
    if facts.get("cpus") != machine.cpus:
        found.append(f"CPUs: {facts.get('cpus')}, the machine file says {machine.cpus}")
    found += _memory_differences(facts, machine)
    seen = {entry["cpu"]: entry for entry in facts.get("cpu", ())}
    if machine.arch in CAPACITY_ARCHES:
        for cluster in machine.clusters:
            found += _cluster_differences(seen, cluster, shown=_shows_clusters(release))
    found += _clock_differences(facts, machine)
    found += _frequency_differences(facts, machine)
    found += switch_cost_differences(facts, machine)
    loaded = set(facts.get("modules", ()))
    found += [f"module {name}: not loaded" for name in modules if name not in loaded]
    return tuple(found)


def _memory_differences(facts: Mapping[str, Any], machine: Machine) -> list[str]:
    """What a kernel reserves for itself is not in MemTotal: a tenth, and the page structures."""
    mib = int(facts.get("mem_kb") or 0) // 1024
    if machine.memory_mib * 0.75 <= mib <= machine.memory_mib:
        return []
    return [f"memory: {mib} MiB, the machine file says {machine.memory_mib}"]


def _shows_clusters(release: str) -> bool:
    """Whether a kernel tells user space of clusters: since 5.16 (cluster_cpus_list, commit c5e22feffdd7)."""
    return tuple(int(part) for part in re.findall(r"\d+", release)[:2]) >= (5, 16)


def _cluster_differences(seen: Mapping[int, Mapping[str, Any]], cluster: Cluster, *, shown: bool) -> list[str]:
    found = []
    wanted = format_cpus(cluster.cpus)
    for cpu in cluster.cpus:
        entry = seen.get(cpu)
        if entry is None:
            found.append(f"CPU {cpu}: not there")
            continue
        if shown and entry.get("cluster_cpus") != wanted:
            found.append(f"cluster of CPU {cpu}: {entry.get('cluster_cpus')}, the machine file says {wanted}")
        if cluster.capacity is not None and entry.get("capacity") != cluster.capacity:
            found.append(f"capacity of CPU {cpu}: {entry.get('capacity')}, the machine file says {cluster.capacity}")
    return found


def _clock_differences(facts: Mapping[str, Any], machine: Machine) -> list[str]:
    found = []
    wanted = _CLOCKSOURCES[machine.arch]
    if facts.get("clocksource") != wanted:
        found.append(f"clock source: {facts.get('clocksource')}, it should be {wanted}")
    if facts.get("timer_resolution_ns") != 1:
        found.append(f"timer resolution: {facts.get('timer_resolution_ns')} ns, high-resolution timers have 1")
    return found


def _frequency_differences(facts: Mapping[str, Any], machine: Machine) -> list[str]:
    """The frequency domains, one for one; without frequencies in the machine file there must be none."""
    seen = {entry["policy"]: entry for entry in facts.get("cpufreq", ())}
    found = []
    for domain in domains(machine):
        entry = seen.pop(domain.cpus[0], None)
        name = f"frequency domain of CPU {format_cpus(domain.cpus)}"
        found += _domain_differences(name, entry, domain) if entry else [f"{name}: not there"]
    return found + [f"frequency domain {number}: the machine file has none such" for number in seen]


def _domain_differences(name: str, entry: Mapping[str, Any], domain: Domain) -> list[str]:
    cpus = [int(cpu) for cpu in str(entry.get("related_cpus")).split() if cpu.isdigit()]
    rows = [
        ("CPUs", format_cpus(tuple(cpus)), format_cpus(domain.cpus)),
        ("kHz", " ".join(sorted(entry.get("frequencies", ()), key=int)), " ".join(map(str, domain.frequencies))),
        ("driver", entry.get("driver"), MODULE),
        ("governor", entry.get("governor"), GOVERNOR),
    ]
    return [f"{name}: {what} {got}, should be {wanted}" for what, got, wanted in rows if got != wanted]
