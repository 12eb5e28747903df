# SPDX-License-Identifier: GPL-2.0-or-later
"""What the figures of a run rest on: digests and versions of everything that they are a function of (design.md, rule 7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kpatch_ci.config.load import Config
from kpatch_ci.guest.files import machine_slice
from kpatch_ci.guest.qemu import accelerator
from kpatch_ci.model.boot import BootResult
from kpatch_ci.model.build import BuildResult
from kpatch_ci.model.digest import digest
from kpatch_ci.model.series import BASELINE, Series
from kpatch_ci.model.workload import Case
from kpatch_ci.pipeline.engine import Values

SHORT = 16
"""Hexadecimal digits of a digest that only tells like from unlike."""


def fingerprint(config: Config, values: Values, tools: Mapping[str, str], extra: Mapping[str, Any]) -> dict[str, Any]:
    """What every number of a run rests on (design.md, rule 7)."""
    arches: dict[str, Any] = {}
    for machine in config.machines:
        builds = {
            name.split(" ", 2)[2]: value
            for name, value in values.items()
            if name.startswith(f"build {machine.arch} ") and isinstance(value, BuildResult)
        }
        image = values.get(f"image {machine.arch}")
        boots = (
            value
            for name, value in values.items()
            if name.startswith(f"boot {machine.arch} {BASELINE} ") and isinstance(value, BootResult)
        )
        boot = min(boots, key=lambda one: one.boot_seed, default=None)  # values are in the order in which they came
        arches[machine.arch] = {
            "machine": machine.name,
            "machine_digest": digest(machine_slice(machine))[:SHORT],
            "config": next((b.config_digest for b in builds.values() if b.config_digest), ""),
            "baseline_image": builds[BASELINE].image_digest if BASELINE in builds else "",
            "guest_image": getattr(image, "digest", ""),
            "qemu_argv": list(boot.qemu_argv) if boot else [],
            "accelerator": accelerator(machine),
            **({"board": _board(boot.facts)} if boot and machine.board else {}),
        }
    return {
        "qemu": tools.get("qemu-system-x86", ""),
        "gcc": tools.get("gcc-14", tools.get("gcc", "")),
        "gcc_arm64": tools.get("gcc-14-aarch64-linux-gnu", tools.get("gcc-aarch64-linux-gnu", "")),
        "binutils": tools.get("binutils", ""),
        "arches": arches,
        "workloads": {p.name: {c.label: _case_digest(p.kind, c) for c in p.cases} for p in config.workloads},
        **extra,
    }


def _board(facts: Mapping[str, Any]) -> dict[str, Any]:
    """What of a board as its boot showed it stays from run to run."""
    seen = facts.get("board", {})
    return {key: seen[key] for key in ("cpu", "driver", "governor", "boost", "smt") if key in seen}


def _case_digest(kind: str, case: Case) -> str:
    """Of all that a case is, ``params`` included, which its label does not show."""
    return digest([kind, case.settings, case.params])[:SHORT]


def series_digests(series: Sequence[Series]) -> dict[str, str]:
    """Series -> digest of its patches' and ports' own diffs, whatever the tree that they go onto."""
    return {one.name: digest(_diffs(one))[:SHORT] for one in series}


def _diffs(series: Series) -> list[Any]:
    own = [patch.digest for patch in series.patches]
    ports = {tree: [patch.digest for patch in patches] for tree, patches in series.ports.items()}
    inner = [_diffs(one) for one in (*series.members, *([series.base] if series.base else []))]
    return [own, ports, inner, str(series.contrast)]
