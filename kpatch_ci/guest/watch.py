# SPDX-License-Identifier: GPL-2.0-or-later
"""Watching a guest from outside: its console and its result channel are files, looked at every POLL seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from kpatch_ci.guest.console import find_crash
from kpatch_ci.guest.events import find_event
from kpatch_ci.process import Process

POLL = 0.05
CRASHED = "the guest crashed: "
TRACE_GRACE = 0.3
"""Seconds that a guest is left after a crash line, so that the console's tail holds the call trace too."""


class Watch:
    """Says when a guest is lost. ``timeout`` and ``silence`` are seconds of wall time."""

    def __init__(
        self,
        console: Path,
        results: Path,
        *,
        timeout: float,
        silence: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._console, self._results = console, results
        self._timeout, self._silence, self._clock = timeout, silence, clock
        self._started = self._grown = clock()
        self._sizes = (0, 0)
        self._offset = 0
        self._rest = b""
        self._crash: tuple[str, float] | None = None

    def crash(self) -> str | None:
        """The line that says that the guest crashed, as far as the console has come."""
        if self._crash is None:
            for line in self._new_lines():
                found = find_crash(line)
                if found:
                    self._crash = (found, self._clock())
                    break
        return self._crash[0] if self._crash else None

    def check(self) -> str | None:
        """Why the guest is to be ended now, in one sentence; None while all is well."""
        now = self._clock()
        sizes = (_size(self._console), _size(self._results))
        if sizes != self._sizes:
            self._sizes, self._grown = sizes, now
        if self.crash() and self._crash is not None:
            return f"{CRASHED}{self._crash[0]}" if now - self._crash[1] >= TRACE_GRACE else None
        if now - self._started >= self._timeout:
            return f"the guest was not done after {self._timeout:g} s"
        if now - self._grown >= self._silence:
            return f"the guest said nothing for {self._silence:g} s (console and result channel)"
        return None

    def _new_lines(self) -> list[str]:
        """Lines that were completed since the last call."""
        try:
            with self._console.open("rb") as stream:
                stream.seek(self._offset)
                data = stream.read()
        except FileNotFoundError:
            return []
        self._offset += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [line.decode(errors="replace") for line in lines]


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def until_ready(process: Process, check: Callable[[], str | None], results: Path) -> str | None:
    """Wait until the agent says that it is ready: None then, or what ``check`` says first. The guest runs on in both cases."""
    while True:
        ended = process.wait(POLL) is not None  # before the look: a guest may be ready and end between two looks
        if results.exists() and find_event(results.read_text(errors="replace"), "ready"):
            return None
        reason = check()
        if reason or ended:
            return reason or "the guest ended before it was ready"


def attend(process: Process, watch: Watch) -> str | None:
    """Wait until the guest ends by itself, or end it at once when it is lost: the reason, then."""
    while process.wait(POLL) is None:
        reason = watch.check()
        if reason:
            process.kill(grace=0)
            return reason
    crash = watch.crash()
    return f"{CRASHED}{crash}" if crash else None
