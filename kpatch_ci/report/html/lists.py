# SPDX-License-Identifier: GPL-2.0-or-later
"""What the page lists: one line each."""

from __future__ import annotations

from collections.abc import Iterable

from kpatch_ci.report.schema import ArchDoc, WarningDoc


def warning_lines(found: Iterable[WarningDoc]) -> list[str]:
    """Compiler messages as the compiler writes them."""
    return [f"{w.path}:{w.line}: {w.severity}: {w.text}" + (f" [{w.option}]" if w.option else "") for w in found]


def proof_lines(arch: ArchDoc) -> list[str]:
    """What was looked up in both images, and what came of it."""
    return [f"{p.kind} {p.name}: {'in patched only' if p.holds else 'NOT PROVEN'}" for p in arch.proofs]


def miss_lines(arch: ArchDoc) -> list[str]:
    """Symbols that are not in an arm's final .config as asked."""
    arms = (("baseline", arch.build.baseline), ("patched", arch.build.patched))
    return [f"{arm}: {m.symbol}={m.wanted} ({m.where}) is {m.got}: {m.reason}" for arm, b in arms for m in b.misses]
