# SPDX-License-Identifier: GPL-2.0-or-later
"""What a guest said of its CPUs. It may have said anything: what is not as it should be is passed over."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kpatch_ci.report.schema import ArchDoc


def policy_cpus(arch: ArchDoc) -> dict[str, str]:
    """Frequency policy -> its CPUs."""
    told = [p for p in _told(arch, "cpufreq") if {"policy", "related_cpus"} <= p.keys()]
    return {f"policy{p['policy']}": cpu_ranges(str(p["related_cpus"])) for p in told}


def cpu_lines(arch: ArchDoc) -> list[str]:
    """Clusters with their capacities, then policies with their frequencies."""
    clusters: dict[tuple[str, str], list[str]] = {}
    for cpu in _told(arch, "cpu"):
        if {"cpu", "cluster", "capacity"} <= cpu.keys():
            clusters.setdefault((str(cpu["cluster"]), str(cpu["capacity"])), []).append(str(cpu["cpu"]))
    lines = [f"CPUs {cpu_ranges(' '.join(cpus))}: cluster {n}, capacity {c}" for (n, c), cpus in clusters.items()]
    for policy in _told(arch, "cpufreq"):
        khz = policy.get("frequencies")
        if "related_cpus" in policy and isinstance(khz, list):
            steps = ", ".join(megahertz(str(k)).removesuffix(" MHz") for k in khz)
            governor = f", {policy['governor']}" if "governor" in policy else ""
            lines.append(f"CPUs {cpu_ranges(str(policy['related_cpus']))}: {steps} MHz{governor}")
    return lines


def _told(arch: ArchDoc, fact: str) -> list[dict[str, Any]]:
    found = next((b.facts[fact] for b in (arch.boot.baseline, arch.boot.patched) if fact in b.facts), ())
    return [part for part in found if isinstance(part, dict)] if isinstance(found, list) else []


def cpus_named(cpus: str) -> str:
    """``CPU 3``, ``CPUs 0-5``."""
    return f"{'CPU' if cpus.isdecimal() else 'CPUs'} {cpus}"


def cpu_ranges(cpus: str) -> str:
    """``0 1 2 3 7`` -> ``0-3,7``; anything else as it is."""
    words = cpus.split()
    if not words or not all(w.isdecimal() for w in words):
        return cpus
    return ",".join(str(g[0]) if len(g) == 1 else f"{g[0]}-{g[-1]}" for g in _runs(sorted(map(int, words))))


def _runs(numbers: Iterable[int]) -> list[list[int]]:
    groups: list[list[int]] = []
    for number in numbers:
        if groups and number == groups[-1][-1] + 1:
            groups[-1].append(number)
        else:
            groups.append([number])
    return groups


def khz_of(text: str) -> int:
    """A frequency in kHz; 0 for what is none."""
    return int(text) if text.isdecimal() else 0


def megahertz(khz: str) -> str:
    """``1800000`` -> ``1800 MHz``."""
    return f"{khz_of(khz) / 1000:g} MHz"
