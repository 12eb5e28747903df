# SPDX-License-Identifier: GPL-2.0-or-later
"""What may be wrong with a host: each is said at once, with the host's name, before anything long is begun."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kpatch_ci.debian.toolroot import ToolRoot
from kpatch_ci.store.cache import cache_root
from tests.e2e.conftest import Done, own_toolroot
from tests.e2e.hosts_run import RUN, Command, project
from tests.e2e.sshclient import Client
from tests.e2e.sshd import SshHost, host, install

pytestmark = pytest.mark.e2e
Make = Callable[..., SshHost]
AT_ONCE = 45.0
"""Seconds; a connection to a machine that swallows packets is given up after 8, and this one is busy."""


@pytest.fixture(scope="module")
def tools() -> ToolRoot:
    """This machine's."""
    install()
    return own_toolroot()


@pytest.fixture
def make(tools: ToolRoot, tmp_path: Path) -> Iterator[Make]:
    """Makes a host that is called ``worker7``."""
    with ExitStack() as stack:
        yield lambda **how: stack.enter_context(host("worker7", tmp_path, Client(tmp_path / "home"), **how))


def refused(one: SshHost, place: Path) -> str:
    """Begin a run on the host, see it refused in time, and return what was said."""
    config = project(place / "project", [one])
    began = time.monotonic()
    done: Done = Command(one.client, cache_root(), place)("run", "-c", config, *RUN, "--on", "worker7,here")
    assert done.code == 3, done.stderr
    assert time.monotonic() - began < AT_ONCE
    assert "stages:" not in done.stderr, "something was begun"
    assert "worker7" in done.stderr
    return done.stderr


def test_a_key_that_opens_nothing(make: Make, tmp_path: Path) -> None:
    one = make()
    one.refuse_keys()
    assert "worker7 does not let you in with a key" in refused(one, tmp_path)


def test_a_key_that_is_not_there(make: Make, tmp_path: Path) -> None:
    one = make()
    config = project(tmp_path / "project", [one])
    one.key.unlink()
    done = Command(one.client, cache_root(), tmp_path)("run", "-c", config, *RUN)
    assert done.code == 2
    assert f"hosts: worker7: no key file {one.key}" in done.stderr


def test_a_host_key_that_has_changed(make: Make, tmp_path: Path) -> None:
    one = make()
    one.change_key()
    said = refused(one, tmp_path)
    assert "worker7 shows another host key than the one in known_hosts" in said
    assert "ssh-keygen -R" in said


def test_a_host_key_that_nobody_knows(make: Make, tmp_path: Path) -> None:
    one = make()
    one.client.forget(one)
    assert "worker7: its host key is not in known_hosts" in refused(one, tmp_path)


def test_a_host_that_is_switched_off(make: Make, tmp_path: Path) -> None:
    one = make()
    one.kill()
    assert "cannot reach worker7" in refused(one, tmp_path)


def test_a_host_that_swallows_packets(make: Make, tmp_path: Path) -> None:
    one = make(network=True)
    one.cut()
    assert "cannot reach worker7" in refused(one, tmp_path)


def test_a_host_without_room(make: Make, tmp_path: Path) -> None:
    assert "worker7 has 0.1 GB free" in refused(make(size="64m", tools=cache_root() / "tools"), tmp_path)


def test_a_host_whose_disk_takes_not_even_our_code(make: Make, tmp_path: Path) -> None:
    assert "No space left on device" in refused(make(size="64k"), tmp_path)


def test_a_host_without_a_tool_root(make: Make, tmp_path: Path) -> None:
    said = refused(make(), tmp_path)
    assert "worker7 has no tool root of Debian trixie" in said
    assert "kpatch-ci doctor --host worker7 --fix" in said


def test_a_host_with_an_old_qemu(make: Make, tools: ToolRoot, tmp_path: Path) -> None:
    old = tmp_path / "tools" / tools.path.name
    old.mkdir(parents=True)
    for name in ("usr", "etc"):
        (old / name).symlink_to(tools.path / name)
    versions = {**tools.versions, "qemu-system-x86": "1:7.2+dfsg-7"}
    (old / "packages.json").write_text(json.dumps(versions))
    said = refused(make(tools=tmp_path / "tools"), tmp_path)
    assert f"qemu-system-x86 1:7.2+dfsg-7 there, {tools.versions['qemu-system-x86']} here" in said


def test_a_host_whose_worker_was_changed_gets_ours(make: Make, tools: ToolRoot, tmp_path: Path) -> None:
    one = make(tools=cache_root() / "tools")
    config = project(tmp_path / "project", [one])
    doctor = ("doctor", "--host", "worker7", "-c", config)
    run = Command(one.client, cache_root(), tmp_path)
    assert run(*doctor).code == 0
    worker = next(one.work.glob("code/*/kpatch_ci/pipeline/worker.py"))
    ours = worker.read_bytes()
    worker.write_bytes(ours + b"\nraise SystemExit('another version')\n")
    assert run(*doctor).code == 0
    assert worker.read_bytes() == ours


def test_the_keys_of_a_jump_are_checked_too(tmp_path: Path) -> None:
    install()
    client = Client(tmp_path / "home")
    with host("gate", tmp_path, client) as gate, host("worker7", tmp_path, client, network=True) as inner:
        (gate.place / "authorized_keys").write_text((inner.place / "user_key.pub").read_text())
        config = project(tmp_path / "project", [inner], jump=f"root@{gate.address}:{gate.port}")
        run, doctor = Command(client, cache_root(), tmp_path), ("doctor", "--host", "worker7", "-c", config)
        assert "our code" in run(*doctor).stdout
        assert f"from {inner.wire.here}" in inner.log if inner.wire else False
        assert "Accepted publickey" in gate.log
        gate.change_key()
        assert "another host key than the one in known_hosts" in run(*doctor).stderr
