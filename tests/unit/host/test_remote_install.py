# SPDX-License-Identifier: GPL-2.0-or-later
"""Packages on another machine: as root, with a sudo that asks nothing, or not at all."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import invoke
import pytest

from kpatch_ci.host import remote_install
from kpatch_ci.model.errors import InfrastructureError


@dataclass
class Answer:
    stdout: str = ""
    ok: bool = True
    stderr: str = ""


@dataclass
class Machine:
    """What acts like a connection: ``answers`` are by a word of the command, the first that fits."""

    answers: dict[str, list[Answer]]
    host: str = "runner.example"
    user: str = "user"
    port: int = 22
    gateway: Any = None
    asked: list[str] = field(default_factory=list)
    timeouts: list[int] = field(default_factory=list)

    def run(self, command: str, *, timeout: int, **_: Any) -> Answer:
        script = command.removeprefix("sh -c '").removesuffix("'")
        self.asked.append(script)
        self.timeouts.append(timeout)
        for word, found in self.answers.items():
            if word in script:
                return found.pop(0) if len(found) > 1 else found[0]
        return Answer()


def install(machine: Machine) -> list[str]:
    said: list[str] = []
    remote_install.install(machine, "big-one", ["git", "bubblewrap"], said.append)
    return said


def test_root_installs_and_says_so() -> None:
    machine = Machine({"id -u": [Answer("0\n")]})
    assert install(machine) == ["big-one: installing git bubblewrap"]
    assert machine.asked[-1].startswith("timeout -k 10 600 env DEBIAN_FRONTEND=noninteractive apt-get ")
    assert machine.asked[-1].endswith(" install -y --no-install-recommends git bubblewrap")
    assert machine.timeouts[-1] > remote_install.INSTALL_TIMEOUT, "the other end gives up first"


def test_sudo_that_asks_nothing_is_used() -> None:
    machine = Machine({"id -u": [Answer("1000\n")]})
    install(machine)
    assert machine.asked[-1].startswith("sudo -n timeout -k 10 600 ")


def test_without_root_the_command_for_a_person_is_told() -> None:
    machine = Machine({"id -u": [Answer("1000\n")], "sudo": [Answer(ok=False)]})
    with pytest.raises(InfrastructureError, match=r"big-one lacks git bubblewrap, and user may not install") as caught:
        install(machine)
    assert caught.value.hint == "ssh user@runner.example -t sudo apt-get install -y git bubblewrap"
    assert not any("install -y" in script for script in machine.asked)


def test_old_lists_are_fetched_once() -> None:
    machine = Machine({"id -u": [Answer("0\n")], " install ": [Answer(ok=False), Answer()]})
    assert install(machine)[-1] == "big-one: fetching its package lists"
    assert [script.split()[-1] for script in machine.asked[-3:]] == ["bubblewrap", "update", "bubblewrap"]


def test_what_apt_said_is_told() -> None:
    machine = Machine({"id -u": [Answer("0\n")], " install ": [Answer("E: held\n", ok=False, stderr="E: broken\n")]})
    with pytest.raises(InfrastructureError, match=r"big-one: cannot install git bubblewrap\nE: held\nE: broken"):
        install(machine)


def test_no_debian_is_said() -> None:
    with pytest.raises(InfrastructureError, match="big-one lacks git bubblewrap, and is no Debian"):
        install(Machine({"apt-get": [Answer(ok=False)]}))


@pytest.mark.parametrize("error", [invoke.exceptions.CommandTimedOut(invoke.runners.Result(), 10), EOFError()])
def test_a_machine_that_hangs_or_goes_away_is_said_so(error: Exception) -> None:
    class Gone(Machine):
        def run(self, command: str, *, timeout: int, **_: Any) -> Answer:
            raise error

    with pytest.raises(InfrastructureError, match=r"no answer within 10 s|the connection broke: EOFError"):
        install(Gone({}))
