# SPDX-License-Identifier: GPL-2.0-or-later
"""Who answers after a kernel was started, and what is said where nobody does."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpatch_ci.board import wait
from kpatch_ci.board.console import Console
from kpatch_ci.board.install import Known
from kpatch_ci.board.own import Network
from kpatch_ci.board.ssh import SilentError
from kpatch_ci.board.wait import Lost, kernel_under_test, own_system
from kpatch_ci.model.board import Login
from kpatch_ci.model.errors import InfrastructureError
from tests.fakes.board import Clock, FakeBoard, FakeShell, machine

START = "kpci.token=1234"
KNOWN = Known("6.12.0-own", "boot-0", Network("52:54:00:12:34:56", "192.0.2.7/24", None))


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeBoard:
    clock = Clock()
    monkeypatch.setattr(wait, "time", clock)
    return FakeBoard(clock, console=tmp_path / "console.log", loaded=f"panic=-1 {START}")


def waited(board: FakeBoard, token: str = START) -> object:
    assert board.console
    return kernel_under_test(board.connect, machine(), KNOWN, token=token, console=Console(board.console))


def test_the_kernel_with_the_token_is_the_one_that_was_waited_for(board: FakeBoard) -> None:
    board.start()
    shell = waited(board)
    assert not isinstance(shell, Lost)
    assert not shell.closed  # type: ignore[attr-defined]


def test_a_kernel_of_another_start_is_not(board: FakeBoard) -> None:
    board.start()
    assert waited(board, "kpci.token=12345") == Lost(
        "it ended before it answered, and the board is back with 6.12.0-own"
    )


def test_a_panic_is_told_from_the_console_at_once(board: FakeBoard) -> None:
    board.dies = "panic"
    board.start()
    began = board.clock.now
    assert waited(board) == Lost("crashed: Kernel panic - not syncing: no luck")
    assert board.clock.now - began < 3


def test_a_board_that_is_back_with_its_own_system_says_that_the_kernel_ended(board: FakeBoard) -> None:
    board.dies = "reset"
    board.start()
    assert waited(board) == Lost("it ended before it answered, and the board is back with 6.12.0-own", own=True)


def test_a_kernel_without_network_is_told_by_its_init(board: FakeBoard) -> None:
    board.dies = "mute"
    board.start()
    assert waited(board) == Lost("it booted, but it has no network: there is no card")


def test_a_console_that_stops_is_a_hang_with_its_last_words(board: FakeBoard) -> None:
    board.dies = "hang"
    board.start()
    began = board.clock.now
    last = "the last that its console said: [    0.000000] Linux version"
    assert waited(board) == Lost(f"it hangs: nothing from it for 12 s; {last}")
    assert 12 <= board.clock.now - began < 16


def test_before_the_kernel_has_begun_nobody_is_called_hanging_for_being_silent(board: FakeBoard) -> None:
    board.say("firmware: memory training\n")
    board.state = "hung"
    assert waited(board) == Lost(
        "no answer over SSH within 30 s; the last that its console said: firmware: memory training"
    )


def test_a_kernel_that_has_its_address_may_be_silent_and_gets_the_whole_time(board: FakeBoard) -> None:
    board.dies = "hang"
    board.start()
    board.say("kpatch-ci board: network: eth0 has 192.0.2.7/24\n")
    began = board.clock.now
    said = "its console says that it booted and has its address"
    assert waited(board) == Lost(f"no answer over SSH within 30 s; {said}")
    assert 30 <= board.clock.now - began < 32


def test_a_console_that_says_nothing_is_said_too(board: FakeBoard) -> None:
    board.state, board.console = "hung", Path("/nonexistent/console")
    lost = waited(board)
    assert isinstance(lost, Lost)
    assert lost.reason.endswith("; its console said nothing")


def test_a_board_that_never_leaves_its_own_system_is_at_fault_and_no_kernel_is(board: FakeBoard) -> None:
    board.answers["start.log"] = "Failed to start kexec.target:\nno kernel is loaded\n"
    what = "its own system did not give way within 30 s: the kernel was never started"
    with pytest.raises(
        InfrastructureError, match=rf"board lab .*: {what} \(Failed to start kexec.target: no kernel is loaded\)"
    ):
        waited(board)


def test_a_board_that_was_away_for_a_moment_and_never_left_is_at_fault_too(board: FakeBoard) -> None:
    connect, away = board.connect, [SilentError("timed out")] * 2

    def flaky(login: Login, timeout: float) -> FakeShell:
        if away:
            raise away.pop()
        return connect(login, timeout)

    with pytest.raises(InfrastructureError, match="the kernel was never started"):
        kernel_under_test(flaky, machine(), KNOWN, token=START, console=Console(Path("/nonexistent/console")))


def test_its_own_system_counts_only_after_another_boot(board: FakeBoard) -> None:
    assert own_system(board.connect, machine(), "boot-0", 10) is None
    board.reboot()
    met = own_system(board.connect, machine(), "boot-0", 10)
    assert met is not None
    assert (met.boot_id, met.under_test) == ("boot-1", False)


def test_a_kernel_under_test_is_not_its_own_system(board: FakeBoard) -> None:
    board.start()
    assert own_system(board.connect, machine(), None, 10) is None
