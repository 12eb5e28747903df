# SPDX-License-Identifier: GPL-2.0-or-later
"""Console commands: what they print, what they leave behind, and how they fail."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kpatch_ci import process
from kpatch_ci.board import console as module
from kpatch_ci.board.console import Console, recorded
from kpatch_ci.board.install import TOKEN

MINE = f"{TOKEN}0123456789abcdef"
STARTED = f"[    0.000000] Kernel command line: panic=-1 {MINE}\n"


def alive(pid: int) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def until(true: Callable[[], object], seconds: float = 20) -> None:
    ends = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < ends, "it never came to that"
        time.sleep(0.02)


def said(place: Path, text: str, token: str = MINE) -> Console:
    place.joinpath("console.log").write_bytes(text.encode())
    return Console(place / "console.log", token)


def test_escapes_and_noise_of_the_line_do_not_hide_a_crash(tmp_path: Path) -> None:
    text = STARTED + "\0\0\x1b[2J\x1b[1;31mKernel panic\x1b[0m - not syncing: \x07no luck\x1b[K\r\n"
    assert said(tmp_path, text).lost() == "crashed: Kernel panic - not syncing: no luck"
    (tmp_path / "console.log").write_bytes(bytes(range(256)) * 50)
    noise = Console(tmp_path / "console.log", MINE)
    assert (noise.lost(), noise.silent(0)) == (None, 0.0)


def test_an_earlier_kernels_end_and_its_silence_are_not_this_ones(tmp_path: Path) -> None:
    console = said(tmp_path, f"Kernel command line: {TOKEN}ffffffffffffffff\nKernel panic - not syncing: old\n")
    console.begin()
    assert (console.lost(), console.silent(0), console.silent(1000)) == (None, 0.0, 0.0)
    with console.path.open("a") as stream:
        stream.write("BUG: of its own system, on its way down\n" + STARTED)
    assert console.lost() is None
    assert (console.silent(1000), console.silent(1030)) == (0.0, 30.0)
    assert console.got_to() == "its console said nothing"


def test_silence_is_counted_by_a_clock_that_nobody_sets(tmp_path: Path) -> None:
    console = said(tmp_path, STARTED)
    os.utime(console.path, (1, 1))
    assert console.silent(5000) == 0.0, "from when it was first looked at"
    assert console.silent(5010) == 10.0


def test_a_command_that_ended_is_said_and_its_silence_is_not_the_kernels(tmp_path: Path) -> None:
    with recorded(f"echo '{STARTED.strip()}'; exit 3", tmp_path / "console.log", MINE) as console:
        assert console.ended_at_once() == "its console command ended with exit status 3"
        assert (console.silent(0), console.silent(1000)) == (0.0, 0.0)
        assert console.got_to() == "its console said nothing; its console command ended with exit status 3"


def test_a_command_that_works_has_not_ended_and_is_let_tidy_up(tmp_path: Path) -> None:
    tidy = tmp_path / "tidy"
    script = f"trap 'sleep 0.2; echo done >{tidy}; exit' TERM; echo up; while :; do sleep 0.05; done"
    with recorded(script, tmp_path / "console.log") as console:
        until(lambda: "up" in console.text)
        assert console.ended_at_once() is None
    assert tidy.read_text() == "done\n"


def test_a_command_that_prints_without_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LIMIT", 1 << 20)
    with recorded("yes garbage", tmp_path / "console.log") as console:
        until(lambda: console.ended() == "its console command was ended after it had printed 1 MiB")
        assert console._command
        assert console._command.wait(10) is not None
        assert console.lost() is None


@pytest.mark.parametrize(
    ("command", "sleeps"), [("sleep 600", 1), ("sleep 600 | cat", 1), ("trap '' TERM; sleep 600 & sleep 601", 2)]
)
def test_a_command_does_not_outlive_this_process_even_where_that_is_killed(
    tmp_path: Path, command: str, sleeps: int
) -> None:
    """Nothing of its whole process group does."""
    told = tmp_path / "pid"
    holder = f"""
import sys, time
from pathlib import Path
from kpatch_ci.board.console import recorded
with recorded({command!r}, Path({str(tmp_path / "console.log")!r})) as console:
    Path({str(told)!r}).write_text(str(console._command.pid))
    time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", holder]) as run:
        try:
            until(lambda: told.exists() and told.read_text())
            group = int(told.read_text())
            until(lambda: [name(pid) for pid in members(group)].count("sleep") == sleeps)
            mine = members(group)
        finally:
            run.send_signal(signal.SIGKILL)
    until(lambda: not any(alive(pid) for pid in mine))


def name(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def members(group: int) -> list[int]:
    """Processes of a process group."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[2]) == group:
                found.append(int(stat.parent.name))
    return found


def test_what_a_command_left_running_is_ended_when_the_console_is_left(tmp_path: Path) -> None:
    with recorded("sleep 600 & echo up", tmp_path / "console.log") as console:
        assert console._command
        group = console._command.pid
        until(lambda: console.ended() is not None)
        mine = members(group)
    until(lambda: not any(alive(pid) for pid in mine))
    assert not process.is_stopping()
