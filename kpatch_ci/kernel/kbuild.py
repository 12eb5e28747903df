# SPDX-License-Identifier: GPL-2.0-or-later
"""What Kbuild's Makefiles say of a source file: which symbols it takes to compile it. Told before anything is built.

Only what is plain in them is read: ``obj-$(CONFIG_X) += a.o``, ``a-objs := b.o c.o``, ``obj-y += dir/``. Of a file that is
included by another, or that stands below an ``ifdef``, nothing is said: what the build then finds is what counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

Reader = Callable[[str], str | None]
"""A file of the tree by its path; None where there is none."""

_ENTRY = re.compile(r"^([\w.-]+?)-(y|m|objs|\$\(CONFIG_(\w+)\))\s*[:+]?=\s*(.*)$")
_PREFIXED = re.compile(r"\$\(addprefix\s+([^,\s]+)\s*,([^()]*)\)")
_LISTS = frozenset({"obj", "lib", "core", "drivers", "libs"})
_DEEP = 8
_OPENS, _CLOSES = ("ifdef", "ifndef", "ifeq", "ifneq"), "endif"

Symbols = frozenset[str]


@dataclass(frozen=True, slots=True)
class Entry:
    """One word of a Kbuild list: ``word`` goes into ``target`` where ``symbol`` (empty: always) is on."""

    target: str
    symbol: str
    word: str
    sure: bool
    """Not below an ifdef."""


@dataclass(frozen=True, slots=True)
class NotBuilt:
    """A source file that a configuration does not compile: each of ``ways`` lists the symbols that are off."""

    path: str
    ways: tuple[tuple[str, ...], ...]

    @property
    def missing(self) -> tuple[str, ...]:
        """The symbols of the shortest way."""
        return min(self.ways, key=len)


def not_built(paths: Iterable[str], read: Reader, config: Mapping[str, str]) -> tuple[NotBuilt, ...]:
    """The C and assembler files of ``paths`` that Kbuild does not compile under ``config`` (symbol -> value)."""
    found = []
    for path in paths:
        ways = conditions(path, read) if path.endswith((".c", ".S")) else None
        if not ways:
            continue
        off = [tuple(sorted(s for s in way if config.get(s, "n") not in ("y", "m"))) for way in ways]
        if all(off):
            found.append(NotBuilt(path, tuple(dict.fromkeys(off))))
    return tuple(found)


def conditions(path: str, read: Reader) -> tuple[Symbols, ...] | None:
    """Ways to have a file compiled, each the symbols that must be on; None where the Makefiles do not tell."""
    source = PurePosixPath(path)
    folder = _nearest(source.parent, read)
    if folder is None:
        return None
    entries = tuple(_entries(_makefile(folder, read) or ""))
    name = str(source.relative_to(folder).with_suffix(".o"))
    own = _ways(name, entries, 0)
    above = _folder(folder, read)
    if own is None or above is None:
        return None
    return tuple(dict.fromkeys(a | b for a in own for b in above))


def _makefile(folder: PurePosixPath, read: Reader) -> str | None:
    return read(str(folder / "Kbuild")) or read(str(folder / "Makefile"))


def _nearest(folder: PurePosixPath, read: Reader) -> PurePosixPath | None:
    """The folder itself or the nearest above that has a Makefile; a file at the very top is none of Kbuild's lists."""
    for place in (folder, *folder.parents):
        if str(place) != "." and _makefile(place, read) is not None:
            return place
    return None


def _folder(folder: PurePosixPath, read: Reader) -> tuple[Symbols, ...] | None:
    """What it takes that Kbuild goes into a folder. Those that the top Makefile names are always entered."""
    if len(folder.parts) <= (2 if folder.parts[0] == "arch" else 1):
        return (frozenset(),)
    parent = _nearest(folder.parent, read)
    if parent is None:
        return None
    entries = tuple(_entries(_makefile(parent, read) or ""))
    own = _ways(f"{folder.relative_to(parent)}/", entries, 0)
    above = _folder(parent, read)
    return None if own is None or above is None else tuple(dict.fromkeys(a | b for a in own for b in above))


def _ways(word: str, entries: tuple[Entry, ...], depth: int) -> tuple[Symbols, ...] | None:
    """Ways from a word to one of Kbuild's own lists, through the composite objects that it is part of."""
    hits = [entry for entry in entries if entry.word == word]
    if not hits or depth > _DEEP or not all(entry.sure for entry in hits):
        return None
    ways: list[Symbols] = []
    for hit in hits:
        here: Symbols = frozenset({hit.symbol} if hit.symbol else ())
        if hit.target in _LISTS:
            ways.append(here)
            continue
        further = _ways(f"{hit.target}.o", entries, depth + 1)
        if further is None:
            return None
        ways += [here | way for way in further]
    return tuple(ways)


def _entries(makefile: str) -> Iterator[Entry]:
    depth = 0
    for line in makefile.replace("\\\n", " ").splitlines():
        text = line.split("#", 1)[0].strip()
        first = re.split(r"[\s(]", text, maxsplit=1)[0]
        if first in _OPENS:
            depth += 1
        elif first == _CLOSES:
            depth -= 1
        elif match := _ENTRY.match(text):
            target, _, symbol, words = match.groups()
            for word in _PREFIXED.sub(_prefixed, words).split():
                yield Entry(target, symbol or "", word, depth == 0)


def _prefixed(match: re.Match[str]) -> str:
    return " ".join(match[1] + word for word in match[2].split())
