# SPDX-License-Identifier: GPL-2.0-or-later
"""A kernel under test that answers: is it what was asked for, and what a job in it gives.

A connection that breaks is the kernel's fault where the kernel is gone with it, and the way's where the same kernel answers again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kpatch_ci.board import noise
from kpatch_ci.board.check import NOTES, differences, is_that_kernel
from kpatch_ci.board.console import Console
from kpatch_ci.board.install import Files, Known, board_of
from kpatch_ci.board.ssh import BrokenError, Connect, Shell, SilentError
from kpatch_ci.board.wait import Lost, kernel_under_test, met_again
from kpatch_ci.guest.events import find_event
from kpatch_ci.guest.guests import RawRun, measured
from kpatch_ci.model.build import BuildResult
from kpatch_ci.model.machine import Machine
from kpatch_ci.model.status import Status

CONNECTIONS = 3
"""Times that a kernel which answers is logged in to before it is given up: a network that was just brought up may break once more."""
COOLING = 5.0
"""Seconds between two looks at a board that is too hot."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is started: a build, its files for the board, the modules that it is to have loaded, and a boot seed."""

    build: BuildResult
    files: Files
    modules: tuple[str, ...]
    boot_seed: int


@dataclass(frozen=True, slots=True)
class Start:
    """One start of a subject on a board: what ran there before, the token that only this start has, and its console."""

    subject: Subject
    machine: Machine
    connect: Connect
    known: Known
    token: str
    console: Console


@dataclass(frozen=True, slots=True)
class Up:
    """A kernel under test that answers and is what was asked for; what it said of itself so far."""

    start: Start
    shell: Shell
    said: str
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Failed:
    """Why there is none. ``shell``: the connection to one that is not what was asked for.

    ``hangs``: whether nobody there can be asked to reboot; None: as the console says.
    """

    reason: str
    facts: Mapping[str, Any]
    differences: tuple[str, ...] = ()
    shell: Shell | None = None
    hangs: bool | None = None


def come_up(start: Start) -> Up | Failed:
    """The kernel, as soon as it answers, checked. Raises InfrastructureError where it was never started."""
    left = CONNECTIONS
    while True:
        left -= 1
        found = kernel_under_test(start.connect, start.machine, start.known, token=start.token, console=start.console)
        if isinstance(found, Lost):
            return Failed(found.reason, {}, hangs=not found.own)
        try:
            return _checked(start, found)
        except SilentError as error:
            found.close()
            lost = start.console.lost()
            if lost or not left or not isinstance(error, BrokenError):
                return Failed(lost or f"it answered, and then no more: {error}", {})
        except BaseException:
            found.close()
            raise


def _checked(start: Start, shell: Shell) -> Up | Failed:
    """Is it what was asked for? Raises SilentError."""
    board, watch = board_of(start.machine), start.console.lost
    limit = board.timeouts.command
    said = shell.run("kpci-agent facts", timeout=limit, watch=watch).output
    notes = shell.run(NOTES, timeout=limit, watch=watch).output
    unset = noise.failures(shell.run(noise.set_script(board.quiet), timeout=limit, watch=watch).output)
    look = noise.read_look(shell.run(noise.LOOK, timeout=limit, watch=watch).output)
    facts = find_event(said, "facts")
    if facts is None:
        return Failed(f"its agent failed: {said.strip()[-200:] or 'it said nothing'}", {}, shell=shell)
    facts = {**facts, "board": look}
    wrong = [is_that_kernel(notes, start.subject.build), *_differences(facts, start.machine, start.subject)]
    wrong += [*(f"cannot be set: {one}" for one in unset), *noise.unwatched(look, board.quiet)]
    found = tuple(one for one in wrong if one)
    if found:
        reason = f"the board is not what was asked for: {'; '.join(found[:3])}"
        return Failed(reason, facts, found, shell)
    return Up(start, shell, json.dumps(facts) + "\n", facts)


def _differences(facts: Mapping[str, Any], machine: Machine, subject: Subject) -> tuple[str, ...]:
    """A kernel under test may have made the agent say anything."""
    try:
        return differences(facts, machine, subject.build.release, subject.modules)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return (f"its facts have not the form of the agent's: {error!r}",)


def measure(up: Up, job: str, timeout: float) -> RawRun:
    """Do a job. ``timeout``: wall seconds for each command that is measured."""
    machine, lost = up.start.machine, up.start.console.lost
    quiet, limit = board_of(machine).quiet, board_of(machine).timeouts.command
    try:
        before = _cooled(up)
        if noise.too_hot(before, quiet):
            what = f"it did not cool down to {quiet.max_celsius:.0f} degrees Celsius within {quiet.cool_seconds:.0f} s"
            return RawRun(Status.ERROR, up.said, 0.0, what)
        done = up.shell.run("kpci-agent job", timeout=timeout * max(1, measured(job)), stdin=job.encode(), watch=lost)
        after = noise.read_look(up.shell.run(noise.LOOK, timeout=limit, watch=lost).output)
    except SilentError as error:
        return _broken(up, error)
    circumstances = json.dumps({"event": "board", "board": machine.name, "before": before, "after": after})
    text = f"{up.said}{circumstances}\n{done.output}"
    end = find_event(done.output, "end")
    if not end or end.get("status") != "ok":
        reason = str(end.get("reason") if end else f"the agent ended without a word: {done.explain()}")
        return RawRun(Status.FAILED, text, 0.0, lost() or reason)
    disturbed = noise.disturbed(before, after, quiet)
    return RawRun(Status.ERROR if disturbed else Status.PASSED, text, 0.0, disturbed or "")


def _broken(up: Up, error: SilentError) -> RawRun:
    """The kernel is gone, or the way to it is. What is asked is who answers now."""
    start, what = up.start, f"while it ran: {error}"
    met = met_again(start.connect, start.machine, start.console) if isinstance(error, BrokenError) else None
    lost = start.console.lost()
    if lost or met is None:
        return RawRun(Status.FAILED, up.said, 0.0, lost or what)
    if met.is_of(start.token):
        return RawRun(Status.ERROR, up.said, 0.0, f"{what}, and the same kernel answers again: not its fault")
    return RawRun(Status.FAILED, up.said, 0.0, f"{what}, and the board is back with {met.release}")


def _cooled(up: Up) -> dict[str, Any]:
    """What the board looks like when it is cool enough, or when waiting for that has taken too long. Raises SilentError."""
    board = board_of(up.start.machine)
    end = time.monotonic() + board.quiet.cool_seconds
    while True:
        said = up.shell.run(noise.LOOK, timeout=board.timeouts.command, watch=up.start.console.lost).output
        look = noise.read_look(said)
        if not noise.too_hot(look, board.quiet) or time.monotonic() > end:
            return look
        time.sleep(COOLING)
