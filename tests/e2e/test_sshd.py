# SPDX-License-Identifier: GPL-2.0-or-later
"""The SSH servers that stand in for other machines do what the tests of hosts need of them."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.sshclient import Client
from tests.e2e.sshd import SshHost, host, install

pytestmark = pytest.mark.e2e


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    install()
    with ExitStack() as made:
        yield made


def ssh(one: SshHost, command: str, *, seconds: float = 10) -> subprocess.CompletedProcess[str]:
    """Log in with OpenSSH's own client, which knows no more than the test's."""
    return subprocess.run(_argv(one, command), capture_output=True, text=True, timeout=seconds, check=False)


def _argv(one: SshHost, command: str) -> list[str]:
    options = ("BatchMode=yes", "StrictHostKeyChecking=yes", f"UserKnownHostsFile={one.client.known_hosts}")
    argv = ["ssh", "-F", "none", "-i", str(one.key), "-p", str(one.port)]
    return [*argv, *(f"-o{option}" for option in options), one.address, command]


def test_two_hosts_on_the_loopback_and_two_with_addresses_let_in_their_own_key_alone(
    stack: ExitStack, tmp_path: Path
) -> None:
    client = Client(tmp_path / "home")
    a, b = (stack.enter_context(host(name, tmp_path, client)) for name in "ab")
    c, d = (stack.enter_context(host(name, tmp_path, client, network=True)) for name in "cd")
    for one in (a, b, c, d):
        assert ssh(one, f"echo {one.name}").stdout == f"{one.name}\n"
    assert len({one.address for one in (a, c, d)}) == 3
    (a.place / "user_key").unlink()
    (b.place / "user_key").rename(a.place / "user_key")
    assert "Permission denied" in ssh(a, "true").stderr


def test_a_host_that_dies_takes_what_it_ran_with_it(stack: ExitStack, tmp_path: Path) -> None:
    one = stack.enter_context(host("a", tmp_path, Client(tmp_path / "home")))
    assert one.processes() == {}
    argv = _argv(one, "setsid sleep 1234 & sleep 1235")
    session = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
    one.wait_for("sleep 1234", seconds=5)
    one.wait_for("sleep 1235", seconds=5)
    pids = list(one.processes())
    one.kill()
    assert session.wait(timeout=5) == 255
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    one.start()
    assert one.processes() == {}
    assert ssh(one, "echo back").stdout == "back\n"


def test_a_cut_wire_is_silent_until_it_is_mended(stack: ExitStack, tmp_path: Path) -> None:
    one = stack.enter_context(host("a", tmp_path, Client(tmp_path / "home"), network=True))
    with socket.create_connection((one.address, one.port), timeout=5) as open_before:
        assert open_before.recv(4) == b"SSH-"
        while open_before.recv(100)[-1:] != b"\n":
            pass
        one.cut()
        open_before.settimeout(1.5)
        open_before.sendall(b"SSH-2.0-test\r\n")
        with pytest.raises(TimeoutError):
            open_before.recv(1)
        with pytest.raises(TimeoutError):
            socket.create_connection((one.address, one.port), timeout=1.5)
        one.mend()
        open_before.settimeout(10)
        assert open_before.recv(1), "what was sent meanwhile arrives"
    assert ssh(one, "echo mended").stdout == "mended\n"


def test_a_small_disk_fills_up(stack: ExitStack, tmp_path: Path) -> None:
    one = stack.enter_context(host("a", tmp_path, Client(tmp_path / "home"), size="8m"))
    assert ssh(one, f"echo there is room >{one.work}/x").returncode == 0
    one.fill()
    done = ssh(one, f"dd if=/dev/zero of={one.work}/y bs=64k count=1")
    assert done.returncode != 0
    assert "No space left on device" in done.stderr


def test_another_host_key_is_another_host(stack: ExitStack, tmp_path: Path) -> None:
    client = Client(tmp_path / "home")
    one = stack.enter_context(host("a", tmp_path, client))
    one.change_key()
    assert "REMOTE HOST IDENTIFICATION HAS CHANGED" in ssh(one, "true").stderr
    client.forget(one)
    assert "Host key verification failed" in ssh(one, "true").stderr
    client.trust(one)
    assert ssh(one, "true").returncode == 0


def test_a_copy_of_this_machine_is_changed_alone(stack: ExitStack, tmp_path: Path) -> None:
    one = stack.enter_context(host("a", tmp_path, Client(tmp_path / "home"), copy=True))
    assert ssh(one, "rm /usr/bin/git && ! command -v git && touch /only-there").returncode == 0
    assert Path("/usr/bin/git").exists()
    assert not Path("/only-there").exists()
    assert one.inside("ls", "/only-there") == "/only-there\n"
