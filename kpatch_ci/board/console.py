# SPDX-License-Identifier: GPL-2.0-or-later
"""A board's console, recorded while a kernel is under test, and what it says of that kernel's end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kpatch_ci.board.install import TOKEN
from kpatch_ci.guest.console import find_crash
from kpatch_ci.process import Process, tail

INIT = "kpatch-ci board: init runs"
NETWORK = "kpatch-ci board: network: "
NO_NETWORK = "kpatch-ci board: no network"
"""What qemu/board/init says."""
LINES = 30


class Console:
    """What was recorded so far. Without a console command nothing ever is."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def text(self) -> str:
        """All of it."""
        try:
            return self.path.read_text(errors="replace")
        except FileNotFoundError:
            return ""

    @property
    def tail(self) -> str:
        """Its last lines."""
        return tail(self.path, LINES)

    def lost(self) -> str | None:
        """Why the kernel will not answer any more, where the console says so."""
        text = self.text
        crash = find_crash(text)
        if crash:
            return f"crashed: {crash}"
        return next(
            (f"it booted, but it has {line.split(': ', 1)[1]}" for line in text.splitlines() if NO_NETWORK in line),
            None,
        )

    def silent(self, now: float) -> float:
        """Seconds for which a kernel that is not yet up has said nothing; 0 where it is up, or has not begun. ``now``: time.time().

        It has begun when its command line was seen: until then an orderly shutdown or firmware may take minutes in silence.
        """
        text = self.text
        if TOKEN not in text or NETWORK in text:
            return 0.0
        return now - self.path.stat().st_mtime

    def got_to(self) -> str:
        """How far a kernel came that does not answer, in words."""
        text = self.text
        if NETWORK in text:
            return "its console says that it booted and has its address"
        if INIT in text:
            return "its console says that it booted, and nothing of a network"
        last = next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
        return f"the last that its console said: {last[:160]}" if last else "its console said nothing"


@contextmanager
def recorded(command: str | None, path: Path) -> Iterator[Console]:
    """Run a console command for as long as this lasts; what it prints goes to ``path``."""
    console = Console(path)
    if command is None:
        yield console
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as stream, Process(["sh", "-c", command], stdout=stream):
        yield console
