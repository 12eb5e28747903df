# SPDX-License-Identifier: GPL-2.0-or-later
"""W=1 and sparse: the objects that a series touches, checked in the tree before it and in the tree after it.

Both runs go on one copy of the baseline's objects (``kernel/chain.py``), with Kbuild's own single targets. What both
say is the tree's, and what the build says without them is told there; the rest is the series'.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kpatch_ci.debian.sparse import Sparse
from kpatch_ci.kernel.build import Builder, BuildRequest
from kpatch_ci.kernel.chain import KEEP_GOING, Chain, open_chain
from kpatch_ci.kernel.diagnostics import compiled_objects, diagnostics, failure_tail, introduced
from kpatch_ci.kernel.make import explain
from kpatch_ci.kernel.outputs import OddOutput, read_small
from kpatch_ci.model.build import BuildResult, Diagnostic
from kpatch_ci.model.digest import digest
from kpatch_ci.model.each import CheckResult, Finding
from kpatch_ci.model.status import Status

KIND = "lint"
VERSION = 2
_CHECKED = re.compile(r"^  CHECK +(?P<source>\S+)\.c$", re.M)
_MORE = re.compile(r"^(?P<place>\S+:\d+:\d+):  +(?P<text>\S.*)$")
_FIRST = re.compile(r"^(?P<place>\S+:\d+:\d+): (?:warning|error): ")
_SOURCES = (".c", ".S")


@dataclass(frozen=True, slots=True)
class Checker:
    """How make is told to check. ``sources``: what it can check, by suffix."""

    name: str
    arguments: tuple[str, ...]
    sources: tuple[str, ...]
    fingerprint: str = ""
    mounts: tuple[tuple[Path, str], ...] = ()

    def checked(self, log: str) -> tuple[str, ...]:
        """Objects that were checked, without their ``.o``."""
        if self.mounts:
            return tuple(m["source"].removeprefix("/src/") for m in _CHECKED.finditer(log))
        return compiled_objects(log)


W1 = Checker("W=1", ("W=1",), _SOURCES)


def sparse_checker(sparse: Sparse) -> Checker:
    """sparse, run on every source (C=2: also on those that need not be compiled)."""
    return Checker("sparse", ("C=2", f"CHECK={sparse.program}"), (".c",), sparse.fingerprint, (sparse.mount,))


@dataclass(frozen=True, slots=True)
class Pair:
    """The builds of the tree before the series and of the patched arm, and the patched arm's request."""

    request: BuildRequest
    before: BuildResult
    after: BuildResult

    @property
    def objects(self) -> tuple[str, ...]:
        """What the series made to be compiled again (of the kernel, not of our modules)."""
        log = self.after.log.read_text(errors="replace") if self.after.log and self.after.log.is_file() else ""
        return tuple(dict.fromkeys(o for o in compiled_objects(log) if not o.startswith("/")))


def find_lint(builder: Builder, pair: Pair, checker: Checker) -> CheckResult | None:
    """What was found before from the same inputs."""
    key = _key(builder, pair, checker)
    artifact = builder.store.get(KIND, key)
    return None if artifact is None else _result(checker, artifact.meta, key, cached=True)


def lint(builder: Builder, pair: Pair, checker: Checker) -> CheckResult:
    """New findings of one checker. Raises InfrastructureError where the machine fails."""
    began = time.monotonic()
    key = _key(builder, pair, checker)
    with open_chain(builder, pair.request.baseline(), f"lint-{pair.request.arch.name}-{key[:16]}") as chain:
        known = find_lint(builder, pair, checker)  # another process may have found it while this one waited
        if known:
            return known
        before = _said(chain, pair.before.tree_id, pair.objects, checker)
        after = _said(chain, pair.after.tree_id, pair.objects, checker)
    seconds = round(time.monotonic() - began, 2)
    wanted = _wanted(pair.objects, after.there)
    unchecked = tuple(sorted(set(wanted) - set(after.checked)))
    if wanted and len(unchecked) == len(wanted):
        reason = after.reason or "make checked nothing of what it was asked for"
        tail = failure_tail(after.log)
        return CheckResult(checker.name, Status.ERROR, (), 0, unchecked, seconds, reason=reason, log_tail=tail, key=key)
    new = introduced(after.found, (*before.found, *pair.after.warnings))
    meta = {
        "findings": [[d.path, d.line, d.severity, d.option, d.text, d.context] for d in new],
        "checked": len(wanted) - len(unchecked),
        "unchecked": unchecked,
        "seconds": seconds,
    }
    builder.store.put(KIND, key, lambda _: meta)
    return _result(checker, meta, key, cached=False)


