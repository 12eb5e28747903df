# SPDX-License-Identifier: GPL-2.0-or-later
"""Proof that a series is in the image: what it adds is looked up in both arms' kernels."""

from __future__ import annotations

import mmap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kpatch_ci.model.build import Proof
from kpatch_ci.model.series import Adds


def prove(adds: Adds, baseline: Path, patched: Path) -> tuple[Proof, ...]:
    """Look up ``adds`` in two build artifacts (directories that hold ``vmlinux`` and ``System.map``).

    Symbols are names in System.map. The last part of a sysctl's path and a feature's name are whole C strings in vmlinux.
    """
    arms = [(_symbols(place / "System.map"), place / "vmlinux") for place in (patched, baseline)]
    proofs = [Proof("symbol", s, *(s in symbols for symbols, _ in arms)) for s in adds.symbols]
    strings = [("sysctl", s, s.rsplit("/", 1)[-1]) for s in adds.sysctls]
    strings += [("sched_feature", s, s) for s in adds.sched_features]
    proofs += [Proof(kind, name, *(_has_string(vmlinux, text) for _, vmlinux in arms)) for kind, name, text in strings]
    return tuple(proofs)


def prove_sources(compiled: Mapping[str, bool]) -> tuple[Proof, ...]:
    """Changed code files that objects of the patched kernel were made from; where there is none, all of them, unproven."""
    used = any(compiled.values())
    return tuple(Proof("source", path, used, False) for path, made in compiled.items() if made or not used)


def prove_in_guest(adds: Adds, baseline: Mapping[str, Any], patched: Mapping[str, Any]) -> tuple[Proof, ...]:
    """Look up sysctls below kernel/ and scheduler features in what the two guests reported of themselves.

    Better than strings in an image: the last part of a sysctl's path may well be there for another reason.
    """
    proofs = []
    for name in adds.sysctls:
        short = name.removeprefix("kernel/")
        if short != name and baseline.get("sysctls") and patched.get("sysctls"):
            proofs.append(Proof("sysctl", name, *(short in facts["sysctls"] for facts in (patched, baseline))))
    for name in adds.sched_features:
        if baseline.get("features") and patched.get("features"):
            proofs.append(
                Proof("sched_feature", name, *(_has_feature(f["features"], name) for f in (patched, baseline)))
            )
    return tuple(proofs)


def _has_feature(features: Sequence[str], name: str) -> bool:
    return name in features or f"NO_{name}" in features


def _symbols(path: Path) -> frozenset[str]:
    return frozenset(line.rsplit(" ", 1)[-1] for line in path.read_text().splitlines())


def _has_string(path: Path, text: str) -> bool:
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return data.find(b"\0" + text.encode() + b"\0") >= 0
