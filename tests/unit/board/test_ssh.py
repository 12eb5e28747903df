# SPDX-License-Identifier: GPL-2.0-or-later
"""Logging in, and what is said where that fails; commands over a channel that is none."""

from __future__ import annotations

import shlex
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fabric
import paramiko
import pytest

from kpatch_ci import process
from kpatch_ci.board import ssh
from kpatch_ci.board.ssh import Answer, SilentError
from kpatch_ci.model.board import Login
from kpatch_ci.model.errors import InfrastructureError

LOGIN = Login("board.example", key="/keys/id", jump="ci@gate.example:2222")


@dataclass
class FakeChannel:
    """Runs what it is told with this machine's sh, and hands it out in pieces; or hangs, or breaks."""

    hangs: bool = False
    breaks: bool = False
    greets: bytes = b""
    command: str = ""
    stdin: bytes = b""
    closed: bool = False
    eof_received: bool = False
    _out: bytes = b""
    _err: bytes = b""
    _code: int | None = None

    def settimeout(self, seconds: float) -> None:
        pass

    def exec_command(self, command: str) -> None:
        self.command = command

    def shutdown_write(self) -> None:
        if self.hangs:
            return
        if self.breaks:
            self.closed = True
            return
        done = subprocess.run(["/bin/sh", "-c", self.command], input=self.stdin, capture_output=True, check=False)
        self._out, self._err = self.greets + done.stdout, done.stderr
        self._code, self.eof_received = done.returncode, True

    def send_ready(self) -> bool:
        return True

    def send(self, data: memoryview) -> int:
        self.stdin += bytes(data[:7])
        return min(len(data), 7)

    def recv_ready(self) -> bool:
        return bool(self._out)

    def recv(self, size: int) -> bytes:
        piece, self._out = self._out[:5], self._out[5:]
        return piece

    def recv_stderr_ready(self) -> bool:
        return bool(self._err)

    def recv_stderr(self, size: int) -> bytes:
        piece, self._err = self._err[:5], self._err[5:]
        return piece

    def exit_status_ready(self) -> bool:
        return self._code is not None

    def recv_exit_status(self) -> int:
        return -1 if self._code is None else self._code

    def close(self) -> None:
        self.closed = True


@dataclass
class FakeTransport:
    channel: FakeChannel
    keepalive: int = 0

    def set_keepalive(self, seconds: int) -> None:
        self.keepalive = seconds

    def open_session(self, timeout: float) -> FakeChannel:
        return self.channel


@dataclass
class FakeConnection:
    fails: Exception | None = None
    channel: FakeChannel = field(default_factory=FakeChannel)
    gateway: None = None
    closed: bool = False

    @property
    def client(self) -> FakeConnection:
        return self

    def get_transport(self) -> FakeTransport:
        return FakeTransport(self.channel)

    def open(self) -> None:
        if self.fails:
            raise self.fails

    def close(self) -> None:
        self.closed = True


def connected(monkeypatch: pytest.MonkeyPatch, made: FakeConnection, login: Login = LOGIN) -> Any:
    monkeypatch.setattr(ssh, "_connection", lambda *_: made)
    return ssh.connect(login, 5)


def key() -> paramiko.PKey:
    return paramiko.RSAKey.generate(1024)


@pytest.mark.parametrize(
    ("fails", "message"),
    [
        (paramiko.AuthenticationException("no"), "does not let you in with a key: no"),
        (
            paramiko.BadHostKeyException("board.example", key(), key()),
            "shows another host key than known_hosts has (ssh-rsa)",
        ),
        (paramiko.SSHException("Server 'board.example' not found in known_hosts"), "is not known"),
    ],
)
def test_who_is_not_let_in_or_not_known_is_told_at_once_with_the_boards_name(
    monkeypatch: pytest.MonkeyPatch, fails: Exception, message: str
) -> None:
    made = FakeConnection(fails)
    with pytest.raises(InfrastructureError) as raised:
        connected(monkeypatch, made)
    assert message in str(raised.value)
    assert "root@board.example:22" in str(raised.value)
    assert made.closed


def test_the_hint_is_a_command_to_try(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InfrastructureError) as raised:
        connected(monkeypatch, FakeConnection(paramiko.AuthenticationException("no")))
    assert raised.value.hint
    command = "`ssh -p 22 -i /keys/id -J ci@gate.example:2222 root@board.example true` must work without a question"
    assert raised.value.hint == command


