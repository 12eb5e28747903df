# SPDX-License-Identifier: GPL-2.0-or-later
"""A board's console, recorded while a kernel is under test, and what it says of that kernel's end.

What a console command prints may be anything: lines of an earlier start that a server shows again, terminal escapes, noise of the line.
Only what came since this start counts, and from the kernel's command line on where that was seen.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kpatch_ci.board.install import TOKEN
from kpatch_ci.guest.console import find_crash
from kpatch_ci.process import Process, tail
from kpatch_ci.report.clean import printable

INIT = "kpatch-ci board: init runs"
NETWORK = "kpatch-ci board: network: "
NO_NETWORK = "kpatch-ci board: no network"
"""What qemu/board/init says."""
LINES = 30
LIMIT = 16 << 20
"""Bytes that are recorded: a kernel says a hundredth of it, and a command that prints without end would fill the disk."""
SETTLE = 1.0
"""Seconds in which a console command that cannot work ends, and one that works has shown what was there before."""
_TIED = """\
exec 3<&0 </dev/null
trap : TERM
{ read -r _; trap '' TERM; kill -TERM 0; sleep 1; kill -KILL 0; } <&3 &
sh -c "$1" 3<&-
exit $?
"""
"""Runs a command; when standard input ends, because whoever held its other end is dead, the whole process group is ended.

SIGTERM is for the command: the shell waits until it has tidied up.
"""


class Console:
    """What was recorded so far. Without a console command nothing ever is. ``token`` names the start that counts."""

    def __init__(self, path: Path, token: str = TOKEN, command: Process | None = None) -> None:
        self.path, self._token, self._command = path, token, command
        self._begun = 0
        self._size, self._grown = -1, 0.0
        self._read: tuple[int, str] = (-1, "")
        self._found: tuple[int, str | None] = (-1, None)

    def begin(self) -> None:
        """The kernel is started now: what was shown before this is of other starts."""
        self._begun = self._bytes()

    def _bytes(self) -> int:
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    @property
    def text(self) -> str:
        """All since the start, without what only a terminal understands."""
        size = self._bytes()
        if size != self._read[0]:
            with contextlib.suppress(FileNotFoundError), self.path.open("rb") as stream:
                stream.seek(self._begun)
                self._read = (size, printable(stream.read(LIMIT).decode(errors="replace")))
        return self._read[1]

    @property
    def tail(self) -> str:
        """Its last lines."""
        return printable(tail(self.path, LINES))

    @property
    def _of_the_kernel(self) -> str:
        """From its command line on; all since the start where that was not seen."""
        before, token, after = self.text.partition(self._token)
        return after if token else before

    def ended(self) -> str | None:
        """How the command ended that is to print the console; None while it runs, or where there is none."""
        if self._command is None:
            return None
        if self._bytes() > LIMIT:
            self._command.terminate()
            return f"its console command was ended after it had printed {LIMIT >> 20} MiB"
        code = self._command.poll()
        return None if code is None else f"its console command ended with exit status {code}"

    def ended_at_once(self) -> str | None:
        """The same, after the time that a command takes which cannot work."""
        if self._command is not None:
            self._command.wait(SETTLE)
        return self.ended()

    def lost(self) -> str | None:
        """Why the kernel will not answer any more, where the console says so."""
        self.ended()
        size = self._bytes()
        if size != self._found[0]:
            self._found = (size, _lost(self._of_the_kernel))
        return self._found[1]

    def silent(self, now: float) -> float:
        """Seconds for which a kernel that is not yet up has said nothing; 0 where it is up, or has not begun. ``now``: time.monotonic().

        It has begun when its command line was seen: until then an orderly shutdown or firmware may take minutes in silence.
        The silence of a console that is no longer recorded is not the kernel's.
        """
        size = self._bytes()
        if size != self._size:
            self._size, self._grown = size, now
        if self._token not in self.text or NETWORK in self._of_the_kernel or self.ended():
            return 0.0
        return now - self._grown

    def got_to(self) -> str:
        """How far a kernel came that does not answer, in words."""
        ended = self.ended()
        return f"{self._got_to()}; {ended}" if ended else self._got_to()

    def _got_to(self) -> str:
        text = self._of_the_kernel
        if NETWORK in text:
            return "its console says that it booted and has its address"
        if INIT in text:
            return "its console says that it booted, and nothing of a network"
        last = next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
        return f"the last that its console said: {last[:160]}" if last else "its console said nothing"


def _lost(text: str) -> str | None:
    crash = find_crash(text)
    if crash:
        return f"crashed: {crash}"
    lines = (line for line in text.splitlines() if NO_NETWORK in line)
    return next((f"it booted, but it has {line.split(': ', 1)[1]}" for line in lines), None)


@contextmanager
def recorded(command: str | None, path: Path, token: str = TOKEN) -> Iterator[Console]:
    """Run a console command for as long as this lasts, and this process lives; what it prints goes to ``path``."""
    if command is None:
        yield Console(path, token)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    theirs, ours = os.pipe()
    with contextlib.ExitStack() as stack:
        stack.callback(os.close, ours)
        try:
            stream = stack.enter_context(path.open("wb"))
            process = Process(["sh", "-c", _TIED, "sh", command], stdin=theirs, stdout=stream)
        finally:
            os.close(theirs)
        yield Console(path, token, stack.enter_context(process))
