# SPDX-License-Identifier: GPL-2.0-or-later
"""Where everything that outlives a run is kept, and the locks between processes that share it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kpatch_ci.store.atomic import disk_errors


def cache_root() -> Path:
    """KPATCH_CI_CACHE, else XDG_CACHE_HOME/kpatch-ci, else ~/.cache/kpatch-ci."""
    chosen = os.environ.get("KPATCH_CI_CACHE")
    if chosen:
        return Path(chosen).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache").absolute() / "kpatch-ci"


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on ``path``.lock; the kernel drops it when the holder dies, however it dies."""
    with disk_errors(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path.with_name(path.name + ".lock"), os.O_CREAT | os.O_RDWR, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


IN_USE = "in-use.lock"


def use_cache(root: Path) -> int:
    """Mark the cache as in use until this process ends, and return the descriptor that holds the mark.

    Whoever is alone first sweeps away what a killed process left half-made. Waits while `clean` deletes.
    """
    with disk_errors(root):
        root.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(root / IN_USE, os.O_CREAT | os.O_RDWR, 0o644)
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _sweep(root)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


def cache_is_used(root: Path) -> bool:
    """Whether any process has the cache in use."""
    try:
        descriptor = os.open(root / IN_USE, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _sweep(root: Path) -> None:
    for pattern in ("store/*/*/.new-*", "src/.new-*", "src/.index-*", "work/*"):
        for path in root.glob(pattern):
            shutil.rmtree(path, ignore_errors=True)
