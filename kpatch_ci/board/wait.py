# SPDX-License-Identifier: GPL-2.0-or-later
"""Waiting for a board: until the kernel that was started answers, or its own system is back."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass

from kpatch_ci import process
from kpatch_ci.board.console import Console
from kpatch_ci.board.install import START_LOG, TOKEN, Known, board_of, not_so
from kpatch_ci.board.ssh import Connect, Shell, SilentError
from kpatch_ci.model.machine import Machine

STEP = 0.5
TRY = 10.0
"""Seconds that one attempt to log in may take."""
SETTLE = 1.0
"""Seconds in which a console's last words may still arrive."""
WHO = "cat /proc/sys/kernel/random/boot_id; uname -r; cat /proc/cmdline"


@dataclass(frozen=True, slots=True)
class Met:
    """Who answered."""

    boot_id: str
    release: str
    command_line: str

    def is_of(self, token: str) -> bool:
        """Whether it is the kernel that was started with ``token``."""
        return token in self.command_line.split()

    @property
    def under_test(self) -> bool:
        """Whether it is a kernel that was started here, and not the board's own."""
        return TOKEN in self.command_line


@dataclass(frozen=True, slots=True)
class Lost:
    """The kernel under test does not answer. ``own``: the board's own system does."""

    reason: str
    own: bool = False


def meet(connect: Connect, machine: Machine, timeout: float = TRY) -> tuple[Shell, Met]:
    """Log in and ask who is there. Raises SilentError."""
    shell = connect(board_of(machine).login, timeout)
    try:
        answer = shell.run(WHO, timeout=timeout, last=True)
        lines = answer.output.splitlines()
        if not answer.ok or len(lines) < 3:
            raise SilentError(f"it does not say who it is: {answer.explain()}")
    except SilentError:
        shell.close()
        raise
    return shell, Met(lines[0].strip(), lines[1].strip(), lines[2])


def kernel_under_test(
    connect: Connect, machine: Machine, known: Known, *, token: str, console: Console
) -> Shell | Lost:
    """The kernel that was started with ``token``, as soon as it answers; or why it does not.

    Raises InfrastructureError where the board's own system never gave way to it: then no kernel is to blame.
    """
    limit = board_of(machine).timeouts.boot
    end = time.monotonic() + limit
    own = False
    while time.monotonic() < end:
        process.check_stopping()
        lost = console.lost() or _hangs(machine, console)
        if lost:
            time.sleep(SETTLE)
            return Lost(lost)
        try:
            shell, met = meet(connect, machine)
        except SilentError:
            own = False
            time.sleep(STEP)
            continue
        if met.is_of(token):
            return shell
        shell.close()
        own = True
        if met.boot_id != known.boot_id:
            time.sleep(SETTLE)
            what = f"it ended before it answered, and the board is back with {met.release}"
            return Lost(console.lost() or what, own=not met.under_test)
        time.sleep(STEP)
    if own:
        what = f"its own system did not give way within {limit:.0f} s: the kernel was never started{_said(connect, machine)}"
        raise not_so(machine, what, "what keeps it from shutting down, or from starting what was loaded?")
    return Lost(console.lost() or f"no answer over SSH within {limit:.0f} s; {console.got_to()}")


def _said(connect: Connect, machine: Machine) -> str:
    """What the start left behind in words, if anything."""
    board = board_of(machine)
    with contextlib.suppress(SilentError):
        shell, _ = meet(connect, machine)
        try:
            log = shell.run(f"tail -n 3 {board.folder}/{START_LOG}", timeout=board.timeouts.command).output.split()
            return f" ({' '.join(log)[:300]})" if log else ""
        finally:
            shell.close()
    return ""


def met_again(connect: Connect, machine: Machine, console: Console) -> Met | None:
    """Who answers after the connection to a kernel under test broke; None where nobody does, or the console says why."""
    end = time.monotonic() + board_of(machine).timeouts.silence
    while time.monotonic() < end and not console.lost():
        process.check_stopping()
        with contextlib.suppress(SilentError):
            shell, met = meet(connect, machine)
            shell.close()
            return met
        time.sleep(STEP)
    return None


def _hangs(machine: Machine, console: Console) -> str | None:
    limit = board_of(machine).timeouts.silence
    if console.silent(time.monotonic()) < limit:
        return None
    return f"it hangs: nothing from it for {limit:.0f} s; {console.got_to()}"


def own_system(connect: Connect, machine: Machine, not_boot: str | None, limit: float) -> Met | None:
    """The board's own system, in another boot than ``not_boot``; None where it does not answer in time."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        process.check_stopping()
        with contextlib.suppress(SilentError):
            shell, met = meet(connect, machine)
            shell.close()
            if not met.under_test and met.boot_id != not_boot:
                return met
        time.sleep(STEP)
    return None
