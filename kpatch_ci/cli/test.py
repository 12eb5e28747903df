# SPDX-License-Identifier: GPL-2.0-or-later
"""``kpatch-ci test``: the project's own linters, types, layers, unit tests, then real builds and boots."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from kpatch_ci.cli.output import say, verbosity
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.process import Process

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
NOTHING_COLLECTED = 5
SLOWEST = 25
"""How many tests the last step names with the seconds that each took: most of its time is in these."""


@dataclass(frozen=True, slots=True)
class Step:
    """One command, in the repository's root. ``pytest``: takes the extra arguments."""

    name: str
    argv: tuple[str, ...]
    timeout: float
    pytest: bool = False


def steps(*, unit: bool, extra: Sequence[str]) -> list[Step]:
    """What is run, in this order: cheap first, pytest last."""
    python = sys.executable
    found = [
        Step("ruff", (python, "-m", "ruff", "check", "."), 300),
        Step("ruff format", (python, "-m", "ruff", "format", "--check", "."), 300),
        Step("mypy", (python, "-m", "mypy"), 900),
        Step("import-linter", (str(BIN / "lint-imports"),), 300),
        Step("unit tests", (python, "-m", "pytest", "-n", "auto", "tests/unit", *extra), 1800, pytest=True),
    ]
    if not unit:
        argv = (python, "-m", "pytest", f"--durations={SLOWEST}", "tests/e2e", *extra)
        found.append(Step("real builds and boots", argv, 7200, pytest=True))
    return found


@click.command(name="test", context_settings={"ignore_unknown_options": True})
@click.option("--unit", is_flag=True, help="No builds, no boots, no network: linters, types, layers, unit tests.")
@click.option("--keep-going", is_flag=True, help="Run the rest after a failure.")
@click.argument("extra", nargs=-1, type=click.UNPROCESSED)
@verbosity
def command(unit: bool, keep_going: bool, extra: tuple[str, ...]) -> int:
    """Run ruff, mypy, import-linter and pytest on this project. What else is given goes to pytest (-k, -x, ...)."""
    return run_steps(steps(unit=unit, extra=extra), keep_going=keep_going, selective=bool(extra))


def run_steps(
    todo: Sequence[Step], *, keep_going: bool, selective: bool, execute: Callable[[Step], int] | None = None
) -> int:
    """Run them; 0 when all passed, else 1. ``selective``: a pytest that selects no test is not a failure."""
    execute = execute or _execute
    failed: list[str] = []
    for step in todo:
        if step is todo[-1] and failed:
            say(f"failed so far: {', '.join(failed)}")  # before the last summary, which is to be the last line
        say(shlex.join(_shown(step.argv)))
        code = execute(step)
        if code == 0 or (step.pytest and selective and code == NOTHING_COLLECTED):
            continue
        failed.append(step.name)
        if not keep_going:
            if not step.pytest:
                say(f"{step.name} failed (exit status {code})")
            break
    return 1 if failed else 0


def _shown(argv: Sequence[str]) -> list[str]:
    if argv[0] == sys.executable:
        return list(argv[2:])
    return [Path(argv[0]).name, *argv[1:]]


def _execute(step: Step) -> int:
    if not (ROOT / "tests").is_dir():
        raise InfrastructureError(
            f"there are no tests in {ROOT}", hint="run ./kpatch-ci test in a clone of the repository"
        )
    sys.stdout.flush()
    with Process(step.argv, cwd=ROOT, env=os.environ, stdout=None) as process:
        code = process.wait(step.timeout)
    if code is None:
        raise InfrastructureError(f"{step.name} was ended after {step.timeout:.0f} s (timeout)")
    return code
