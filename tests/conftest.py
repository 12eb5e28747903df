# SPDX-License-Identifier: GPL-2.0-or-later
"""A guard around unit tests: no real tool that installs, builds or boots, and no network.

A test that needs such a tool puts a fake one on PATH (``fake_tool``) or names a fake by its path.
"""

from __future__ import annotations

import fnmatch
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

REAL_TOOLS = (
    "apt-*", "apt", "dpkg*", "make", "gcc*", "qemu-*", "bwrap", "sudo", "ssh", "scp", "pip", "pip3", "curl", "wget",
)  # fmt: skip
BLOCKED = ("apt-get", "apt-cache", "apt-config", "dpkg-deb", "make", "bwrap", "sudo", "ssh", "pip", "pip3")
"""What a shell script that a test runs finds first."""
SYSTEM = ("/bin/", "/sbin/", "/usr/", "/opt/")
UNIT = Path(__file__).parent / "unit"

FakeTool = Callable[[str, str], Path]


@pytest.fixture(scope="session")
def blockers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of programs that only complain."""
    place = tmp_path_factory.mktemp("blockers")
    for name in BLOCKED:
        _write(place / name, f'echo "a unit test called the real {name}: put a fake on PATH" >&2; exit 97')
    return place


@pytest.fixture(autouse=True)
def guard(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, blockers: Path) -> None:
    """Keeps real tools and the network out of tests/unit."""
    if not request.path.is_relative_to(UNIT):
        return
    monkeypatch.setenv("PATH", f"{blockers}:{os.environ['PATH']}")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)  # nobody's name, nobody's settings
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("KPATCH_CI_HISTORY", str(blockers / "history" / "of-tests.sqlite3"))  # nobody's own
    real_popen = subprocess.Popen.__init__

    def popen(self: Any, args: Any, *rest: Any, **options: Any) -> None:
        _refuse_real_tool(args, options.get("env"))
        real_popen(self, args, *rest, **options)

    monkeypatch.setattr(subprocess.Popen, "__init__", popen)
    real_connect = socket.socket.connect

    def connect(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX:
            pytest.fail(f"a unit test wanted to connect to {address}")
        real_connect(self, address)

    def resolve(*args: Any, **_: Any) -> None:
        pytest.fail(f"a unit test wanted to look up {args[0]}")

    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setattr(socket, "getaddrinfo", resolve)


def _refuse_real_tool(args: Any, env: Any) -> None:
    first = os.fsdecode(args if isinstance(args, str | bytes | os.PathLike) else args[0])
    name = Path(first).name
    if not any(fnmatch.fnmatch(name, pattern) for pattern in REAL_TOOLS):
        return
    where = shutil.which(first, path=(os.environ if env is None else env).get("PATH"))
    if where is not None and where.startswith(SYSTEM):
        pytest.fail(f"a unit test called the real {where}: put a fake on PATH")


@pytest.fixture
def fake_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeTool:
    """``fake_tool(name, shell_script)`` puts a program first on PATH and returns its path."""
    place = tmp_path / "fake-bin"
    place.mkdir()
    monkeypatch.setenv("PATH", f"{place}:{os.environ['PATH']}")
    return lambda name, script: _write(place / name, script)


def _write(path: Path, script: str) -> Path:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True, scope="session")
def _interruptible() -> None:
    """A shell's background job ignores Ctrl-C, and its children inherit that: tests of interrupts would not see any."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
