# SPDX-License-Identifier: GPL-2.0-or-later
"""The diffstat of a mail: a second witness of what its diff holds, so that a hunk that got lost on the way is missed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_TOTAL = re.compile(rb"^ (\d+) files? changed(?:, (\d+) insertions?\(\+\))?(?:, (\d+) deletions?\(-\))?[ \t]*\r?\n?$")
_FILE = re.compile(rb"^ (\S.*?) +\| +(\d+|Bin\b)")


@dataclass(frozen=True, slots=True)
class Diffstat:
    """Files changed, lines added, lines removed."""

    files: int
    added: int
    removed: int
    names: tuple[str, ...] = ()
    """Names that it shows whole (git shortens long ones, and writes a rename with =>)."""

    def __str__(self) -> str:
        return f"{self.files} file(s), +{self.added} -{self.removed}"

    def same(self, other: Diffstat) -> bool:
        """Whether the three totals are the same."""
        return (self.files, self.added, self.removed) == (other.files, other.added, other.removed)


def find_diffstat(lines: Sequence[bytes]) -> Diffstat | None:
    """The last diffstat among some lines (those before a diff), None where its line of totals is not there."""
    for index in range(len(lines) - 1, -1, -1):
        if match := _TOTAL.match(lines[index]):
            files, added, removed = (int(number or 0) for number in match.groups())
            return Diffstat(files, added, removed, _names(lines[:index]))
    return None


def mismatch(said: Diffstat, found: Diffstat, paths: Sequence[str]) -> str:
    """What to tell where a diffstat and the diff below it differ; empty where they do not."""
    if said.same(found):
        return ""
    lost = [name for name in said.names if name not in paths]
    named = f"; not in the diff: {', '.join(lost)}" if lost else ""
    return f"the diffstat says {said}, the diff has {found}{named}: part of it may be lost, or it was edited"


def unfit(above: Sequence[bytes], changes: Mapping[str, int]) -> str:
    """What to tell of a diffstat that lost its line of totals; ``changes``: lines added and removed of each path.

    Only names that it shows whole count.
    """
    said = {m.group(1).decode(errors="replace"): m.group(2) for line in above if (m := _FILE.match(line))}
    wrong = [
        name
        for name, count in said.items()
        if _is_whole(name) and count != b"Bin" and int(count) != changes.get(name, -1)
    ]
    if not wrong:
        return ""
    return f"the diffstat does not fit the diff in {', '.join(wrong)}: part of it may be lost, or it was edited"


def _is_whole(name: str) -> bool:
    return "=>" not in name and not name.startswith("...")


def _names(lines: Sequence[bytes]) -> tuple[str, ...]:
    names: list[str] = []
    for line in reversed(lines):
        match = _FILE.match(line)
        if match is None:
            break
        names.append(match.group(1).decode(errors="replace"))
    return tuple(name for name in reversed(names) if _is_whole(name))
