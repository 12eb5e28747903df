# SPDX-License-Identifier: GPL-2.0-or-later
"""The cache's place, locks between processes, and atomic writes."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.store.atomic import write_text
from kpatch_ci.store.cache import cache_root, locked

HOLDER = """
import sys, time
from pathlib import Path
from kpatch_ci.store.cache import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""
TAKER = """
import sys
from pathlib import Path
from kpatch_ci.store.cache import locked
with locked(Path(sys.argv[1])):
    print("taken", flush=True)
"""


def test_the_cache_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.delenv("KPATCH_CI_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_root() == Path("/home/someone/.cache/kpatch-ci")
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/xdg")
    assert cache_root() == Path("/var/xdg/kpatch-ci")
    monkeypatch.setenv("KPATCH_CI_CACHE", "~/big")
    assert cache_root() == Path("/home/someone/big")


def test_a_lock_holds_others_off_until_its_holder_dies(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, tmp_path / "x"], stdout=subprocess.PIPE, text=True, env=env
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with subprocess.Popen(
            [sys.executable, "-c", TAKER, tmp_path / "x"], stdout=subprocess.PIPE, text=True, env=env
        ) as taker:
            with pytest.raises(subprocess.TimeoutExpired):
                taker.wait(0.5)
            holder.send_signal(signal.SIGKILL)
            assert taker.communicate(timeout=20)[0] == "taken\n"


def test_a_lock_is_free_again_after_an_exception(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), locked(tmp_path / "x"):
        raise RuntimeError
    with locked(tmp_path / "x"):
        pass


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "deep" / "result.json"
    write_text(target, "old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InfrastructureError, match="no space left"):
        write_text(target, "new")
    assert target.read_text() == "old"
    assert [p.name for p in target.parent.iterdir()] == ["result.json"]


def test_a_written_file_can_be_read_by_others(tmp_path: Path) -> None:
    write_text(tmp_path / "report.txt", "grün")
    assert (tmp_path / "report.txt").read_bytes() == "grün".encode()
    assert (tmp_path / "report.txt").stat().st_mode & 0o777 == 0o644


def test_a_thread_of_our_own_is_waited_for_without_a_word(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    order: list[str] = []

    def second() -> None:
        with locked(tmp_path / "x"):
            order.append("second")

    with caplog.at_level("INFO"), locked(tmp_path / "x"):
        thread = threading.Thread(target=second)
        thread.start()
        time.sleep(0.2)
        order.append("first")
    thread.join(5)
    assert order == ["first", "second"]
    assert caplog.messages == []
