# SPDX-License-Identifier: GPL-2.0-or-later
"""Where everything that outlives a run is kept, and the locks between processes that share it."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.store.atomic import disk_errors

log = logging.getLogger(__name__)

POLL = 0.2
"""Seconds between two tries of who may be told to wait no longer."""

_held: set[Path] = set()
"""What threads of this process have locked."""


def cache_root() -> Path:
    """KPATCH_CI_CACHE, else XDG_CACHE_HOME/kpatch-ci, else ~/.cache/kpatch-ci."""
    chosen = os.environ.get("KPATCH_CI_CACHE")
    if chosen:
        return Path(chosen).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache").absolute() / "kpatch-ci"


@contextmanager
def locked(path: Path, meanwhile: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold an exclusive lock on ``path``.lock; the kernel drops it when the holder dies, however it dies.

    ``meanwhile`` is called now and then by who waits for it, and may raise: for locks that are held for long.
    """
    with disk_errors(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path.with_name(path.name + ".lock"), os.O_CREAT | os.O_RDWR, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if path not in _held:  # one of our own threads needs no announcement
                log.info("waiting for another kpatch-ci that is at work on %s", path.name)
            _wait(descriptor, meanwhile)
        _held.add(path)
        try:
            yield
        finally:
            _held.discard(path)
    finally:
        os.close(descriptor)


def _wait(descriptor: int, meanwhile: Callable[[], None] | None) -> None:
    if meanwhile is None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        return
    while True:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        meanwhile()
        time.sleep(POLL)


IN_USE = "in-use.lock"
LEFTOVERS = (
    "store/*/*/.new-*", "src/.new-*", "src/.index-*", "src/patched-*", "out/.new-*", "out/patched-*", "work/*", "*/*.apt", "trees/*.deb",
    "guest/.*", "store/source/*/*", "store/changes/*/*",
)  # fmt: skip
"""What a killed process leaves half-made; patched trees and objects, for the next edit starts from the baseline's; and kernel source
that was packed for other machines."""


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


@contextmanager
def alone_with_cache(root: Path) -> Iterator[None]:
    """Keep every other process out of the cache meanwhile. Raises InfrastructureError when one is using it."""
    root.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(root / IN_USE, os.O_CREAT | os.O_RDWR, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise InfrastructureError(
            "another kpatch-ci is using the cache", hint="wait for it, or end it, then clean"
        ) from error
    finally:
        os.close(descriptor)


def _sweep(root: Path) -> None:
    for pattern in LEFTOVERS:
        for path in root.glob(pattern):
            if path.suffix != ".lock":
                shutil.rmtree(path, ignore_errors=True)
