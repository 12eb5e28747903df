# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest that has booted: is it the agent that says so, is the guest what was asked for, and what is kept of one that is not."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from kpatch_ci.guest import qemu, secondlook
from kpatch_ci.guest.events import find_event
from kpatch_ci.guest.files import guest_modules
from kpatch_ci.guest.tsc import keeps_time
from kpatch_ci.guest.verify import differences
from kpatch_ci.model.boot import BootResult
from kpatch_ci.model.build import BuildResult
from kpatch_ci.model.machine import Machine
from kpatch_ci.process import tail

BAD_CLOCK = "the guest could not measure its clock's rate"


def results(work: Path) -> str:
    """What came over the result channel so far."""
    return read(work / qemu.RESULT_FILE)


def read(path: Path) -> str:
    """A file that a guest writes; empty where it has not begun to."""
    try:
        return path.read_text(errors="replace")
    except FileNotFoundError:
        return ""


def _differences(facts: Mapping[str, Any], machine: Machine, build: BuildResult) -> tuple[str, ...]:
    """See ``differences``; a kernel under test may have made the agent say anything."""
    try:
        return differences(facts, machine, build.release, [m.name for m in guest_modules(build, machine)])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return (f"its facts have not the form of the agent's: {error!r}",)


def readiness(work: Path, machine: Machine, build: BuildResult) -> Callable[[], str | None]:
    """What is asked when the guest has paused: is it the agent that says so, and is the guest what was asked for?"""

    def ready() -> str | None:
        text = results(work)
        facts = find_event(text, "facts")
        if facts is None or find_event(text, "ready") is None:
            end = find_event(text, "end")
            return f"the guest's agent failed: {end.get('reason')}" if end else "the guest panicked before it was ready"
        if not keeps_time(machine, read(work / qemu.CONSOLE_FILE)):
            return BAD_CLOCK
        wrong = _differences(facts, machine, build)
        return f"{secondlook.UNLIKE}: {'; '.join(wrong[:3])}" if wrong else None

    return ready


def failed(
    attempt: BootResult, lost: str, build: BuildResult, machine: Machine, *, work: Path, log: Path
) -> BootResult:
    """The attempt as a failure, with the reason and the console's copy in ``log``."""
    text = results(work)
    # In real time the guest goes on past its boot: what ended it counts then, whatever the agent still said.
    past = machine.real_time and find_event(text, "ready") is not None
    end = None if past else find_event(text, "end")
    return replace(
        attempt,
        differences=_differences(attempt.facts, machine, build) if attempt.facts else (),
        console=keep_console(work / qemu.CONSOLE_FILE, log),
        reason=secondlook.twice(f"the guest's agent failed: {end.get('reason')}" if end else lost, attempt.first),
        log_tail=tail(work / qemu.CONSOLE_FILE),
    )


def keep_console(console: Path, log: Path) -> Path | None:
    """Copy a console into the logs; None where there is none."""
    if not console.exists():
        return None
    log.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(console, log)
    return log
