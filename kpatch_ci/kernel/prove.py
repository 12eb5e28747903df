# SPDX-License-Identifier: GPL-2.0-or-later
"""Proof that a series is in the image: what it adds is looked up in both arms' kernels."""

from __future__ import annotations

import contextlib
import mmap
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from kpatch_ci.kernel.additions import Addition, literal_bytes
from kpatch_ci.kernel.elf import BadElf, defined_symbols
from kpatch_ci.model.build import Proof
from kpatch_ci.model.series import Adds


def prove(adds: Adds, baseline: Path, patched: Path) -> tuple[Proof, ...]:
    """Look up ``adds`` in two build artifacts (directories that hold ``vmlinux``, ``System.map`` and modules).

    Symbols are names in System.map or of a module. The last part of a sysctl's path and a feature's name are whole C
    strings in vmlinux or a module.
    """
    patched_arm, baseline_arm = _Kernel(patched), _Kernel(baseline)
    proofs = [Proof("symbol", s, s in patched_arm.symbols, s in baseline_arm.symbols) for s in adds.symbols]
    strings = [("sysctl", s, s.rsplit("/", 1)[-1]) for s in adds.sysctls]
    strings += [("sched_feature", s, s) for s in adds.sched_features]
    for kind, name, text in strings:
        proofs.append(Proof(kind, name, patched_arm.holds(_whole(text)), baseline_arm.holds(_whole(text))))
    return tuple(proofs)


def prove_derived(added: Sequence[Addition], baseline: Path, patched: Path) -> tuple[Proof, ...]:
    """Look up what a patch was seen to add. Not to find it is no fault: each such proof says what may be the reason."""
    patched_arm, baseline_arm = _Kernel(patched), _Kernel(baseline)
    return tuple(_derived(one, _has(patched_arm, one), _has(baseline_arm, one)) for one in added)


def _derived(one: Addition, in_patched: bool, in_baseline: bool) -> Proof:
    why = ""
    if in_baseline:
        why = "in the baseline too: moved here, or another of that name"
    elif not in_patched:
        why = _ABSENT.get(one.kind, "its code is not compiled here, or nothing refers to it")
        why = "static: inlined, not compiled here, or unused" if one.static else why
    return Proof(one.kind, one.name, in_patched, in_baseline, derived=True, why=why)


_ABSENT = {"string": "compiled out, in a macro that is not used, or composed of others"}


def _has(arm: _Kernel, one: Addition) -> bool:
    match one.kind:
        case "function" | "variable":
            return one.name in arm.bare_symbols
        case "syscall":
            return any(symbol.endswith(f"_sys_{one.name}") for symbol in arm.symbols)
        case "parameter":
            return f"__param_{one.name}" in arm.symbols
        case "string":
            return arm.holds(literal_bytes(one.name))
    return arm.holds(_whole(one.name))


class _Kernel:
    """One arm's image and modules, read when they are asked for."""

    def __init__(self, artifact: Path) -> None:
        self._artifact = artifact
        self._files = [artifact / "vmlinux", *sorted((artifact / "modules").glob("*.ko"))]

    @cached_property
    def symbols(self) -> frozenset[str]:
        """Names of the image and its modules."""
        found = set(_symbols(self._artifact / "System.map"))
        for module in self._files[1:]:
            with contextlib.suppress(BadElf):
                found |= defined_symbols(module.read_bytes())
        return frozenset(found)

    @cached_property
    def bare_symbols(self) -> frozenset[str]:
        """The same without what the compiler put behind them: ``.isra.0``, ``.part.0``, ``.constprop.0``."""
        return frozenset(name.split(".", 1)[0] for name in self.symbols if name[:1] != ".")

    def holds(self, text: bytes) -> bool:
        """Whether the image or a module holds these bytes."""
        return any(_has_bytes(path, text) for path in self._files)


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
            proofs.append(Proof("sysctl", name, short in patched["sysctls"], short in baseline["sysctls"]))
    for name in adds.sched_features:
        if baseline.get("features") and patched.get("features"):
            there = [_has_feature(facts["features"], name) for facts in (patched, baseline)]
            proofs.append(Proof("sched_feature", name, there[0], there[1]))
    return tuple(proofs)


def _has_feature(features: Sequence[str], name: str) -> bool:
    return name in features or f"NO_{name}" in features


def _symbols(path: Path) -> frozenset[str]:
    return frozenset(line.rsplit(" ", 1)[-1] for line in path.read_text().splitlines())


def _whole(text: str) -> bytes:
    return b"\0" + text.encode() + b"\0"


def _has_bytes(path: Path, text: bytes) -> bool:
    if not path.stat().st_size:
        return False
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return data.find(text) >= 0
