# SPDX-License-Identifier: GPL-2.0-or-later
"""The examination of another machine, over a connection that is none."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from unittest.mock import MagicMock

import fabric
import invoke
import paramiko
import pytest

from kpatch_ci.host import remote, ssh
from kpatch_ci.host.finding import Finding
from kpatch_ci.model.errors import InfrastructureError, UserError
from kpatch_ci.model.hosts import Host, Login

ANSWERS = {
    "python3": "Python 3.13.5\n",
    "git": "git version 2.47.2\n",
    "bwrap --version": "bubblewrap 0.11.0\n",
    "bwrap --unshare-all": "works\n",
    "nproc": "64\n",
    "grep MemTotal": "MemTotal:       131072000 kB\n",
    "d=": "/dev/vda1  100000000 20000000 80000000 20% /\n",
}


@dataclass
class Answer:
    stdout: str
    ok: bool = True
    stderr: str = ""


@dataclass
class FakeConnection:
    answers: dict[str, str]
    fails: Exception | None = None
    hangs: str = ""
    host: str = "runner.example"
    user: str = "user"
    port: int = 22
    gateway: Any = None
    transport: Any = field(default_factory=MagicMock)
    asked: list[dict[str, Any]] = field(default_factory=list)
    closed: bool = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.closed = True

    def open(self) -> None:
        if self.fails:
            raise self.fails

    def run(self, command: str, **options: Any) -> Answer:
        self.asked.append({"command": command, **options})
        script = command.removeprefix("sh -c '").removesuffix("'")
        if self.hangs and script.startswith(self.hangs):
            raise invoke.exceptions.CommandTimedOut(invoke.runners.Result(command=command), 6)
        for start, answer in self.answers.items():
            if script.startswith(start):
                return Answer(answer)
        return Answer("", ok=False, stderr="not found")


def examine(made: FakeConnection) -> dict[str, Any]:
    return {f.name: f for f in remote.examine("user@runner.example", connect=lambda _: made)}


def test_a_good_machine_is_found_good() -> None:
    made = FakeConnection(ANSWERS)
    found = examine(made)
    assert [f.name for f in found.values() if not f.ok] == []
    assert found["cores"].detail == "64"
    assert found["disk"].detail.startswith("81.9 GB free")
    assert made.closed


def test_what_is_not_there_is_found_missing() -> None:
    found = examine(FakeConnection({k: v for k, v in ANSWERS.items() if not k.startswith("bwrap")}))
    assert (found["bubblewrap"].ok, found["sandbox"].ok) == (False, False)


def test_every_question_has_a_timeout_and_no_terminal() -> None:
    made = FakeConnection(ANSWERS)
    examine(made)
    assert len(made.asked) == len(remote.CHECKS)
    for question in made.asked:
        assert question["timeout"] > 0
        assert question["pty"] is False
        assert question["in_stream"] is False
        assert question["warn"] is True


def test_a_question_that_is_not_answered_is_said_so() -> None:
    found = examine(FakeConnection(ANSWERS, hangs="grep MemTotal"))
    assert (found["memory"].ok, found["memory"].detail) == (None, "no answer within 6 s")
    assert found["disk"].ok is True


def test_an_answer_that_makes_no_sense_is_not_believed() -> None:
    assert examine(FakeConnection({**ANSWERS, "nproc": "many\n"}))["cores"].ok is None


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (paramiko.AuthenticationException("no keys"), "does not let you in with a key: no keys"),
        (paramiko.SSHException("Error reading SSH protocol banner"), "cannot talk to .*banner"),
        (ConnectionRefusedError(111, "Connection refused"), "cannot reach .*: Connection refused"),
        (TimeoutError("timed out"), "cannot reach .*: timed out"),
        (EOFError(), "cannot reach .*: EOFError"),
    ],
)
def test_an_unreachable_machine_is_said_to_be(error: Exception, words: str) -> None:
    with pytest.raises(InfrastructureError, match=rf"{words}[\s\S]*`ssh user@runner.example true` must work"):
        examine(FakeConnection({}, fails=error))


KEY = paramiko.RSAKey.generate(1024)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            paramiko.SSHException("Server 'x' not found in known_hosts"),
            "its host key is not in known_hosts\n.*`ssh user@runner.example true` once, and compare the key",
        ),
        (
            paramiko.BadHostKeyException("[runner.example]:22", KEY, KEY),
            "another host key.*\n.*ssh-keygen -R '\\[runner",
        ),
        (paramiko.PasswordRequiredException("encrypted"), "has a passphrase, and is in no agent\n.*ssh-add"),
    ],
)
def test_a_host_key_that_is_not_the_right_one_and_a_locked_key_have_their_own_words(
    error: Exception, words: str
) -> None:
    with pytest.raises(InfrastructureError, match=f"runner.example.*{words}"):
        examine(FakeConnection({}, fails=error))


def test_a_key_file_that_is_not_there_is_said_so_before_other_keys_are_tried(tmp_path: Path) -> None:
    login = Login("runner.example", key=tmp_path / "none")
    with (
        pytest.raises(InfrastructureError, match=f"rack: no key file {tmp_path}/none"),
        remote.opened(login, "rack", connect=lambda _: pytest.fail("connected")),
    ):
        pass


def test_each_hop_checks_host_keys() -> None:
    made = ssh.connection(Login("inner.example", jump="me@jump.example:2022"))
    assert (made.gateway.user, made.gateway.host, made.gateway.port) == ("me", "jump.example", 2022)
    assert isinstance(made.gateway.client._policy, paramiko.RejectPolicy)
    assert ssh.ssh_command(made).startswith("ssh -J me@jump.example:2022 ")


@pytest.mark.parametrize("target", ["", "-oProxyCommand=x", "a b", "user@", "user@host:port", "host;true"])
def test_what_is_no_host_is_refused(target: str) -> None:
    with pytest.raises(UserError, match="--host: no host"):
        remote.examine(target, connect=lambda _: pytest.fail("connected"))


def test_the_real_connection_checks_host_keys_and_knows_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[tuple[Any, ...]] = []
    monkeypatch.setattr(paramiko.SSHClient, "load_system_host_keys", lambda *args: loaded.append(args[1:]))
    made = ssh.connection(ssh.parse_target("user@runner.example:2222", "--host"))
    assert isinstance(made, fabric.Connection)
    assert isinstance(made.client._policy, paramiko.RejectPolicy)
    assert loaded[0] == ()  # known_hosts of whoever runs it
    assert (made.user, made.host, made.port) == ("user", "runner.example", 2222)
    assert made.connect_timeout == ssh.CONNECT_TIMEOUT
    assert not {"password", "passphrase"} & set(made.connect_kwargs)
    assert made.forward_agent is False


@pytest.mark.parametrize("script", [script for _, script, _ in remote.CHECKS])
def test_a_question_is_posix_shell_and_survives_quoting(script: str) -> None:
    assert "'" not in script
    shell = shutil.which("dash") or "sh"
    assert subprocess.run([shell, "-n", "-c", script], check=False).returncode == 0


def test_the_disk_question_works_where_the_cache_does_not_exist_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KPATCH_CI_CACHE", "/no/such/cache at all")
    script, meaning = next((s, m) for n, s, m in remote.CHECKS if n == "disk")
    done = subprocess.run(["sh", "-c", script], check=True, capture_output=True, text=True)  # noqa: S607
    assert "GB free" in meaning(done.stdout).detail


def test_a_hosts_work_directory_is_asked_about_and_needs_less_room(tmp_path: Path) -> None:
    work = tmp_path / 'a "dir" of $HOME'
    (work / "tools" / "trixie-x").mkdir(parents=True)
    _, script, meaning = remote.checks_of(Host("big-one", Login("x"), str(work / "below")))[-1]
    argv = ["sh", "-c", script]
    assert subprocess.run(argv, check=True, capture_output=True, text=True).stdout.count("\n") == 1
    df = "/dev/vda1  100000000 0 2000000 20% /\n"
    assert meaning(df).ok is False
    assert meaning(f"{df}warm\n").ok is True
    assert "2.0 GB free for" in meaning(df).detail
    (work / "tools/trixie-x/packages.json").touch()
    _, script, _ = remote.checks_of(Host("big-one", Login("x"), str(work)))[-1]
    assert subprocess.run(["sh", "-c", script], check=True, capture_output=True, text=True).stdout.endswith("\nwarm\n")  # noqa: S607


def test_a_host_that_builds_needs_room_for_source_until_it_has_some(tmp_path: Path) -> None:
    host = Host("big-one", Login("x"), str(tmp_path), uses=frozenset({"build"}))
    _, script, meaning = remote.checks_of(host)[-1]
    df = "/dev/vda1  100000000 0 2900000 20% /\nwarm\n"
    assert meaning(df).ok is False
    assert "3 GB wanted" in meaning(df).detail
    assert meaning(f"{df}source\n").ok is True
    (tmp_path / "src/0123456789abcdef").mkdir(parents=True)
    (tmp_path / "src/0123456789abcdef/Makefile").touch()
    done = subprocess.run(["sh", "-c", script], check=True, capture_output=True, text=True)  # noqa: S607
    assert done.stdout.endswith("\nsource\n")


def test_the_home_is_the_users_there() -> None:
    _, script, _ = remote.checks_of(Host("big-one", Login("x"), "~/.cache/x"))[-1]
    assert 'd="$HOME/.cache/x"' in script


def test_only_what_a_package_mends_is_lacking() -> None:
    found = [
        Finding("git", False, ""),
        Finding("python", True, ""),
        Finding("sandbox", False, ""),
        Finding("bubblewrap", None, ""),
    ]
    assert remote.lacking(found) == ["git"]
