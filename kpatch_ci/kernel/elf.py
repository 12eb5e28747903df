# SPDX-License-Identifier: GPL-2.0-or-later
"""As much of ELF (64-bit, little-endian) as it takes to tell two objects apart, and to name a module's symbols.

An object may come from a hostile build: whatever is wrong with it makes a BadElf, never another exception.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_ALLOC = 0x2
_SYMTAB, _NOBITS = 2, 8
MAX_SECTIONS = 65_536


class BadElf(Exception):
    """No object that can be read."""


@dataclass(frozen=True, slots=True)
class Section:
    """One section. ``data`` is empty where it occupies no bytes of the file; ``size`` is what it occupies in memory."""

    name: str
    kind: int
    flags: int
    link: int
    size: int
    data: bytes

    @property
    def loaded(self) -> bool:
        """Whether it is part of the running kernel."""
        return bool(self.flags & _ALLOC)


def sections(data: bytes) -> tuple[Section, ...]:
    """Sections of an object. Raises BadElf."""
    try:
        header = _HEADER.unpack_from(data)
        if not header[0].startswith(b"\x7fELF\x02\x01"):
            raise BadElf("no 64-bit little-endian ELF object")
        offset, size, count, names = header[6], header[11], header[12], header[13]
        if size != _SECTION.size or count > MAX_SECTIONS or offset + size * count > len(data):
            raise BadElf("a section table that is not in the file")
        rows = [_SECTION.unpack_from(data, offset + size * n) for n in range(count)]
        table = _bytes(data, rows[names]) if names < len(rows) else b""
        return tuple(Section(_text(table, r[0]), r[1], r[2], r[6], r[5], _bytes(data, r)) for r in rows)
    except struct.error as error:
        raise BadElf(str(error)) from error


def defined_symbols(data: bytes) -> frozenset[str]:
    """Names that an object defines. Raises BadElf."""
    found = sections(data)
    names: set[str] = set()
    for table in (s for s in found if s.kind == _SYMTAB):
        if table.link >= len(found) or len(table.data) % _SYMBOL.size:
            raise BadElf("a symbol table without its names")
        texts = found[table.link].data
        names |= {_text(texts, row[0]) for row in _SYMBOL.iter_unpack(table.data) if row[3] and row[0]}
    return frozenset(names)


def differing_sections(one: bytes, other: bytes) -> tuple[str, ...]:
    """Sections of the running kernel in which two objects differ, sorted; empty where only names or relocations do. Raises BadElf."""
    first, second = (_loaded(data) for data in (one, other))
    return tuple(sorted(name for name in {*first, *second} if first.get(name) != second.get(name)))


def _loaded(data: bytes) -> dict[str, list[tuple[int, bytes]]]:
    found: dict[str, list[tuple[int, bytes]]] = {}
    for section in sections(data):
        if section.loaded:
            found.setdefault(section.name, []).append((section.size, section.data))
    return found


def _bytes(data: bytes, row: tuple[int, ...]) -> bytes:
    if row[1] == _NOBITS:
        return b""
    if row[4] + row[5] > len(data):
        raise BadElf("a section that is not in the file")
    return data[row[4] : row[4] + row[5]]


def _text(table: bytes, offset: int) -> str:
    end = table.find(b"\0", offset)
    return table[offset : end if end >= 0 else len(table)].decode(errors="replace")
