# SPDX-License-Identifier: GPL-2.0-or-later
"""Boards under test: each kernel is started afresh, checked, measured, and left for the board's own system again.

A kernel that panics, hangs or has no network is a result. A board that does not come back is not: InfrastructureError.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from kpatch_ci import process
from kpatch_ci.board.bring_back import Keeper
from kpatch_ci.board.console import Console, recorded
from kpatch_ci.board.install import TOKEN, Known, board_of, install, not_so, start
from kpatch_ci.board.running import Failed, Start, Subject, Up, come_up, measure
from kpatch_ci.board.ssh import BrokenError, Connect, Shell, connect
from kpatch_ci.guest.events import find_event
from kpatch_ci.guest.guests import RawRun
from kpatch_ci.model.boot import BootResult
from kpatch_ci.model.build import BuildResult
from kpatch_ci.model.digest import digest
from kpatch_ci.model.machine import Machine
from kpatch_ci.model.status import Status
from kpatch_ci.store.atomic import write_text
from kpatch_ci.store.cache import locked

STAGE_VERSION = 1


class Boards:
    """Boards of one run. One kernel at a time on each, also of several runs on this machine. Times are wall seconds."""

    def __init__(self, cache: Path, *, replicate_timeout: float, connect: Connect = connect) -> None:
        self._folder, self._work = cache / "boards", cache / "work"
        self._replicate_timeout = replicate_timeout
        self._connect = connect
        self._booted: dict[str, BootResult] = {}
        self._lock = threading.Lock()

    def prepare(self, machine: Machine) -> str:
        """Meet a board, and bring it back where a killed run left it; what it is, in words. Its console command is tried.

        Raises InfrastructureError.
        """
        self._work.mkdir(parents=True, exist_ok=True)
        with self._held(machine), tempfile.TemporaryDirectory(prefix="board-", dir=self._work) as work:
            shell, known = self._keeper(machine).own()
            shell.close()
            with recorded(board_of(machine).console, Path(work) / "console.log") as console:
                _check_console(console, machine)
        return (
            f"board {machine.name} ({board_of(machine).login}) runs linux {known.release}, at {known.network.address}"
        )

    def boot_key(self, build: BuildResult, machine: Machine) -> str:
        """Names a boot; nothing is kept under it beyond this run."""
        return digest(["board-boot", STAGE_VERSION, build.image_digest, machine.name, str(board_of(machine).login)])

    def find_boot(self, build: BuildResult, machine: Machine, boot_seed: int) -> BootResult | None:
        """The boot of this run that showed that the kernel starts there: one is enough, each run is a boot of its own anyway."""
        with self._lock:
            found = self._booted.get(self.boot_key(build, machine))
        if found and found.status is not Status.PASSED and found.boot_seed != boot_seed:
            found = replace(
                found, reason=f"as under boot seed {found.boot_seed}: {found.reason}", log_tail="", console=None
            )
        return replace(found, arm=build.arm, boot_seed=boot_seed, cached=True) if found else None

    def boot(self, subject: Subject, machine: Machine, logs: Path) -> BootResult:
        """Start a kernel, check it, and bring the board back. A kernel that does not start is a result."""
        return self.find_boot(subject.build, machine, subject.boot_seed) or self._boot(subject, machine, logs)

    def _boot(self, subject: Subject, machine: Machine, logs: Path) -> BootResult:
        build = subject.build
        started = time.monotonic()
        log = logs / f"boot-{machine.arch}-{build.arm}-{subject.boot_seed}.console.log"
        with self._started(subject, machine) as (up, console):
            failed = up if isinstance(up, Failed) else None
            result = BootResult(
                status=Status.FAILED if failed else Status.PASSED,
                arm=build.arm,
                arch=machine.arch,
                machine=machine.name,
                boot_seed=subject.boot_seed,
                key=self.boot_key(build, machine),
                seconds=round(time.monotonic() - started, 2),
                cached=False,
                facts=up.facts,
                differences=failed.differences if failed else (),
                console=_keep(console, log),
                reason=failed.reason if failed else "",
                log_tail=console.tail if failed else "",
                reproduce=f"kexec -l IMAGE --initrd=INITRD --command-line='{command_line(machine, subject.boot_seed)}'",
            )
        with self._lock:
            self._booted[result.key] = result
        return result

    def replicate(self, subject: Subject, machine: Machine, job: str, *, logs: Path, name: str) -> RawRun:
        """Start a kernel, do a job, and bring the board back. How it ended is a result; ``name`` is its log's."""
        started = time.monotonic()
        with self._started(subject, machine) as (up, console):
            run = _not_run(up) if isinstance(up, Failed) else measure(up, job, self._replicate_timeout)
            run = replace(run, seconds=round(time.monotonic() - started, 3), said=console.text)
            _note(find_event(run.text, "board"), logs / f"{name}.board.json")
            if run.status is not Status.PASSED:
                log = _keep(console, logs / f"{name}.console.log")
                run = replace(run, log_tail=console.tail, console=log)
        return run

    def _keeper(self, machine: Machine) -> Keeper:
        return Keeper(machine, self._connect, self._folder)

    @contextmanager
    def _held(self, machine: Machine) -> Iterator[None]:
        """The board for this alone, also of all runs on this machine. Who is told to stop waits no longer."""
        with locked(self._folder / board_of(machine).login.place, process.check_stopping):
            yield

    @contextmanager
    def _started(self, subject: Subject, machine: Machine) -> Iterator[tuple[Up | Failed, Console]]:
        """A kernel that was started, checked; when this is left the board's own system is back."""
        keeper, token = self._keeper(machine), f"{TOKEN}{secrets.token_hex(8)}"
        self._work.mkdir(parents=True, exist_ok=True)
        with self._held(machine), tempfile.TemporaryDirectory(prefix="board-", dir=self._work) as work:
            line = f"{command_line(machine, subject.boot_seed)} {token}"
            shell, known = self._loaded(keeper, subject, line)
            log = Path(work) / "console.log"
            with contextlib.closing(shell), recorded(board_of(machine).console, log, token) as console:
                yield from self._go(shell, Start(subject, machine, self._connect, known, token, console))

    def _loaded(self, keeper: Keeper, subject: Subject, line: str, *, again: bool = True) -> tuple[Shell, Known]:
        """Logged in, and the kernel ready to be started. A connection that breaks meanwhile is made once more."""
        machine = keeper.machine
        shell, known = keeper.own(board_of(machine).timeouts.silence)
        try:
            install(shell, machine, known, subject.files, line)
        except BaseException as error:
            shell.close()
            if again and isinstance(error.__cause__, BrokenError):
                return self._loaded(keeper, subject, line, again=False)
            raise
        return shell, known

    def _go(self, own: Shell, one: Start) -> Iterator[tuple[Up | Failed, Console]]:
        keeper, console, found = self._keeper(one.machine), one.console, None
        _check_console(console, one.machine)
        keeper.left()
        try:
            console.begin()
            start(own, one.machine)
            found = come_up(one)
            yield found, console
        finally:
            if found is not None and found.shell is not None:
                found.shell.close()
            told = found.hangs if isinstance(found, Failed) else None
            keeper.bring_back(one.known.boot_id, hangs=console.lost() is not None if told is None else told)


def _check_console(console: Console, machine: Machine) -> None:
    """Raises InfrastructureError where the console command does not work: a crash would look like no answer."""
    ended = console.ended_at_once()
    if ended:
        words = " ".join(console.tail.split())[-300:]
        raise not_so(machine, f"{ended}{f': {words}' if words else ''}", f"try it: {board_of(machine).console}")


def _not_run(failed: Failed) -> RawRun:
    return RawRun(Status.FAILED, "", 0.0, failed.reason)


def command_line(machine: Machine, boot_seed: int) -> str:
    """The kernel's: a panic reboots at once."""
    return " ".join(["panic=-1", *machine.kernel_args, f"kpci.boot_seed={boot_seed}"])


def _note(seen: Mapping[str, Any] | None, log: Path) -> None:
    """Keep what else was at work beside a run: of every run, for a figure that looks odd is looked into later."""
    if seen:
        write_text(log, json.dumps(seen, indent=1) + "\n")


def _keep(console: Console, log: Path) -> Path | None:
    if not console.path.exists():
        return None
    log.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(console.path, log)
    return log
