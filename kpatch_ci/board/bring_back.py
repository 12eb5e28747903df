# SPDX-License-Identifier: GPL-2.0-or-later
"""A board's own system: met before a kernel is started, and brought back afterwards, by a reboot or by its power switch.

A mark in the cache says that a board was left for a kernel under test. It is taken away when the board's own system is back: so a run
that was killed leaves word to the next, which brings the board back first.
"""

from __future__ import annotations

import contextlib
import logging
import time
from dataclasses import dataclass
from pathlib import Path

from kpatch_ci import process
from kpatch_ci.board.install import Known, board_of, examine, leave, not_so
from kpatch_ci.board.ssh import Connect, Shell, SilentError
from kpatch_ci.board.wait import STEP, TRY, meet, own_system
from kpatch_ci.model.machine import Machine
from kpatch_ci.store.atomic import write_text

log = logging.getLogger(__name__)
POWER_TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class Keeper:
    """Keeps one board's own system. ``folder`` is where marks are."""

    machine: Machine
    connect: Connect
    folder: Path

    @property
    def _mark(self) -> Path:
        return self.folder / f"{board_of(self.machine).login.place}.left"

    def own(self, patience: float = 0.0) -> tuple[Shell, Known]:
        """Logged in to the board's own system, which may take ``patience`` seconds to answer.

        Raises InfrastructureError that names the board.
        """
        if self._mark.exists():
            log.info("board %s was left with a kernel under test: bringing it back", self.machine.name)
            self.bring_back(None)
        shell = self._reached(time.monotonic() + patience)
        try:
            return shell, examine(shell, self.machine)
        except BaseException:
            shell.close()
            raise

    def _reached(self, end: float) -> Shell:
        while True:
            try:
                return self.connect(board_of(self.machine).login, TRY)
            except SilentError as error:
                if time.monotonic() < end:
                    process.check_stopping()
                    time.sleep(STEP)
                    continue
                hint = "is it up, and is this its address? --arch leaves it out"
                raise not_so(self.machine, f"it cannot be reached: {error}", hint) from error

    def left(self) -> None:
        """From now on the board may run anything."""
        write_text(self._mark, f"{board_of(self.machine).login}\n")

    def bring_back(self, not_boot: str | None, *, hangs: bool = False) -> None:
        """Have the board's own system answer, in another boot than ``not_boot``. Raises InfrastructureError where it does not.

        ``hangs``: nobody there can be asked to reboot.
        """
        limit, power = board_of(self.machine).timeouts.back, board_of(self.machine).power_cycle
        asked = not hangs and self._ask(not_boot)
        if process.is_stopping():
            self._leave(power, asked=asked)
            return
        back = (asked or power is None) and self._back(not_boot, limit)
        tried = "and its machine file names no power switch"
        if not back and power is not None:
            fault = self._power(power)
            tried = f"and its power switch failed: {fault}" if fault else "even after a power cycle"
            back = self._back(not_boot, limit)  # it may come by itself: a panic reboots
        if not back:
            raise not_so(self.machine, f"its own system did not come back within {limit:.0f} s, {tried}", "look at it")
        self._mark.unlink(missing_ok=True)

    def _leave(self, power: str | None, *, asked: bool) -> None:
        """After Ctrl-C nobody waits for the board; the mark stays, and the next run makes sure. A switch that fails is said."""
        if not asked and power is not None:
            self._power(power)
        elif not asked:
            log.warning("board %s does not answer, and was left as it is", self.machine.name)

    def _ask(self, not_boot: str | None) -> bool:
        """Ask whoever answers to reboot; False where nobody does. The board's own system, in another boot, is left alone."""
        with contextlib.suppress(SilentError):
            shell, met = meet(self.connect, self.machine)
            try:
                if met.under_test or met.boot_id == not_boot:
                    leave(shell)
                return True
            finally:
                shell.close()
        return False

    def _back(self, not_boot: str | None, limit: float) -> bool:
        return own_system(self.connect, self.machine, not_boot, limit) is not None

    def _power(self, command: str) -> str:
        """Switch it off and on; why that failed, or nothing."""
        log.info("board %s: power cycle", self.machine.name)
        done = process.run(["sh", "-c", command], timeout=POWER_TIMEOUT, last=True)
        if done.ok:
            return ""
        words = " ".join(done.output.split())[-300:]
        fault = f"{done.explain()}{f': {words}' if words else ''} (try it: {command})"
        log.warning("board %s: its power switch failed: %s", self.machine.name, fault)
        return fault