def _key(builder: Builder, pair: Pair, checker: Checker) -> str:
    arms = [replace(pair.request, tree_id=b.tree_id).key(builder.tools) for b in (pair.before, pair.after)]
    return digest([KIND, VERSION, checker.name, list(checker.arguments), checker.fingerprint, arms, pair.objects])


def _result(checker: Checker, meta: Mapping[str, Any], key: str, *, cached: bool) -> CheckResult:
    return CheckResult(
        checker=checker.name,
        status=Status.PASSED,
        findings=tuple(Finding(p, n, severity, o, text, c) for p, n, severity, o, text, c in meta["findings"]),
        checked=meta["checked"],
        unchecked=tuple(meta["unchecked"]),
        seconds=meta["seconds"],
        cached=cached,
        key=key,
    )


@dataclass(frozen=True, slots=True)
class _Said:
    found: tuple[Diagnostic, ...]
    checked: tuple[str, ...]
    there: tuple[str, ...]
    """Objects that have a source that the checker can check."""
    log: str
    reason: str


def _said(chain: Chain, tree_id: str, objects: Sequence[str], checker: Checker) -> _Said:
    failed = chain.prepare(tree_id)
    there = tuple(o for o in objects if any((chain.source / f"{o}{s}").is_file() for s in checker.sources))
    if failed:
        return _Said((), (), there, failed.tail, failed.reason)
    if not there:
        return _Said((), (), (), "", "")
    done, log = chain.run([KEEP_GOING, *checker.arguments, *(f"{o}.o" for o in there)], checker.mounts)
    found = sparse_diagnostics(log, chain.source) if checker.mounts else diagnostics(log)
    return _Said(found, checker.checked(log), there, log, "" if done.ok else explain(done))


def _wanted(objects: Sequence[str], there: Sequence[str]) -> tuple[str, ...]:
    return tuple(o for o in objects if o in set(there))


def sparse_diagnostics(log: str, source: Path) -> tuple[Diagnostic, ...]:
    """sparse's messages, each with the lines that go on from it, and with its line of source: its texts are few and alike.

    gcc compiles in the same run; its messages are those that name an option.
    """
    rows: list[str] = []
    for row in log.splitlines():
        first = _FIRST.match(rows[-1]) if rows else None
        more = _MORE.match(row)
        if first and more and more["place"].partition(":")[0] == first["place"].partition(":")[0]:
            rows[-1] += f"; {' '.join(more['text'].split())}"
        else:
            rows.append(row)
    files: dict[str, list[str]] = {}
    found = {d.identity: d for d in _in_place("\n".join(rows), source, files)}
    return tuple(found.values())


def _in_place(log: str, source: Path, files: dict[str, list[str]]) -> Iterable[Diagnostic]:
    for row in log.splitlines():
        for d in diagnostics(row):
            if d.option:
                continue
            if d.path not in files:
                files[d.path] = _lines(source, d.path)
            lines = files[d.path]
            yield replace(d, context=" ".join(lines[d.line - 1].split()) if 0 < d.line <= len(lines) else "")


def _lines(source: Path, path: str) -> list[str]:
    """Lines of a file of the tree: of nothing else, whatever a message or a link in a patched tree says."""
    try:
        return read_small(source, path).splitlines()
    except (OddOutput, OSError, ValueError):
        return []
