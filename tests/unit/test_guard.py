# SPDX-License-Identifier: GPL-2.0-or-later
"""The guard in conftest.py does guard."""

from __future__ import annotations

import socket
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import FakeTool


def test_a_real_tool_named_by_its_path_is_refused() -> None:
    with pytest.raises(pytest.fail.Exception, match="the real /usr/bin/apt-get"):
        subprocess.run(["/usr/bin/apt-get", "--version"], check=False)


def test_a_real_tool_found_through_an_environment_of_its_own_is_refused() -> None:
    with pytest.raises(pytest.fail.Exception, match="dpkg-deb"):
        subprocess.run(["dpkg-deb", "--version"], check=False, env={"PATH": "/usr/bin:/bin"})  # noqa: S607


def test_a_real_tool_called_by_a_script_complains() -> None:
    done = subprocess.run(["sh", "-c", "apt-get --version"], check=False, capture_output=True, text=True)  # noqa: S607
    assert done.returncode == 97
    assert "put a fake on PATH" in done.stderr


def test_a_fake_is_welcome_and_so_is_git(fake_tool: FakeTool) -> None:
    fake_tool("apt-get", "echo fake")
    assert subprocess.run(["apt-get"], check=False, capture_output=True, text=True).stdout == "fake\n"  # noqa: S607
    assert subprocess.run(["git", "--version"], check=False, capture_output=True).returncode == 0  # noqa: S607


def test_the_network_is_refused() -> None:
    with socket.socket() as stream, pytest.raises(pytest.fail.Exception, match="connect"):
        stream.connect(("192.0.2.1", 80))
    with pytest.raises(pytest.fail.Exception, match="look up"):
        socket.create_connection(("archive.example", 80))
