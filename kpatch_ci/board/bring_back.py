# SPDX-License-Identifier: GPL-2.0-or-later
"""A board's own system: met before a kernel is started, and brought back afterwards, by a reboot or by its power switch.

A mark in the cache says that a board was left for a kernel under test. It is taken away when the board's own system is back: so a run
that was killed leaves word to the next, which brings the board back first.
"""

from __future__ import annotations

import contextlib
import logging
from dataclasses import dataclass
from pathlib import Path

from kpatch_ci import process
from kpatch_ci.board.install import Known, board_of, examine, leave, not_so
from kpatch_ci.board.ssh import Connect, Shell, SilentError
from kpatch_ci.board.wait import TRY, meet, own_system
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

    def own(self) -> tuple[Shell, Known]:
        """Logged in to the board's own system. Raises InfrastructureError that names the board."""
        if self._mark.exists():
            log.info("board %s was left with a kernel under test: bringing it back", self.machine.name)
            self.bring_back(None)
        try:
            shell = self.connect(board_of(self.machine).login, TRY)
        except SilentError as error:
            raise not_so(
                self.machine, f"it cannot be reached: {error}", "is it up, and is this its address?"
            ) from error
        try:
            return shell, examine(shell, self.machine)
        except BaseException:
            shell.close()
            raise

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
        if not back and power is not None:
            self._power(power)
            back = self._back(not_boot, limit)
        if not back:
            done = "even after a power cycle" if power else "and its machine file names no power switch"
            raise not_so(self.machine, f"its own system did not come back within {limit:.0f} s, {done}", "look at it")
        self._mark.unlink(missing_ok=True)

    def _leave(self, power: str | None, *, asked: bool) -> None:
        """After Ctrl-C nobody waits for the board; the mark stays, and the next run makes sure."""
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

    def _power(self, command: str) -> None:
        log.info("board %s: power cycle", self.machine.name)
        done = process.run(["sh", "-c", command], timeout=POWER_TIMEOUT, last=True)
        if not done.ok:
            what = f"its power switch failed: {done.explain()}"
            raise not_so(self.machine, f"{what}\n{done.output.rstrip()}", f"try it: {command}")
