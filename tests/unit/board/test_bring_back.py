# SPDX-License-Identifier: GPL-2.0-or-later
"""A board's own system comes back: by itself, by a reboot, by the power switch; or the board is named as lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpatch_ci import process
from kpatch_ci.board import wait
from kpatch_ci.board.bring_back import Keeper
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.model.machine import Machine
from tests.fakes.board import Clock, FakeBoard, machine

START = "kpci.token=1234"


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch) -> FakeBoard:
    clock = Clock()
    made = FakeBoard(clock, loaded=START)
    monkeypatch.setattr(wait, "time", clock)

    def power(argv: list[str], **_: object) -> process.Completed:
        if argv[-1] != "false":
            made.power_cycle()
        return process.Completed(tuple(argv), 0 if argv[-1] == "true" else 1, 0.1, False, "no such outlet")

    monkeypatch.setattr(process, "run", power)
    return made


def keeper(board: FakeBoard, folder: Path, of: Machine | None = None) -> Keeper:
    made = Keeper(of or machine(), board.connect, folder)
    made.left()
    return made


def mark(folder: Path) -> Path:
    return folder / "board.example-22.left"


def test_a_kernel_under_test_is_asked_to_reboot_and_the_power_switch_is_let_alone(
    board: FakeBoard, tmp_path: Path
) -> None:
    board.start()
    keeper(board, tmp_path).bring_back("boot-0")
    assert (board.state, board.power_cycles) == ("own", 0)
    assert not mark(tmp_path).exists()


def test_a_kernel_that_hangs_is_power_cycled_without_a_question(board: FakeBoard, tmp_path: Path) -> None:
    board.dies = "hang"
    board.start()
    began = board.clock.now
    keeper(board, tmp_path).bring_back("boot-0", hangs=True)
    assert (board.state, board.power_cycles) == ("own", 1)
    assert board.clock.now - began < 2


def test_a_board_that_does_not_reboot_is_power_cycled_when_its_time_is_up(board: FakeBoard, tmp_path: Path) -> None:
    board.comes_back = False
    board.start()
    keeper(board, tmp_path).bring_back("boot-0")
    assert (board.state, board.power_cycles) == ("own", 1)


def test_a_board_that_came_back_by_itself_is_let_alone(board: FakeBoard, tmp_path: Path) -> None:
    board.dies = "reset"
    board.start()
    boots = board.boots
    keeper(board, tmp_path).bring_back("boot-0")
    assert (board.boots, board.power_cycles) == (boots, 0)


def test_a_board_that_stays_away_is_an_error_that_names_it_and_the_mark_stays(board: FakeBoard, tmp_path: Path) -> None:
    board.dies, board.power_works = "hang", False
    board.start()
    with pytest.raises(
        InfrastructureError, match=r"board lab \(root@board.example:22\): its own system did not come back within 60 s"
    ):
        keeper(board, tmp_path).bring_back("boot-0", hangs=True)
    assert mark(tmp_path).exists()


def test_without_a_power_switch_it_waits_and_then_says_that_there_is_none(board: FakeBoard, tmp_path: Path) -> None:
    board.dies = "hang"
    board.start()
    with pytest.raises(InfrastructureError, match="names no power switch"):
        keeper(board, tmp_path, machine(power_cycle=None)).bring_back("boot-0", hangs=True)
    assert board.power_cycles == 0


def test_a_power_switch_that_fails_is_said_with_its_words(board: FakeBoard, tmp_path: Path) -> None:
    board.state = "dead"
    with pytest.raises(
        InfrastructureError,
        match=r"did not come back within 60 s, and its power switch failed: sh failed with exit status 1: no such outlet \(try it: false\)",
    ):
        keeper(board, tmp_path, machine(power_cycle="false")).bring_back(None)


def test_a_board_that_comes_back_although_its_power_switch_failed_is_no_error(
    board: FakeBoard, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    board.state = "dead"
    keeper(board, tmp_path, machine(power_cycle="says no")).bring_back(None)
    assert board.state == "own"
    assert "board lab: its power switch failed: sh failed with exit status 1: no such outlet" in caplog.text
    assert not mark(tmp_path).exists()


def test_a_power_switch_that_hangs_is_ended_and_said(
    board: FakeBoard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hangs(argv: list[str], *, timeout: float, last: bool) -> process.Completed:
        return process.Completed(tuple(argv), -9, timeout, True, "")

    monkeypatch.setattr(process, "run", hangs)
    board.state = "dead"
    with pytest.raises(InfrastructureError, match=r"its power switch failed: sh was ended after 60 s \(timeout\)"):
        keeper(board, tmp_path).bring_back(None, hangs=True)


def test_what_a_killed_run_left_is_brought_back_before_anything_else(board: FakeBoard, tmp_path: Path) -> None:
    board.dies = "hang"
    board.start()
    shell, known = keeper(board, tmp_path).own()
    assert (board.power_cycles, known.release, known.boot_id) == (1, "6.12.0-own", f"boot-{board.boots}")
    shell.close()


def test_a_board_that_nobody_left_is_not_power_cycled_because_it_does_not_answer(
    board: FakeBoard, tmp_path: Path
) -> None:
    board.state = "dead"
    with pytest.raises(
        InfrastructureError, match=r"board lab \(root@board.example:22\): it cannot be reached: timed out"
    ):
        Keeper(machine(), board.connect, tmp_path).own()
    assert board.power_cycles == 0


@pytest.mark.parametrize(("dies", "power_cycles"), [("", 0), ("hang", 1)])
def test_after_ctrl_c_a_board_is_rebooted_or_power_cycled_and_not_waited_for(
    board: FakeBoard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dies: str, power_cycles: int
) -> None:
    monkeypatch.setattr(process, "is_stopping", lambda: True)
    board.dies = dies
    board.start()
    began = board.clock.now
    keeper(board, tmp_path).bring_back("boot-0")
    assert (board.state, board.power_cycles) == ("own", power_cycles)
    assert board.clock.now - began < 1
    assert mark(tmp_path).exists(), "the next run looks whether it is back"