@pytest.mark.parametrize(
    "fails",
    [
        OSError(111, "Connection refused"),
        EOFError(),
        paramiko.SSHException("Error reading SSH protocol banner"),
        paramiko.AuthenticationException("Authentication timeout."),
    ],
)
def test_nobody_there_is_no_error_yet(monkeypatch: pytest.MonkeyPatch, fails: Exception) -> None:
    with pytest.raises(SilentError):
        connected(monkeypatch, FakeConnection(fails))


def test_a_command_gets_its_input_and_gives_both_outputs(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = connected(monkeypatch, FakeConnection())
    found = shell.run('cat; echo "it\'s" >&2; exit 3', timeout=5, stdin=b"0123456789" * 10)
    assert found == Answer(3, "0123456789" * 10, "it's\n")
    assert found.explain() == "it's"


def test_what_a_login_shell_says_first_is_not_the_commands_output(monkeypatch: pytest.MonkeyPatch) -> None:
    made = FakeConnection(channel=FakeChannel(greets=b"Welcome to the lab!\n"))
    assert connected(monkeypatch, made).run("echo 0", timeout=5) == Answer(0, "0\n", "")


def test_a_command_is_bounded_there_too_and_goes_through_sudo_where_one_is_not_root(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = FakeConnection()
    connected(monkeypatch, made).run("true", timeout=7)
    assert shlex.split(made.channel.command)[:2] == ["sh", "-c"]
    assert "exec timeout 7 sh -c" in shlex.split(made.channel.command)[2]
    other = FakeConnection(channel=FakeChannel(hangs=True))
    monkeypatch.setattr(ssh, "GRACE", 0)
    with pytest.raises(SilentError, match="no answer in time"):
        connected(monkeypatch, other, Login("board.example", user="ci")).run("true", timeout=0.2)
    assert 'exec $([ "$(id -u)" = 0 ] || echo sudo -n) timeout 1 sh -c' in shlex.split(other.channel.command)[2]


@pytest.mark.parametrize(("uid", "said"), [("0", ""), ("1000", "through sudo\n")])
def test_sudo_is_used_only_by_who_is_not_root_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, uid: str, said: str
) -> None:
    """A kernel under test knows the user as root, and has no sudo."""
    for name, text in (("id", f"echo {uid}"), ("sudo", 'shift; echo through sudo >&2; exec "$@"')):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setattr(ssh, "PATH", f"{tmp_path}:{ssh.PATH}")
    shell = connected(monkeypatch, FakeConnection(), Login("board.example", user="ci"))
    assert shell.run("echo as it is", timeout=5) == Answer(0, "as it is\n", said)


def test_a_connection_that_breaks_is_noticed_and_so_is_what_a_watch_says(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SilentError, match="the connection broke"):
        connected(monkeypatch, FakeConnection(channel=FakeChannel(breaks=True))).run("true", timeout=5)
    with pytest.raises(SilentError, match="crashed: Kernel panic"):
        connected(monkeypatch, FakeConnection(channel=FakeChannel(hangs=True))).run(
            "true", timeout=60, watch=lambda: "crashed: Kernel panic"
        )


def test_after_ctrl_c_only_last_words_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "check_stopping", lambda: (_ for _ in ()).throw(InfrastructureError("stopping")))
    with pytest.raises(InfrastructureError, match="stopping"):
        connected(monkeypatch, FakeConnection(channel=FakeChannel(hangs=True))).run("true", timeout=60)
    assert connected(monkeypatch, FakeConnection()).run("echo bye", timeout=5, last=True).output == "bye\n"


def test_the_real_connection_refuses_unknown_hosts_and_never_writes_the_users_file(tmp_path: Any) -> None:
    known = tmp_path / "known_hosts"
    known.write_text("")
    (tmp_path / "id").write_text("")
    login = Login("board.example", "ci", 2200, str(tmp_path / "id"), str(known))
    made = ssh._connection(login, 5)
    assert isinstance(made, fabric.Connection)
    assert isinstance(made.client._policy, paramiko.RejectPolicy)
    assert (made.user, made.port, made.connect_timeout, made.forward_agent) == ("ci", 2200, 5, False)
    assert made.connect_kwargs["key_filename"] == [str(tmp_path / "id")]
    assert made.connect_kwargs["allow_agent"] is False
    assert "password" not in made.connect_kwargs
    made.client.get_host_keys().add("[board.example]:2200", "ssh-rsa", key())
    if made.client._host_keys_filename:
        made.client.save_host_keys(made.client._host_keys_filename)
    assert known.read_text() == ""


def test_a_jump_host_is_a_connection_with_checked_keys_too() -> None:
    made = ssh._connection(LOGIN, 5)
    assert (made.gateway.user, made.gateway.host, made.gateway.port) == ("ci", "gate.example", 2222)
    assert isinstance(made.gateway.client._policy, paramiko.RejectPolicy)
