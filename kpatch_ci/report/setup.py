# SPDX-License-Identifier: GPL-2.0-or-later
"""What an architecture's figures were measured with, in words: machine, kernel and configuration, QEMU, seeds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kpatch_ci.report.schema import ArchDoc, BuildDoc, Document

DIGEST = 12
"""Digits of a digest that a person is shown; the fingerprint has all."""


def setup_pairs(arch: ArchDoc, document: Document) -> list[tuple[str, str]]:
    """Names and values; a value is empty where nothing is known."""
    return [
        ("machine", arch.machine),
        ("kernel", _kernel(arch)),
        ("qemu", _qemu(arch, document.fingerprint)),
        ("seeds", "; ".join(_seeds(arch))),
    ]


def _kernel(arch: ArchDoc) -> str:
    """Release and configuration, said once where both arms have the same."""
    arms = [_build(arch.build.baseline), _build(arch.build.patched)]
    there = [text for text in arms if text]
    if len(set(there)) < 2:
        return there[0] if there else ""
    return f"baseline {arms[0]}; patched {arms[1]}"


def _build(build: BuildDoc) -> str:
    config = f"config {build.config_digest[:DIGEST]}" if build.config_digest else ""
    return ", ".join(filter(None, (build.release, config)))


def _qemu(arch: ArchDoc, fingerprint: Mapping[str, Any]) -> str:
    """QEMU's version, and what runs its CPUs."""
    qemu = fingerprint.get("qemu", "")
    version = qemu.get("version", "") if isinstance(qemu, Mapping) else qemu
    arches = fingerprint.get("arches")
    own = arches.get(arch.arch) if isinstance(arches, Mapping) else None
    accelerator = own.get("accelerator", "") if isinstance(own, Mapping) else ""
    return "; ".join(filter(None, (str(version), str(accelerator))))


def _seeds(arch: ArchDoc) -> list[str]:
    """Seeds, boot seed before run seed, of the workloads that ran under them."""
    found: dict[tuple[str, ...], list[str]] = {}
    for c in arch.comparisons:
        names = found.setdefault(tuple(c.seeds), [])
        if c.seeds and c.workload not in names:
            names.append(c.workload)
    lines = []
    for seeds, names in found.items():
        if names:
            boots = len({seed.partition(".")[0] for seed in seeds})
            span = seeds[0] if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
            lines.append(f"{', '.join(names)}: {len(seeds)} of {boots} boot{'s' * (boots != 1)}, {span} (boot.run)")
    return lines
