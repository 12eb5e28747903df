# SPDX-License-Identifier: GPL-2.0-or-later
"""Sizes as dd writes them."""

from __future__ import annotations

import re

MIB = 1 << 20
_UNITS = {"": 1, "k": 1 << 10, "m": MIB, "g": 1 << 30}


def size_bytes(size: str) -> int:
    """Bytes of a dd-style size; ValueError unless it is digits and at most one of k, M, G (1024-based)."""
    match = re.fullmatch(r"([1-9][0-9]{0,11})([kKmMgG]?)", size)
    if not match:
        raise ValueError(f"{size!r} is no size")
    return int(match[1]) * _UNITS[match[2].lower()]
