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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kpatch_ci.board import noise
from kpatch_ci.board.bring_back import Keeper
from kpatch_ci.board.check import NOTES, differences, is_that_kernel
from kpatch_ci.board.console import Console, recorded
from kpatch_ci.board.install import TOKEN, Files, Known, board_of, install, start
from kpatch_ci.board.ssh import Connect, Shell, SilentError, connect
from kpatch_ci.board.wait import Lost, kernel_under_test
from kpatch_ci.guest.events import find_event
from kpatch_ci.guest.guests import RawRun, measured
from kpatch_ci.model.boot import BootResult
from kpatch_ci.model.build import BuildResult
from kpatch_ci.model.digest import digest
from kpatch_ci.model.machine import Machine
from kpatch_ci.model.status import Status
from kpatch_ci.store.atomic import write_text
from kpatch_ci.store.cache import locked

STAGE_VERSION = 1


@dataclass(frozen=True, slots=True)
class Subject:
    """What is started: a build, its files for the board, the modules that it is to have loaded, and a boot seed."""

    build: BuildResult
    files: Files
    modules: tuple[str, ...]
    boot_seed: int


@dataclass(slots=True)
class Up:
    """A kernel under test that answers and is what was asked for; what it said of itself so far."""

    shell: Shell
    console: Console
    said: str
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Failed:
    """Why there is none."""

    reason: str
    facts: Mapping[str, Any]
    differences: tuple[str, ...] = ()


