# SPDX-License-Identifier: GPL-2.0-or-later
"""``test``: what is run, in which order, and what counts as a failure."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kpatch_ci.cli import test as verb
from kpatch_ci.cli.test import ROOT, Step, run_steps, steps
from kpatch_ci.model.errors import InfrastructureError

NAMES = ["ruff", "ruff format", "mypy", "import-linter", "unit tests", "real builds and boots"]


def run(codes: dict[str, int], *, keep_going: bool = False, selective: bool = False) -> tuple[int, list[str]]:
    ran: list[str] = []

    def execute(step: Step) -> int:
        ran.append(step.name)
        return codes.get(step.name, 0)

    todo = steps(unit=False, extra=())
    return run_steps(todo, keep_going=keep_going, selective=selective, execute=execute), ran


def test_everything_runs_in_order() -> None:
    assert run({}) == (0, NAMES)


def test_unit_leaves_real_builds_out() -> None:
    assert [s.name for s in steps(unit=True, extra=())] == NAMES[:-1]


def test_the_first_failure_ends_it() -> None:
    assert run({"mypy": 1}) == (1, NAMES[:3])


def test_keep_going_goes_on_and_still_fails(caplog: pytest.LogCaptureFixture) -> None:
    assert run({"mypy": 1, "unit tests": 1}, keep_going=True) == (1, NAMES)


def test_no_tests_at_all_is_a_failure_unless_some_were_selected() -> None:
    assert run({"real builds and boots": 5}) == (1, NAMES)
    assert run({"real builds and boots": 5}, selective=True) == (0, NAMES)
    assert run({"ruff": 5}, selective=True) == (1, NAMES[:1])


def test_extra_arguments_go_to_pytest_only() -> None:
    for step in steps(unit=False, extra=("-k", "apt")):
        assert (step.argv[-2:] == ("-k", "apt")) is step.pytest


def test_a_command_runs_in_the_repository_and_its_output_is_seen(capfd: pytest.CaptureFixture[str]) -> None:
    step = Step("x", (sys.executable, "-c", "import os; print(os.getcwd()); raise SystemExit(4)"), 20)
    assert verb._execute(step) == 4
    assert capfd.readouterr().out == f"{ROOT}\n"


def test_a_step_that_hangs_is_ended() -> None:
    with pytest.raises(InfrastructureError, match="x was ended after 0 s"):
        verb._execute(Step("x", ("sleep", "60"), 0.1))


def test_an_installed_package_without_tests_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verb, "ROOT", tmp_path)
    with pytest.raises(InfrastructureError, match="clone of the repository"):
        verb._execute(Step("x", ("true",), 5))
