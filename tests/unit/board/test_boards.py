# SPDX-License-Identifier: GPL-2.0-or-later
"""A kernel on a board, from its start to the return of the board's own system; failures of the kernel are results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kpatch_ci import process
from kpatch_ci.board import boards as module
from kpatch_ci.board import bring_back, running, wait
from kpatch_ci.board.boards import Boards
from kpatch_ci.board.console import Console, recorded
from kpatch_ci.board.install import Files
from kpatch_ci.board.running import Subject
from kpatch_ci.board.ssh import BrokenError, SilentError
from kpatch_ci.guest.events import find_event
from kpatch_ci.guest.guests import RawRun
from kpatch_ci.model.board import Login, Quiet
from kpatch_ci.model.boot import BootResult
from kpatch_ci.model.build import BuildResult
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.model.machine import Machine
from kpatch_ci.model.status import Status
from kpatch_ci.store.cache import locked
from tests.fakes.board import NOTES, Clock, FakeBoard, FakeShell, machine

JOB = "seed\t1\ntimeout\t60\nrun\thackbench\n"


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeBoard:
    clock = Clock()
    made = FakeBoard(clock, console=tmp_path / "console.log")
    for place in (wait, module, running, bring_back):
        monkeypatch.setattr(place, "time", clock)

    def power(argv: list[str], **_: object) -> process.Completed:
        made.power_cycle()
        return process.Completed(tuple(argv), 0, 0.1, False, "")

    class Recorded:
        def __init__(self, command: str | None, path: Path, token: str) -> None:
            made.console, self.token = path, token

        def __enter__(self) -> Console:
            assert made.console
            return Console(made.console, self.token)

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr(process, "run", power)
    monkeypatch.setattr(module, "recorded", Recorded)
    return made


def subject(place: Path, arm: str = "baseline", seed: int = 1, image: bytes = b"..." + NOTES + b"...") -> Subject:
    for name, content in (("image", image), ("initrd", b"i"), ("busybox", b"b")):
        (place / name).write_bytes(content)
    build = BuildResult(
        Status.PASSED, arm, "x86_64", "tree", "key", 1.0, 1, False, release="6.1.0", image_digest=arm, artifact=place
    )
    return Subject(build, Files(place / "image", place / "initrd", place / "busybox"), ("null_blk",), seed)


def boards(board: FakeBoard, place: Path) -> Boards:
    return Boards(place / "cache", replicate_timeout=60, connect=board.connect)


def boot(board: FakeBoard, place: Path, of: Machine | None = None, **changes: Any) -> BootResult:
    return boards(board, place).boot(subject(place, **changes), of or machine(), place / "logs")


def run(board: FakeBoard, place: Path, of: Machine | None = None) -> RawRun:
    return boards(board, place).replicate(subject(place), of or machine(), JOB, logs=place / "logs", name="one")


def test_a_boot_says_what_the_board_is_and_leaves_it_with_its_own_system(board: FakeBoard, tmp_path: Path) -> None:
    found = boot(board, tmp_path)
    assert (found.status, found.reason, found.facts["cpus"]) == (Status.PASSED, "", 2)
    assert found.facts["board"] == {"load": 0.1}
    assert (board.state, board.boots, board.power_cycles) == ("own", 2, 0)
    assert found.console == tmp_path / "logs/boot-x86_64-baseline-1.console.log"
    assert not list((tmp_path / "cache/boards").glob("*.left"))
    assert "panic=-1" in board.loaded
    assert "kpci.boot_seed=1" in board.loaded


def test_one_boot_shows_for_all_seeds_that_a_kernel_starts(board: FakeBoard, tmp_path: Path) -> None:
    made = boards(board, tmp_path)
    first = made.boot(subject(tmp_path), machine(), tmp_path / "logs")
    second = made.boot(subject(tmp_path, seed=2), machine(), tmp_path / "logs")
    assert (first.cached, second.cached, second.boot_seed, board.boots) == (False, True, 2, 2)
    made.boot(subject(tmp_path, arm="patched"), machine(), tmp_path / "logs")
    assert board.boots == 4, "another kernel is another boot"


def test_a_boot_that_failed_stands_for_the_other_seeds_in_one_line(board: FakeBoard, tmp_path: Path) -> None:
    board.dies = "panic"
    made = boards(board, tmp_path)
    made.boot(subject(tmp_path), machine(), tmp_path / "logs")
    boots = board.boots
    other = made.boot(subject(tmp_path, seed=2), machine(), tmp_path / "logs")
    assert other.reason == "as under boot seed 1: crashed: Kernel panic - not syncing: no luck"
    assert (other.status, other.log_tail, other.console, board.boots) == (Status.FAILED, "", None, boots)


@pytest.mark.parametrize(
    ("dies", "reason", "power_cycles"),
    [
        ("panic", "crashed: Kernel panic - not syncing: no luck", 1),
        ("hang", "it hangs: nothing from it for 12 s; the last that its console said: ", 1),
        ("mute", "it booted, but it has no network", 1),
        ("reset", "it ended before it answered, and the board is back with 6.12.0-own", 0),
    ],
)
def test_a_kernel_that_does_not_come_up_is_a_result_with_its_console(
    board: FakeBoard, tmp_path: Path, dies: str, reason: str, power_cycles: int
) -> None:
    board.dies = dies
    found = boot(board, tmp_path)
    assert found.status is Status.FAILED
    assert reason in found.reason
    assert "Linux version" in found.log_tail
    assert found.console
    assert "Linux version" in found.console.read_text()
    assert (board.state, board.power_cycles) == ("own", power_cycles)


def test_another_kernel_than_the_one_that_was_sent_is_not_accepted(board: FakeBoard, tmp_path: Path) -> None:
    found = boot(board, tmp_path, image=b"of another build")
    assert found.status is Status.FAILED
    assert "the build id of what runs is not that of the image that was sent" in found.reason
    assert board.state == "own"


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"cpus": 1}, "CPUs: 1, it should be 2"),
        ({"release": "6.1.1"}, "kernel release: 6.1.1, it should be 6.1.0"),
        ({"mem_kb": 512 * 1024}, "memory: 512 MiB, the machine file says 1024"),
        ({"clocksource": "tsc-early"}, "clock source: tsc-early"),
        ({"modules": []}, "module null_blk: not loaded"),
        ({"cpu": 7}, "its facts have not the form of the agent's"),
    ],
)
def test_a_board_that_is_not_what_the_machine_file_says_is_a_failed_boot(
    board: FakeBoard, tmp_path: Path, changed: dict[str, Any], reason: str
) -> None:
    board.facts |= changed
    found = boot(board, tmp_path)
    assert found.status is Status.FAILED
    assert reason in found.reason
    assert found.differences


def test_a_clock_source_that_was_asked_for_is_checked(board: FakeBoard, tmp_path: Path) -> None:
    assert "clock source: tsc, it should be hpet" in boot(board, tmp_path, machine(clocksource="hpet")).reason


def test_a_governor_that_cannot_be_set_is_a_failed_boot(board: FakeBoard, tmp_path: Path) -> None:
    board.answers["scaling_governor; do"] = "failed governor performance: no cpufreq\n"
    found = boot(board, tmp_path, machine(quiet=Quiet("performance")))
    assert "cannot be set: governor performance: no cpufreq" in found.reason


def test_a_run_has_facts_circumstances_and_the_jobs_events(board: FakeBoard, tmp_path: Path) -> None:
    found = run(board, tmp_path)
    assert (found.status, found.reason) == (Status.PASSED, "")
    names = [json.loads(line)["event"] for line in found.text.splitlines()]
    assert names == ["facts", "board", "job", "end"]
    seen = find_event(found.text, "board")
    assert seen
    assert (seen["before"], seen["after"]) == ({"load": 0.1}, {"load": 0.1})
    assert json.loads((tmp_path / "logs/one.board.json").read_text()) == seen
    assert board.state == "own"


def test_a_kernel_that_panics_in_its_job_is_a_failed_run(board: FakeBoard, tmp_path: Path) -> None:
    board.dies = "job"
    found = run(board, tmp_path)
    assert (found.status, found.reason) == (Status.FAILED, "crashed: Kernel panic - not syncing: in the job")
    assert board.state == "own"


def test_a_job_that_the_agent_gives_up_is_a_failed_run_with_its_reason(board: FakeBoard, tmp_path: Path) -> None:
    board.answers["kpci-agent job"] = '{"event":"end","status":"failed","reason":"prep mkfs: exit status 1"}\n'
    assert (run(board, tmp_path).status, run(board, tmp_path).reason) == (Status.FAILED, "prep mkfs: exit status 1")


THROTTLED = "throttled /sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count {}\n"
HOT = "millicelsius /sys/class/thermal/thermal_zone0/temp {}\n"


def test_a_run_in_which_the_board_throttled_does_not_count(board: FakeBoard, tmp_path: Path) -> None:
    board.looks = ["", THROTTLED.format(1), THROTTLED.format(4)]
    found = run(board, tmp_path)
    assert (found.status, found.reason) == (
        Status.ERROR,
        "the board throttled 3 times while it ran (? degrees Celsius)",
    )


def test_a_hot_board_waits_until_it_is_cool(board: FakeBoard, tmp_path: Path) -> None:
    board.looks = [HOT.format(70000), HOT.format(70000), HOT.format(66000), HOT.format(59000), HOT.format(59500)]
    found = run(board, tmp_path, machine(quiet=Quiet(max_celsius=60)))
    assert found.status is Status.PASSED
    seen = find_event(found.text, "board")
    assert seen
    assert (seen["before"]["celsius"], seen["after"]["celsius"]) == (59.0, 59.5)


def test_a_board_that_stays_hot_is_not_measured(board: FakeBoard, tmp_path: Path) -> None:
    board.looks = [HOT.format(70000)] * 100
    found = run(board, tmp_path, machine(quiet=Quiet(max_celsius=60, cool_seconds=30)))
    assert (found.status, found.reason) == (Status.ERROR, "it did not cool down to 60 degrees Celsius within 30 s")
    assert "kpci-agent job" not in board.asked


def test_a_board_without_a_sensor_cannot_be_kept_cool(board: FakeBoard, tmp_path: Path) -> None:
    found = boot(board, tmp_path, machine(quiet=Quiet(max_celsius=60)))
    assert found.status is Status.FAILED
    assert "no sensor shows a temperature, and 60 degrees Celsius are the limit" in found.reason


def test_a_connection_that_breaks_while_the_kernel_lives_is_an_error_and_no_failure(
    board: FakeBoard, tmp_path: Path
) -> None:
    board.breaks["kpci-agent job"] = 1
    found = run(board, tmp_path)
    why = "while it ran: the connection broke, and the same kernel answers again: not its fault"
    assert (found.status, found.reason) == (Status.ERROR, why)
    assert (board.state, board.power_cycles) == ("own", 0)


def test_a_connection_that_breaks_because_the_kernel_is_gone_is_a_failed_run(
    board: FakeBoard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a console: a reboot is all that is seen."""
    monkeypatch.setattr(FakeBoard, "say", lambda *_: None)
    board.dies = "job"
    found = run(board, tmp_path)
    why = "while it ran: the connection broke, and the board is back with 6.12.0-own"
    assert (found.status, found.reason) == (Status.FAILED, why)


