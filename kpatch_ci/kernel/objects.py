# SPDX-License-Identifier: GPL-2.0-or-later
"""Which object files of a patched kernel differ from the baseline's, and in which sections."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kpatch_ci.kernel.elf import BadElf, differing_sections

MAX_BYTES = 64 * 1024 * 1024
"""An object larger than this is said to differ, and not looked into."""
LINES = "__bug_table"
"""Where WARN() and BUG() keep the numbers of their lines."""
_MADE_OF_OTHERS = ("vmlinux.o", ".tmp_", ".vmlinux")
NEW, UNREADABLE, NAMES = "new", "unreadable", "names or relocations"


def differing_objects(out: Path, baseline: Path) -> dict[str, tuple[str, ...]]:
    """Object (below ``out``) -> its sections that differ from those of the same object below ``baseline``.

    In place of sections: NEW where the baseline has no such object, NAMES where only those differ, UNREADABLE.
    """
    found: dict[str, tuple[str, ...]] = {}
    for path in _objects(out):
        name = str(path.relative_to(out))
        before = baseline / name
        if not _plain(before):
            found[name] = (NEW,)
        elif not _alike(path, before):
            found[name] = _sections(path, before)
    return dict(sorted(found.items()))


def _objects(out: Path) -> Iterator[Path]:
    for path in out.rglob("*.o"):
        if not path.name.startswith(_MADE_OF_OTHERS) and _plain(path):
            yield path


def _plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _alike(one: Path, other: Path) -> bool:
    """Same bytes. An object that was copied from the baseline and not compiled again has its time stamp too."""
    first, second = one.stat(), other.stat()
    if first.st_size != second.st_size:
        return False
    if first.st_mtime_ns == second.st_mtime_ns:
        return True
    return first.st_size <= MAX_BYTES and one.read_bytes() == other.read_bytes()


def _sections(one: Path, other: Path) -> tuple[str, ...]:
    if max(one.stat().st_size, other.stat().st_size) > MAX_BYTES:
        return (UNREADABLE,)
    try:
        return differing_sections(one.read_bytes(), other.read_bytes()) or (NAMES,)
    except BadElf:
        return (UNREADABLE,)
