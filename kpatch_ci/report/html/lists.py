# SPDX-License-Identifier: GPL-2.0-or-later
"""What the page lists: one line each."""

from __future__ import annotations

from collections.abc import Iterable

from kpatch_ci.model.status import Status
from kpatch_ci.report.checks import each_line, finding_line, patch_name, warning_line
from kpatch_ci.report.parts import CheckDoc, EachDoc, WarningDoc
from kpatch_ci.report.proofs import added, differing, proven
from kpatch_ci.report.schema import ArchDoc


def warning_lines(found: Iterable[WarningDoc]) -> list[str]:
    """Compiler messages as the compiler writes them."""
    return [warning_line(w) for w in found]


def finding_lines(check: CheckDoc) -> list[str]:
    """All that a checker newly says."""
    return [finding_line(f) for f in check.findings]


def proof_lines(arch: ArchDoc) -> list[str]:
    """What was looked up in both images, and what came of it."""
    lines = [f"{p.kind} {p.name}: {proven(p)}" for p in arch.proofs if not p.derived]
    extra = (("the patch adds", added(arch)), ("objects", differing(arch)))
    return lines + [f"{name}: {text}" for name, text in extra if text]


def each_lines(each: EachDoc | None) -> list[str]:
    """A build after every patch: how it went, then a line a patch and one for each error and new warning."""
    if each is None:
        return []
    lines = [each_line(each)]
    for patch in each.patches:
        said = "builds" if patch.status is Status.PASSED else f"{patch.status}: {patch.reason}"
        lines.append(f"{patch_name(patch, each)}: {said}")
        lines += [f"    {line}" for line in warning_lines([*patch.errors, *patch.new_warnings])]
    return lines


def miss_lines(arch: ArchDoc) -> list[str]:
    """Symbols that are not in an arm's final .config as asked."""
    arms = (("baseline", arch.build.baseline), ("patched", arch.build.patched))
    return [f"{arm}: {m.symbol}={m.wanted} ({m.where}) is {m.got}: {m.reason}" for arm, b in arms for m in b.misses]
