# SPDX-License-Identifier: GPL-2.0-or-later
"""Kconfig fragments: merged, and every requested symbol looked up in the final .config.

A fragment is the field's own format: ``CONFIG_X=y``, ``CONFIG_X=m``, ``CONFIG_X="text"``, ``# CONFIG_X is not set``. The base is
allnoconfig; a later fragment overrides an earlier one, and a symbol that two fragments want differently is said aloud.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import git

from kpatch_ci.model.build import ConfigMiss
from kpatch_ci.model.errors import UserError, UserErrors

_SET = re.compile(r"^CONFIG_(\w+)=(.+)$")
_UNSET = re.compile(r"^# CONFIG_(\w+) is not set$")


_RANGE = re.compile(r"^# (since|before) (\d+\.\d+):")
"""``# since 5.16: why`` or ``# before 6.10: why`` above a symbol: kernels outside of that are not asked for it."""


def version(release: str) -> tuple[int, int]:
    """``6.1.140`` -> (6, 1)."""
    found = re.match(r"(\d+)\.(\d+)", release)
    return (int(found[1]), int(found[2])) if found else (0, 0)


@dataclass(frozen=True, slots=True)
class Requested:
    """One symbol as a fragment wants it. ``value`` is ``n`` for "is not set"."""

    symbol: str
    value: str
    where: str

    @property
    def line(self) -> str:
        """The symbol in .config's own words."""
        return f"# CONFIG_{self.symbol} is not set" if self.value == "n" else f"CONFIG_{self.symbol}={self.value}"


def read_fragments(paths: Iterable[Path], release: str) -> dict[str, Requested]:
    """Symbols of all fragments together, as far as a kernel of ``release`` has them (see _RANGE).

    Raises UserErrors: missing files and lines that are no Kconfig.
    """
    wanted: dict[str, Requested] = {}
    errors: list[UserError] = []
    for path in paths:
        try:
            lines = path.read_text().splitlines()
        except FileNotFoundError:
            there = ", ".join(sorted(p.stem for p in path.parent.glob("*.config")))
            errors.append(UserError("no such kconfig fragment", where=str(path), expected=f"there are: {there}"))
            continue
        applies = True
        for number, line in enumerate(lines, start=1):
            if mark := _RANGE.match(line):
                applies = (version(release) >= version(mark[2])) == (mark[1] == "since")
                continue
            found = _SET.match(line.strip()) or _UNSET.match(line.strip())
            if found:
                value = found[2] if found.lastindex == 2 else "n"
                if applies:
                    wanted[found[1]] = Requested(found[1], value, f"{path.name}:{number}")
                applies = True
            elif line.strip() and not line.lstrip().startswith("#"):
                errors.append(
                    UserError(
                        f"no Kconfig line: {line.strip()}", where=f"{path}:{number}", expected="CONFIG_NAME=value"
                    )
                )
    if errors:
        raise UserErrors(errors)
    return wanted


def merged(wanted: Mapping[str, Requested]) -> str:
    """What KCONFIG_ALLCONFIG reads; one order, so that one set of symbols has one digest."""
    return "".join(f"{wanted[name].line}\n" for name in sorted(wanted))


def parse_config(text: str) -> dict[str, str]:
    """Symbol -> value of a .config; a symbol that "is not set" is ``n``."""
    values: dict[str, str] = {}
    for line in text.splitlines():
        if found := _SET.match(line):
            values[found[1]] = found[2]
        elif found := _UNSET.match(line):
            values[found[1]] = "n"
    return values


def check(
    wanted: Mapping[str, Requested], final: Mapping[str, str], tree: Kconfigs | None = None
) -> tuple[ConfigMiss, ...]:
    """Every requested symbol that ``final`` does not have as asked, with the reason where ``tree`` can tell it."""
    missed = []
    for name, request in sorted(wanted.items()):
        got = final.get(name, "n")
        if got != request.value:
            reason = tree.reason(name, final) if tree else ""
            missed.append(ConfigMiss(name, request.value, got, reason, request.where))
    return tuple(missed)


class Kconfigs:
    """The Kconfig files of a git tree, read only when a symbol is missing."""

    def __init__(self, repo: git.Repo, tree_id: str) -> None:
        self._repo = repo
        self._tree = tree_id

    def reason(self, symbol: str, final: Mapping[str, str]) -> str:
        """Why ``symbol`` is not as asked, in Kconfig's words."""
        try:
            hits = self._repo.git.grep("-n", "-E", f"^(menu)?config {symbol}$", self._tree, "--", "*Kconfig*")
        except git.GitCommandError:
            return "this tree has no such symbol"
        reasons = []
        for hit in str(hits).splitlines():
            _, path, number, _ = hit.split(":", 3)
            text = str(self._repo.git.show(f"{self._tree}:{path}")).splitlines()
            reasons.append(_block_reason(path, text, int(number), final))
        return "; or ".join(r for r in reasons if r) or "its dependencies are met: another symbol overrides it"


def _block_reason(path: str, lines: list[str], number: int, final: Mapping[str, str]) -> str:
    depends, prompt = [], False
    for line in lines[number:]:
        words = line.strip()
        if re.match(
            r"^(menu)?config |^endif|^endmenu|^menu |^choice|^endchoice|^source |^if ", words
        ) and not line.startswith("\t"):
            break
        if words in ("help", "---help---"):
            break
        prompt = prompt or bool(re.match(r'^(bool|tristate|string|int|hex|prompt)\s+"', words))
        if words.startswith("depends on "):
            depends.append(words.removeprefix("depends on "))
    depends += _enclosing_ifs(lines[: number - 1])
    unmet = sorted({s for d in depends for s in re.findall(r"\b[A-Z][A-Z0-9_]+\b", d) if final.get(s, "n") == "n"})
    where = f"{path}:{number}"
    if unmet:
        return f"{where} depends on {' && '.join(depends)}: not set: {', '.join(unmet)}"
    if not prompt:
        return f"{where} has no prompt: only another symbol's select can set it"
    return ""


def _enclosing_ifs(lines: list[str]) -> list[str]:
    stack: list[str] = []
    for line in lines:
        if line.startswith("if "):
            stack.append(line.removeprefix("if ").strip())
        elif line.startswith("endif") and stack:
            stack.pop()
    return stack
