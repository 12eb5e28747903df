# SPDX-License-Identifier: GPL-2.0-or-later
"""A kernel on a board, from its start to the return of the board's own system; failures of the kernel are results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kpatch_ci import process
from kpatch_ci.board import boards as module
from kpatch_ci.board import wait
from kpatch_ci.board.boards import Boards, Subject
from kpatch_ci.board.console import Console
from kpatch_ci.board.install import Files
from kpatch_ci.guest.events import find_event
from kpatch_ci.guest.guests import RawRun
from kpatch_ci.model.board import Quiet
from kpatch_ci.model.boot import BootResult
from kpatch_ci.model.build import BuildResult
from kpatch_ci.model.machine import Machine
from kpatch_ci.model.status import Status
from tests.fakes.board import NOTES, Clock, FakeBoard, machine

JOB = "seed\t1\ntimeout\t60\nrun\thackbench\n"


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeBoard:
    clock = Clock()
    made = FakeBoard(clock, console=tmp_path / "console.log")
    for place in (wait, module):
        monkeypatch.setattr(place, "time", clock)

    def power(argv: list[str], **_: object) -> process.Completed:
        made.power_cycle()
        return process.Completed(tuple(argv), 0, 0.1, False, "")

    class Recorded:
        def __init__(self, command: str | None, path: Path) -> None:
            made.console = path

        def __enter__(self) -> Console:
            assert made.console
            return Console(made.console)

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
    board.looks = ["", HOT.format(70000), HOT.format(66000), HOT.format(59000), HOT.format(59500)]
    found = run(board, tmp_path, machine(quiet=Quiet(max_celsius=60)))
    assert found.status is Status.PASSED
    seen = find_event(found.text, "board")
    assert seen
    assert (seen["before"]["celsius"], seen["after"]["celsius"]) == (59.0, 59.5)


def test_a_board_that_stays_hot_is_not_measured(board: FakeBoard, tmp_path: Path) -> None:
    board.looks = ["", *[HOT.format(70000)] * 100]
    found = run(board, tmp_path, machine(quiet=Quiet(max_celsius=60, cool_seconds=30)))
    assert (found.status, found.reason) == (Status.ERROR, "it did not cool down to 60 degrees Celsius within 30 s")
    assert "kpci-agent job" not in board.asked
