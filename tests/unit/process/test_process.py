# SPDX-License-Identifier: GPL-2.0-or-later
"""The door to subprocesses: timeouts, process groups, logs."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kpatch_ci import process
from kpatch_ci.model.errors import InfrastructureError

GRANDCHILD = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
open(sys.argv[1] + ".new", "w").write(str(child.pid))
import os; os.rename(sys.argv[1] + ".new", sys.argv[1])
time.sleep(60)
"""
DEAF = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(sys.argv[1], "w").close()
time.sleep(60)
"""


@pytest.fixture
def _restartable() -> Iterator[None]:
    yield
    process._stopping.clear()


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    with contextlib.suppress(FileNotFoundError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def eventually(condition: object, seconds: float = 10.0) -> bool:
    assert callable(condition)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return False


def test_a_command_that_ends_says_how_and_what() -> None:
    done = process.run(["sh", "-c", "echo out; echo err >&2; exit 3"], timeout=10)
    assert (done.returncode, done.ok, done.timed_out) == (3, False, False)
    assert done.output.splitlines() == ["out", "err"]
    assert done.explain() == "sh failed with exit status 3"


def test_a_signal_is_named() -> None:
    done = process.run(["sh", "-c", "kill -SEGV $$"], timeout=10)
    assert done.explain() == "sh was ended by SIGSEGV"


def test_a_timeout_ends_grandchildren_too(tmp_path: Path) -> None:
    told = tmp_path / "pid"
    runner = threading.Thread(
        target=lambda: results.append(process.run([sys.executable, "-c", GRANDCHILD, told], timeout=3))
    )
    results: list[process.Completed] = []
    runner.start()
    assert eventually(told.exists)
    grandchild = int(told.read_text())
    assert alive(grandchild)
    runner.join(20)
    assert results[0].timed_out
    assert not results[0].ok
    assert "timeout" in results[0].explain()
    assert eventually(lambda: not alive(grandchild), 2)


def test_what_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    with process.Process([sys.executable, "-c", DEAF, ready]) as child:
        assert eventually(ready.exists)
        child.kill(grace=0.1)
        assert child.poll() == -signal.SIGKILL


def test_leaving_the_block_ends_the_child() -> None:
    with process.Process(["sleep", "60"]) as child:
        pid = child.pid
        assert alive(pid)
    assert not alive(pid)


def test_an_exception_in_the_block_ends_the_child() -> None:
    pids: list[int] = []

    def fails() -> None:
        with process.Process(["sleep", "60"]) as child:
            pids.append(child.pid)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fails()
    assert not alive(pids[0])


@pytest.mark.usefixtures("_restartable")
def test_kill_all_ends_every_child_and_refuses_new_ones(tmp_path: Path) -> None:
    marks = [tmp_path / str(n) for n in range(4)]
    with contextlib.ExitStack() as stack:
        children = [stack.enter_context(process.Process([sys.executable, "-c", DEAF, m])) for m in marks]
        assert eventually(lambda: all(m.exists() for m in marks))
        began = time.monotonic()
        assert process.kill_all() == 4
        assert time.monotonic() - began < 1.5, "one grace for all of them, not one each"
        assert all(not alive(c.pid) for c in children)
        with pytest.raises(InfrastructureError, match="stopping"):
            process.run(["true"], timeout=1)


@pytest.mark.usefixtures("_restartable")
def test_kill_all_lets_every_child_tidy_up_even_beside_a_deaf_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class InOrder(dict[process.Process, None]):
        def add(self, item: process.Process) -> None:
            self[item] = None

        def discard(self, item: process.Process) -> None:
            self.pop(item, None)

    monkeypatch.setattr(process, "_live", InOrder())
    script = 'trap "touch $0.tidy; exit 0" TERM; touch $0; while :; do sleep 0.05; done'
    deaf, polite = tmp_path / "deaf", tmp_path / "polite"
    with (
        process.Process([sys.executable, "-c", DEAF, deaf]),
        process.Process(["sh", "-c", script, polite]),
    ):
        assert eventually(lambda: deaf.exists() and polite.exists())
        process.kill_all()
    assert (tmp_path / "polite.tidy").exists()


def test_a_program_that_is_not_there_is_the_machines_fault() -> None:
    with pytest.raises(InfrastructureError, match=r"no-such-program: no such program[\s\S]*doctor"):
        process.run(["no-such-program"], timeout=1)


def test_a_log_takes_the_output_and_its_tail_is_returned(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "seq.log"
    done = process.run(["seq", "100"], timeout=10, log=log)
    assert log.read_text().splitlines()[0] == "1"
    assert done.output.splitlines() == [str(n) for n in range(71, 101)]
    assert done.log == log


def test_standard_input_is_what_was_given_or_nothing() -> None:
    assert process.run(["cat"], timeout=10, stdin=b"words").output == "words"
    assert process.run(["cat"], timeout=10).output == ""


def test_a_child_sees_only_the_environment_that_it_was_given() -> None:
    assert process.run(["/usr/bin/env"], timeout=10, env={"ONLY": "this"}).output == "ONLY=this\n"


def test_a_child_has_a_session_of_its_own() -> None:
    with process.Process(["sleep", "60"]) as child:
        assert os.getsid(child.pid) == child.pid


def test_the_tail_of_a_long_file_is_its_last_lines(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x" * 200_000 + b"\nlast but one\nlast \xff\n")
    assert process.tail(path, lines=2) == "last but one\nlast \ufffd"
    assert process.tail(tmp_path / "absent") == ""


def test_output_can_be_read_while_it_runs() -> None:
    with process.Process(["sh", "-c", "echo hello; sleep 60"], stdout=process.PIPE) as child:
        assert child.stdout.readline() == b"hello\n"
    with process.Process(["true"]) as silent, pytest.raises(ValueError, match="PIPE"):
        _ = silent.stdout


@pytest.mark.usefixtures("_restartable")
def test_ctrl_c_while_a_child_is_being_started_does_not_lose_it(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []
    real = subprocess.Popen

    def interrupted(*args: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(real(*args, **options))
        os.kill(os.getpid(), signal.SIGINT)
        return started[0]

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        process.Process(["sleep", "60"])
    assert signal.getsignal(signal.SIGINT) is before
    assert process.kill_all() == 1
    assert not alive(started[0].pid)
    process._live.clear()
