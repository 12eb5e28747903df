# SPDX-License-Identifier: GPL-2.0-or-later
"""The CPUs of a machine that does calls, shared by its guests and by make once it is asked for a build."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kpatch_ci import process
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.pipeline.slots import Slots

PATIENCE = 60.0
"""Seconds after which a guest begins without a turn: its caller waits, and a CPU too few costs it only time."""
_LOOK = 0.2


class Turns:
    """Safe for concurrent threads. Until ``share`` is called everybody has a turn at once: whoever asks counts its own slots."""

    def __init__(self, below: Path) -> None:
        self._below = below
        self._slots: Slots | None = None
        self._at_work = 0
        self._lock = threading.Lock()

    def share(self, count: int) -> Path:
        """From now on there are ``count`` turns; the pipe that make takes further ones from."""
        with self._lock:
            if self._slots is None:
                self._below.mkdir(parents=True, exist_ok=True)
                self._slots = Slots(count, self._below)
            return self._slots.path

    @contextmanager
    def one(self) -> Iterator[None]:
        """A turn. Raises InfrastructureError where everything is being ended."""
        slots = self._slots
        if slots is None:
            yield
            return
        with self._lock:
            if self._at_work == 0:
                slots.refill()  # a make that was killed gave none back
            self._at_work += 1
        mine = False
        try:
            mine = _waited(slots)
            yield
        finally:
            with self._lock:
                self._at_work -= 1
            if mine:
                slots.give()

    def close(self) -> None:
        """Remove the pipe."""
        with self._lock:
            if self._slots is not None:
                self._slots.close()
                self._slots = None


def _waited(slots: Slots) -> bool:
    """Wait for a turn; whether there was one."""
    end = time.monotonic() + PATIENCE
    while not slots.take():
        if process.is_stopping():
            raise InfrastructureError("it is being stopped")
        if time.monotonic() > end:
            return False
        slots.wait(_LOOK)
    return True
