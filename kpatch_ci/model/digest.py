# SPDX-License-Identifier: GPL-2.0-or-later
"""Digests: sha256 of canonical JSON, and of files."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path


def canonical(value: object) -> bytes:
    """The one JSON text of ``value``: sorted keys, no spaces, no NaN. Dataclasses must be turned into dicts before."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, default=_plain).encode()


def _plain(value: object) -> object:
    if isinstance(value, Path):
        raise TypeError(f"a path does not go into a digest: {value}")
    if isinstance(value, frozenset | set):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} does not go into a digest")


def digest(value: object) -> str:
    """sha256 (hex) of the canonical JSON of ``value``."""
    return hashlib.sha256(canonical(value)).hexdigest()


def file_digest(path: Path) -> str:
    """sha256 (hex) of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