class Boards:
    """Boards of one run. One kernel at a time on each, also of several runs on this machine. Times are wall seconds."""

    def __init__(self, cache: Path, *, replicate_timeout: float, connect: Connect = connect) -> None:
        self._folder, self._work = cache / "boards", cache / "work"
        self._replicate_timeout = replicate_timeout
        self._connect = connect
        self._booted: dict[str, BootResult] = {}
        self._lock, self._one_at_a_time = threading.Lock(), threading.Lock()

    def prepare(self, machine: Machine) -> str:
        """Meet a board, and bring it back where a killed run left it; what it is, in words. Raises InfrastructureError."""
        with locked(self._folder / board_of(machine).login.place):
            shell, known = self._keeper(machine).own()
            shell.close()
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
        with self._one_at_a_time:  # boots of other seeds wait for the first, and are answered by it
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
            run = (
                RawRun(Status.FAILED, "", 0.0, up.reason) if isinstance(up, Failed) else self._measure(up, machine, job)
            )
            run = replace(run, seconds=round(time.monotonic() - started, 3), said=console.text)
            _note(find_event(run.text, "board"), logs / f"{name}.board.json")
            if run.status is not Status.PASSED:
                log = _keep(console, logs / f"{name}.console.log")
                run = replace(run, log_tail=console.tail, console=log)
        return run

    def _keeper(self, machine: Machine) -> Keeper:
        return Keeper(machine, self._connect, self._folder)

    @contextmanager
    def _started(self, subject: Subject, machine: Machine) -> Iterator[tuple[Up | Failed, Console]]:
        """A kernel that was started, checked; when this is left the board's own system is back."""
        keeper, token = self._keeper(machine), f"{TOKEN}{secrets.token_hex(8)}"
        self._work.mkdir(parents=True, exist_ok=True)
        with (
            locked(self._folder / board_of(machine).login.place),
            tempfile.TemporaryDirectory(prefix="board-", dir=self._work) as work,
        ):
            shell, known = keeper.own()
            with contextlib.closing(shell):
                line = f"{command_line(machine, subject.boot_seed)} {token}"
                install(shell, machine, known, subject.files, line)
                with recorded(board_of(machine).console, Path(work) / "console.log") as console:
                    yield from self._go(shell, subject, machine, known, token=token, console=console)

    def _go(
        self, own: Shell, subject: Subject, machine: Machine, known: Known, *, token: str, console: Console
    ) -> Iterator[tuple[Up | Failed, Console]]:
        keeper, hangs, there = self._keeper(machine), False, None
        keeper.left()
        try:
            start(own, machine)
            found = kernel_under_test(self._connect, machine, known, token=token, console=console)
            if isinstance(found, Lost):
                hangs = not found.own
                yield Failed(found.reason, {}), console
            else:
                there = found
                yield self._checked(found, subject, machine, console), console
                hangs = console.lost() is not None
        finally:
            if there is not None:
                there.close()
            keeper.bring_back(known.boot_id, hangs=hangs)

    def _checked(self, shell: Shell, subject: Subject, machine: Machine, console: Console) -> Up | Failed:
        """Is it what was asked for?"""
        limit = board_of(machine).timeouts.command
        quiet = board_of(machine).quiet
        try:
            said = shell.run("kpci-agent facts", timeout=limit, watch=console.lost).output
            notes = shell.run(NOTES, timeout=limit, watch=console.lost).output
            unset = noise.failures(shell.run(noise.set_script(quiet), timeout=limit).output)
            look = noise.read_look(shell.run(noise.LOOK, timeout=limit).output)
        except SilentError as error:
            return Failed(console.lost() or f"it answered, and then no more: {error}", {})
        facts = find_event(said, "facts")
        if facts is None:
            return Failed(f"its agent failed: {said.strip()[-200:] or 'it said nothing'}", {})
        facts = {**facts, "board": look}
        wrong = [is_that_kernel(notes, subject.build), *_differences(facts, machine, subject)]
        wrong += [f"cannot be set: {one}" for one in unset]
        found = tuple(one for one in wrong if one)
        if found:
            return Failed(f"the board is not what was asked for: {'; '.join(found[:3])}", facts, found)
        return Up(shell, console, json.dumps(facts) + "\n", facts)

    def _measure(self, up: Up, machine: Machine, job: str) -> RawRun:
        quiet, limit = board_of(machine).quiet, board_of(machine).timeouts.command
        try:
            before = self._cooled(up, machine)
            if noise.too_hot(before, quiet):
                what = (
                    f"it did not cool down to {quiet.max_celsius:.0f} degrees Celsius within {quiet.cool_seconds:.0f} s"
                )
                return RawRun(Status.ERROR, up.said, 0.0, what)
            done = up.shell.run("kpci-agent job", timeout=self._limit(job), stdin=job.encode(), watch=up.console.lost)
            after = noise.read_look(up.shell.run(noise.LOOK, timeout=limit).output)
        except SilentError as error:
            return RawRun(Status.FAILED, up.said, 0.0, up.console.lost() or f"while it ran: {error}")
        circumstances = json.dumps({"event": "board", "board": machine.name, "before": before, "after": after})
        text = f"{up.said}{circumstances}\n{done.output}"
        end = find_event(done.output, "end")
        if not end or end.get("status") != "ok":
            reason = up.console.lost() or str(
                end.get("reason") if end else f"the agent ended without a word: {done.explain()}"
            )
            return RawRun(Status.FAILED, text, 0.0, reason)
        lost = noise.disturbed(before, after, quiet)
        return RawRun(Status.ERROR if lost else Status.PASSED, text, 0.0, lost or "")

    def _cooled(self, up: Up, machine: Machine) -> dict[str, Any]:
        """What the board looks like when it is cool enough, or when waiting for that has taken too long."""
        quiet = board_of(machine).quiet
        end = time.monotonic() + quiet.cool_seconds
        while True:
            look = noise.read_look(up.shell.run(noise.LOOK, timeout=board_of(machine).timeouts.command).output)
            if not noise.too_hot(look, quiet) or time.monotonic() > end:
                return look
            time.sleep(5)

    def _limit(self, job: str) -> float:
        return self._replicate_timeout * max(1, measured(job))


def command_line(machine: Machine, boot_seed: int) -> str:
    """The kernel's: a panic reboots at once."""
    return " ".join(["panic=-1", *machine.kernel_args, f"kpci.boot_seed={boot_seed}"])


def _differences(facts: Mapping[str, Any], machine: Machine, subject: Subject) -> tuple[str, ...]:
    """A kernel under test may have made the agent say anything."""
    try:
        return differences(facts, machine, subject.build.release, subject.modules)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return (f"its facts have not the form of the agent's: {error!r}",)


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
