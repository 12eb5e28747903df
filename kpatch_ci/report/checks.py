# SPDX-License-Identifier: GPL-2.0-or-later
"""Builds after every patch and checkers' findings: as JSON, and as lines that several reports show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from kpatch_ci.model.build import Diagnostic
from kpatch_ci.model.each import CheckResult, EachResult, PatchBuild
from kpatch_ci.model.status import Status
from kpatch_ci.report.clean import one_line
from kpatch_ci.report.parts import CheckDoc, EachDoc, FindingDoc, PatchBuildDoc, WarningDoc

Json = dict[str, Any]
MAX_LINES = 20
"""Findings of one checker, or warnings of one patch, that a person is shown; result.json has all."""


def each_json(each: EachResult | None, logs: Mapping[Path, str]) -> Json | None:
    """Builds after every patch as plain values."""
    if each is None:
        return None
    first = each.first_break
    return {
        "status": each.status,
        "reason": each.reason,
        "first_break": first.number if first else None,
        "patches": [_patch(p, logs) for p in each.patches],
    }


def _patch(patch: PatchBuild, logs: Mapping[Path, str]) -> Json:
    names = "number subject tree_id status seconds objects cached reason log_tail"
    return {
        **{name: getattr(patch, name) for name in names.split()},
        "new_warnings": warnings_json(patch.new_warnings),
        "errors": warnings_json(patch.errors),
        "log": logs.get(patch.log, "") if patch.log else "",
    }


def warnings_json(found: Iterable[Diagnostic]) -> list[Json]:
    """Compiler messages as plain values."""
    return [{n: getattr(d, n) for n in ("path", "line", "severity", "text", "option", "context")} for d in found]


def check_json(check: CheckResult) -> Json:
    """What a checker says as plain values."""
    names = "checker status checked seconds cached reason log_tail"
    fields = "path line severity kind text source patch"
    return {
        **{name: getattr(check, name) for name in names.split()},
        "unchecked": list(check.unchecked),
        "findings": [{name: getattr(f, name) for name in fields.split()} for f in check.findings],
    }


def each_line(each: EachDoc) -> str:
    """How it went, on one line."""
    if each.status is Status.PASSED:
        new = sum(len(p.new_warnings) for p in each.patches)
        count = len(each.patches)
        builds = "the patch builds" if count == 1 else f"every one of {count} patches builds"
        return f"{builds}; {_count(new, 'new warning')}"
    return one_line(each.reason)


def patch_name(patch: PatchBuildDoc, each: EachDoc) -> str:
    """``patch 2/5 `subject```."""
    return f"patch {patch.number}/{len(each.patches)} `{one_line(patch.subject)}`"


def patch_lines(each: EachDoc) -> Iterator[str]:
    """A line for each patch of which there is something to say, and one for each of its errors and new warnings."""
    for patch in each.patches:
        if patch.status is not Status.PASSED:
            yield f"{patch_name(patch, each)}: does not build: {one_line(patch.reason)}"
            yield from _some([f"  {warning_line(e)}" for e in patch.errors])
        elif patch.new_warnings:
            yield f"{patch_name(patch, each)}: {_count(len(patch.new_warnings), 'new warning')}"
        yield from _some([f"  {warning_line(w)}" for w in patch.new_warnings])


def warning_line(found: WarningDoc) -> str:
    """A compiler's message as the compiler writes it, with its function."""
    place = f"{found.path}:{found.line}: " if found.line else f"{found.path}: " if found.path else ""
    option = f" [{found.option}]" if found.option else ""
    function = f" (in {found.context})" if found.context else ""
    return one_line(f"{place}{found.severity}: {found.text}{option}{function}")


def check_line(check: CheckDoc) -> str:
    """What a checker says, on one line."""
    if check.status is not Status.PASSED:
        return f"{check.status}: {one_line(check.reason)}"
    unit = "patch" if check.checker == "checkpatch" else "object"
    missed = f" ({len(check.unchecked)} more could not be shown to it)" if check.unchecked else ""
    return f"{_count(len(check.findings), 'new finding')} in {_count(check.checked, unit)}{missed}"


def finding_lines(check: CheckDoc) -> Iterator[str]:
    """A line for each finding."""
    return _some([finding_line(f) for f in check.findings])


def finding_line(found: FindingDoc) -> str:
    """Place, severity, kind, text and line of one finding."""
    patch = f"patch {found.patch}: " if found.patch else ""
    place = f"{found.path}:{found.line}: " if found.line else f"{found.path}: " if found.path else ""
    kind = f" [{found.kind}]" if found.kind else ""
    source = f" | {found.source.strip()}" if found.source.strip() else ""
    return one_line(f"{patch}{place}{found.severity}: {found.text}{kind}{source}")


def all_lines(each: EachDoc | None, checks: Iterable[CheckDoc]) -> Iterator[str]:
    """Everything, for a terminal."""
    if each is not None:
        yield f"each: {each_line(each)}"
        yield from (f"  {line}" for line in patch_lines(each))
    for check in checks:
        yield f"{check.checker}: {check_line(check)}"
        yield from (f"  {line}" for line in finding_lines(check))


def _some(lines: list[str]) -> Iterator[str]:
    yield from lines[:MAX_LINES]
    if len(lines) > MAX_LINES:
        yield f"and {len(lines) - MAX_LINES} more: see result.json"


def _count(number: int, word: str) -> str:
    plural = "es" if word.endswith("ch") else "s"
    return f"{number} {word}{'' if number == 1 else plural}"