def test_a_kernel_that_nobody_reaches_any_more_is_a_failed_run(
    board: FakeBoard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hang(_: FakeBoard) -> str:
        board.state = "hung"
        raise BrokenError("the connection broke")

    monkeypatch.setattr(FakeBoard, "_job", hang)
    began = board.clock.now
    found = run(board, tmp_path)
    assert (found.status, found.reason) == (Status.FAILED, "while it ran: the connection broke")
    assert 12 <= board.clock.now - began < 60, "it was looked for"


def test_a_network_that_breaks_once_more_after_the_boot_is_no_failed_boot(board: FakeBoard, tmp_path: Path) -> None:
    board.breaks["kpci-agent facts"] = 2
    assert boot(board, tmp_path).status is Status.PASSED
    board.breaks["kpci-agent facts"] = 3
    found = boot(board, tmp_path)
    assert found.reason == "it answered, and then no more: the connection broke"
    assert (board.state, board.power_cycles) == ("own", 0), "it could be asked to reboot"


def test_what_a_console_server_shows_of_an_earlier_start_is_not_this_kernels(
    board: FakeBoard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shows_old(console: Console) -> None:
        board.say("[    1.0] Kernel command line: kpci.token=0123456789abcdef\nKernel panic - not syncing: old\n")

    monkeypatch.setattr(Console, "ended_at_once", shows_old)
    assert (boot(board, tmp_path).status, run(board, tmp_path).status) == (Status.PASSED, Status.PASSED)


def test_what_its_own_system_says_as_it_goes_down_is_not_this_kernels(
    board: FakeBoard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = Console.begin

    def goes_down(console: Console) -> None:
        begin(console)
        board.say("BUG: workqueue lockup - pool cpus=0\n")

    monkeypatch.setattr(Console, "begin", goes_down)
    assert boot(board, tmp_path).status is Status.PASSED


def test_a_console_command_that_does_not_work_is_an_error_before_the_board_is_left(
    board: FakeBoard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "recorded", recorded)
    broken = machine(console="echo no such console; exit 4")
    what = r"board lab .*: its console command ended with exit status 4: no such console"
    with pytest.raises(InfrastructureError, match=what):
        boot(board, tmp_path, broken)
    assert (board.state, board.boots) == ("own", 0)
    with pytest.raises(InfrastructureError, match=what):
        boards(board, tmp_path).prepare(broken)


@pytest.mark.parametrize(
    ("part", "words", "said"),
    [
        ("kexec -c", "Cannot load", ("kexec did not load the kernel: Cannot load", "must be able to do this")),
        ("gzip -dc", "No space left on device", ("kernel cannot be copied to /var/tmp/kpatch-ci/", "make room there")),
    ],
)
def test_what_a_board_cannot_do_before_the_start_is_no_kernels_fault(
    board: FakeBoard, tmp_path: Path, part: str, words: str, said: tuple[str, str]
) -> None:
    board.refuses[part] = words
    with pytest.raises(InfrastructureError, match=f"board lab .*: {said[0]}") as caught:
        boot(board, tmp_path)
    assert said[1] in str(caught.value.hint)
    assert (board.state, board.boots) == ("own", 0)


def test_a_start_that_never_happens_is_an_error_and_the_board_is_its_own(board: FakeBoard, tmp_path: Path) -> None:
    board.answers["kexec -e"] = ""
    with pytest.raises(InfrastructureError, match="the kernel was never started"):
        boot(board, tmp_path)
    assert (board.state, board.power_cycles) == ("own", 0)


def test_who_is_told_to_stop_waits_no_longer_for_a_board_that_another_run_has(
    board: FakeBoard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopping() -> None:
        raise InfrastructureError("stopping")

    monkeypatch.setattr(process, "check_stopping", stopping)
    with locked(tmp_path / "cache/boards/board.example-22"), pytest.raises(InfrastructureError, match="stopping"):
        boot(board, tmp_path)


def test_a_connection_that_breaks_while_it_is_copied_is_made_once_more(board: FakeBoard, tmp_path: Path) -> None:
    board.breaks["gzip -dc"] = 1
    assert boot(board, tmp_path).status is Status.PASSED
    board.files.clear()
    board.breaks["gzip -dc"] = 2
    with pytest.raises(InfrastructureError, match=r"board lab .*: it stopped answering: the connection broke"):
        boot(board, tmp_path)


def test_a_board_that_does_not_answer_between_two_starts_is_waited_for_a_little(
    board: FakeBoard, tmp_path: Path
) -> None:
    connect, began = board.connect, board.clock.now

    def away(login: Login, timeout: float) -> FakeShell:
        if board.clock.now < began + 5:
            raise SilentError("timed out")
        return connect(login, timeout)

    made = Boards(tmp_path / "cache", replicate_timeout=60, connect=away)
    assert made.boot(subject(tmp_path), machine(), tmp_path / "logs").status is Status.PASSED
    board.state = "dead"
    with pytest.raises(InfrastructureError, match="it cannot be reached: timed out"):
        made.replicate(subject(tmp_path), machine(), JOB, logs=tmp_path / "logs", name="one")
    assert board.clock.now - began > 12
