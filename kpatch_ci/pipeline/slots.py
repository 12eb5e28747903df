# SPDX-License-Identifier: GPL-2.0-or-later
"""The run's CPU slots, shared with make.

The slots are a GNU make jobserver: a named pipe that holds one byte for each slot (GNU make manual, "POSIX Jobserver
Interaction"). A stage takes a byte while it works; a make that a stage runs takes further bytes for its parallel jobs from
the same pipe. So builds and guests together never use more than ``count`` CPUs, and leave none idle.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import tempfile
from pathlib import Path

TOKEN = b"+"


class Slots:
    """``count`` slots. A context manager: the pipe, in a directory below ``below`` [the system's], is removed at the end."""

    def __init__(self, count: int, below: Path | None = None) -> None:
        self.count = count
        self.directory = Path(tempfile.mkdtemp(prefix="kpatch-ci-jobs-", dir=below))
        self.path = self.directory / "jobserver"
        os.mkfifo(self.path)
        self._fd = os.open(self.path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        os.write(self._fd, TOKEN * count)

    def take(self) -> bool:
        """Take a slot; False when none is free now."""
        try:
            return bool(os.read(self._fd, 1))
        except BlockingIOError:
            return False

    def wait(self, seconds: float) -> None:
        """Until one may be free."""
        select.select([self._fd], [], [], seconds)

    def give(self) -> None:
        """Give a slot back."""
        with contextlib.suppress(BlockingIOError):  # a build that stuffed the pipe has given enough
            os.write(self._fd, TOKEN)

    def refill(self) -> None:
        """With no stage at work: put back what a make that was killed did not."""
        while self.take():
            pass
        os.write(self._fd, TOKEN * self.count)

    def __enter__(self) -> Slots:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the pipe."""
        with contextlib.suppress(OSError):
            os.close(self._fd)
        shutil.rmtree(self.directory, ignore_errors=True)
