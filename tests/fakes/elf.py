# SPDX-License-Identifier: GPL-2.0-or-later
"""Small 64-bit ELF objects, made by hand."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

ALLOC = 2


def elf(loaded: Mapping[str, bytes], other: Mapping[str, bytes] | None = None, symbols: Sequence[str] = ()) -> bytes:
    """An object with ``loaded`` sections, ``other`` ones, and a symbol table that defines ``symbols``."""
    texts = b"\0" + b"".join(name.encode() + b"\0" for name in symbols)
    rows: list[tuple[str, int, int, int, bytes]] = [("", 0, 0, 0, b"")]
    rows += [(name, 1, ALLOC, 0, data) for name, data in loaded.items()]
    rows += [(name, 1, 0, 0, data) for name, data in (other or {}).items()]
    strtab = len(rows)
    rows.append((".strtab", 3, 0, 0, texts))
    table = b"".join(struct.pack("<IBBHQQ", texts.index(f"\0{name}\0".encode()) + 1, 0, 0, 1, 0, 0) for name in symbols)
    rows.append((".symtab", 2, 0, strtab, table))
    names = b"\0" + b"".join(row[0].encode() + b"\0" for row in rows[1:]) + b".shstrtab\0"
    rows.append((".shstrtab", 3, 0, 0, names))
    body, headers = b"", b""
    for name, kind, flags, link, data in rows:
        at = names.index(name.encode() + b"\0") if name else 0
        headers += struct.pack("<IIQQQQIIQQ", at, kind, flags, 0, 64 + len(body), len(data), link, 0, 1, 0)
        body += data
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    shape = (1, 62, 1, 0, 0, 64 + len(body), 0, 64, 0, 0, 64, len(rows), len(rows) - 1)
    return struct.pack("<16sHHIQQQIHHHHHH", ident, *shape) + body + headers
