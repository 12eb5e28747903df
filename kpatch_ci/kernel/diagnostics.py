# SPDX-License-Identifier: GPL-2.0-or-later
"""Build logs read: compilers' messages, object files compiled, and what failed. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kpatch_ci.model.build import Diagnostic

_MESSAGE = re.compile(
    r"^(?P<path>[^\s:][^:\n]*):(?P<line>\d+):(?:\d+:)? (?:fatal )?(?P<severity>warning|error): (?P<text>.*?)(?: \[(?P<option>-[^\]]+)\])?$",
    re.M,
)
_KBUILD = re.compile(r"^(?P<severity>WARNING|ERROR): (?P<text>modpost: .*|.*undefined!)$", re.M)
_OBJECT = re.compile(r"^  (?:CC|AS)(?: \[M\])? ", re.M)
_PREFIX = re.compile(r"^(?:/src/|(?:\.\./)+src/|\./)")


def diagnostics(log: str) -> tuple[Diagnostic, ...]:
    """Every distinct warning and error of a build log, in order; paths are relative to the kernel tree."""
    found: dict[tuple[str, str, str, str], Diagnostic] = {}
    hits = [
        (m.start(), Diagnostic(_PREFIX.sub("", m["path"]), int(m["line"]), m["severity"], m["text"], m["option"] or ""))
        for m in _MESSAGE.finditer(log)
    ]
    hits += [(m.start(), Diagnostic("", 0, m["severity"].lower(), m["text"])) for m in _KBUILD.finditer(log)]
    for _, item in sorted(hits, key=lambda h: h[0]):
        found.setdefault(item.identity, item)
    return tuple(found.values())


def warnings(log: str) -> tuple[Diagnostic, ...]:
    """The warnings among ``diagnostics``."""
    return tuple(d for d in diagnostics(log) if d.severity == "warning")


def objects_compiled(log: str) -> int:
    """Object files that the build compiled for the target (host programs do not count)."""
    return len(_OBJECT.findall(log))


def introduced(patched: Iterable[Diagnostic], baseline: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Warnings of the patched arm that the baseline does not have, told apart by content, not by position or count."""
    known = {d.identity for d in baseline}
    return tuple(d for d in patched if d.identity not in known)


def failure_tail(log: str, lines: int = 30) -> str:
    """The part of a failed build's log that says why: from the first error on, else the end."""
    rows = log.splitlines()
    for index, row in enumerate(rows):
        if re.search(r"\b(error|Error \d+|undefined reference)\b", row) and not row.startswith("  "):
            return "\n".join(rows[max(0, index - 3) : index - 3 + lines])
    return "\n".join(rows[-lines:])
