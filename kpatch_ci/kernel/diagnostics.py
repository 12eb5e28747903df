# SPDX-License-Identifier: GPL-2.0-or-later
"""Build logs read: compilers' messages, object files compiled, and what failed. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from posixpath import splitext

from kpatch_ci.model.build import Diagnostic, Identity

_MESSAGE = re.compile(
    r"^(?P<path>[^\s:][^:\n]*):(?P<line>\d+):(?:\d+:)? (?:fatal )?(?P<severity>warning|error): (?P<text>.*?)(?: \[(?P<option>-[^\]]+)\])?$"
)
_KBUILD = re.compile(r"^(?P<severity>WARNING|ERROR): (?P<text>modpost: .*|.*undefined!)$")
_OBJTOOL = re.compile(r"^(?P<path>[^\s:]+\.o): (?P<severity>warning|error): (?P<text>objtool: .*)$")
_WHERE = re.compile(
    r"^(?P<path>[^\s:][^:\n]*): (?:In (?:member )?function ['\u2018](?P<function>[^'\u2019]+)['\u2019]|At top level)"
)
_INLINED = re.compile(r"^    inlined from ['\u2018](?P<function>[^'\u2019]+)['\u2019]")
_OBJECT = re.compile(r"^  (?:CC|AS)(?: \[M\])? +(?P<object>\S+)\.o$", re.M)
_PREFIX = re.compile(r"^(?:/src/|(?:\.\./)+src/|\./)")
_OFFSET = re.compile(r"\+0x[0-9a-f]+\b")
LINKED = ("", "vmlinux.o")
"""Paths of what is said of the kernel as a whole, each time that it is linked."""


def diagnostics(log: str) -> tuple[Diagnostic, ...]:
    """Every distinct warning and error of a build log, in order; paths are relative to the kernel tree."""
    found: dict[Identity, Diagnostic] = {}
    functions: dict[str, str] = {}
    last = ""
    for row in log.splitlines():
        if where := _WHERE.match(row):
            last = where["path"]
            functions[last] = where["function"] or ""
        elif inlined := _INLINED.match(row):
            functions[last] = f"{functions.get(last, '')} in {inlined['function']}"
        elif (item := _diagnostic(row, functions)) is not None:
            found.setdefault(item.identity, item)
    return tuple(found.values())


def _diagnostic(row: str, functions: dict[str, str]) -> Diagnostic | None:
    if m := _MESSAGE.match(row):
        path = _PREFIX.sub("", m["path"])
        context = functions.get(m["path"], "")
        return Diagnostic(path, int(m["line"]), m["severity"], m["text"], m["option"] or "", context)
    if m := _KBUILD.match(row):
        return Diagnostic("", 0, m["severity"].lower(), m["text"])
    if m := _OBJTOOL.match(row):  # its offsets are positions
        return Diagnostic(_PREFIX.sub("", m["path"]), 0, m["severity"], _OFFSET.sub("", m["text"]))
    return None


def warnings(log: str) -> tuple[Diagnostic, ...]:
    """The warnings among ``diagnostics``."""
    return tuple(d for d in diagnostics(log) if d.severity == "warning")


def errors(log: str) -> tuple[Diagnostic, ...]:
    """The errors among ``diagnostics``."""
    return tuple(d for d in diagnostics(log) if d.severity == "error")


def compiled_objects(log: str) -> tuple[str, ...]:
    """Object files that the build compiled for the target (host programs do not count), in order, without their ``.o``."""
    return tuple(m["object"] for m in _OBJECT.finditer(log))


def objects_compiled(log: str) -> int:
    """How many object files the build compiled for the target."""
    return len(compiled_objects(log))


def introduced(patched: Iterable[Diagnostic], baseline: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Warnings of the patched arm that the baseline does not have, told apart by content, not by position or count."""
    known = {d.identity for d in baseline}
    return tuple(d for d in patched if d.identity not in known)


def known_after(before: Collection[Identity], log: str, changed: Collection[str]) -> frozenset[Identity]:
    """Warnings of a tree that builds, from those of the tree which an incremental build of it started from, and that build's log.

    ``changed`` are the files in which the two trees differ. A log speaks only of what was compiled again: of the rest the
    old words stand.
    """
    said = frozenset(d.identity for d in warnings(log))
    again = set(compiled_objects(log))
    return said | {i for i in before if not _said_again(i[0], again, changed)}


def _said_again(path: str, compiled: Collection[str], changed: Collection[str]) -> bool:
    return path in LINKED or path in changed or splitext(path)[0] in compiled


def failure_tail(log: str, lines: int = 30) -> str:
    """The part of a failed build's log that says why: from the first error on, else the end."""
    rows = log.splitlines()
    for index, row in enumerate(rows):
        if re.search(r"\b(error|Error \d+|undefined reference)\b", row) and not row.startswith("  "):
            return "\n".join(rows[max(0, index - 3) : index - 3 + lines])
    return "\n".join(rows[-lines:])
