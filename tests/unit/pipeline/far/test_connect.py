# SPDX-License-Identifier: GPL-2.0-or-later
"""Hosts are joined side by side, given our code, and refused with what differs; the other end is a process without SSH."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kpatch_ci.debian.toolroot import ToolRoot, find_toolroot, toolroot_place
from kpatch_ci.model.digest import digest
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.model.hosts import Host, Login
from kpatch_ci.pipeline.far.bundle import bundle
from kpatch_ci.pipeline.far.connect import faults, join, open_hosts
from kpatch_ci.pipeline.far.serve import forget_old_code
from kpatch_ci.pipeline.places import BUILD, GUEST_KINDS
from kpatch_ci.pipeline.supply import Supply
from kpatch_ci.pipeline.worker import code_version
from kpatch_ci.store.artifacts import ArtifactStore
from tests.fakes.far import LIMITS


class ProcessPipe:
    """What SSH does, with a child of ours."""

    def __init__(self, argv: list[str], env: dict[str, str]) -> None:
        self.child = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0, env=env
        )

    def read(self, size: int) -> bytes:
        assert self.child.stdout is not None
        return self.child.stdout.read(size)

    def write(self, data: bytes) -> None:
        assert self.child.stdin is not None
        view = memoryview(data)
        while view:
            view = view[self.child.stdin.write(view) :]

    def patient(self) -> None:
        pass

    def said(self) -> str:
        try:
            self.child.wait(5)
        except subprocess.TimeoutExpired:
            return ""
        assert self.child.stderr is not None
        return self.child.stderr.read().decode()

    def close(self) -> None:
        assert self.child.stdin is not None
        if not self.child.stdin.closed:
            self.child.stdin.close()

    def finish(self) -> None:
        self.close()
        self.child.wait(20)
        for stream in (self.child.stdout, self.child.stderr):
            assert stream is not None
            stream.close()


class Hosts:
    """Starts the commands that a host's shell would be told, and keeps the processes."""

    def __init__(self, tmp_path: Path) -> None:
        self.begun: list[ProcessPipe] = []
        self.tmp_path = tmp_path
        fake = tmp_path / "fake-bin"
        fake.mkdir()
        (fake / "bwrap").write_text("#!/bin/sh\nexit 0\n")
        (fake / "bwrap").chmod(0o755)
        self.env = {**os.environ, "PATH": f"{fake}:{os.environ['PATH']}", "HOME": str(tmp_path)}

    def begin(self, _: Host, command: str) -> ProcessPipe:
        words = shlex.split(command.removeprefix("exec "))
        assert words[:2] == ["python3", "-ISc"]
        pipe = ProcessPipe([sys.executable, *words[1:]], self.env)
        self.begun.append(pipe)
        return pipe

    def host(self, name: str, work: str | None = None) -> Host:
        return Host(name, Login(f"{name}.example"), work or str(self.tmp_path / name), 2)

    def tools(self, where: Path, version: str = "1:10.0.13") -> ToolRoot:
        place = toolroot_place(where, "trixie")
        place.mkdir(parents=True)
        (place / "packages.json").write_text(f'{{"qemu-system-arm": "{version}", "gcc": "14"}}')
        found = find_toolroot(where, "trixie")
        assert found is not None
        return found


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Hosts]:
    made = Hosts(tmp_path)
    yield made
    for pipe in made.begun:
        pipe.finish()


def supply(tools: ToolRoot, cache: Path) -> Supply:
    return Supply(cache, ArtifactStore(cache / "store"), tools, 60.0)


def test_the_other_end_gets_our_code_once_and_says_what_it_is(hosts: Hosts, tmp_path: Path) -> None:
    tools = hosts.tools(tmp_path / "a")
    first = join(hosts.host("a"), "trixie", begin=hosts.begin)
    assert first.hello["code"] == code_version()
    assert (first.hello["tools"], first.hello["sandbox"], faults(first, tools)) == (tools.fingerprint, "", "")
    assert first.link.frames.sent > len(bundle().data)
    first.link.close()
    second = join(hosts.host("a"), "trixie", begin=hosts.begin)
    assert second.link.frames.sent < 1000
    second.link.close()


def test_code_that_was_changed_there_is_replaced(hosts: Hosts, tmp_path: Path) -> None:
    hosts.tools(tmp_path / "a")
    join(hosts.host("a"), "trixie", begin=hosts.begin).link.close()
    (changed,) = (tmp_path / "a" / "code").glob("*/kpatch_ci/pipeline/worker.py")
    changed.write_text(changed.read_text() + "\n# changed\n")
    again = join(hosts.host("a"), "trixie", begin=hosts.begin)
    assert again.hello["code"] == code_version()
    assert "# changed" not in changed.read_text()
    again.link.close()


def test_code_that_nobody_started_for_a_month_is_forgotten(tmp_path: Path) -> None:
    for name, age in (("old", 31), ("new", 29)):
        (tmp_path / "code" / name).mkdir(parents=True)
        os.utime(tmp_path / "code" / name, (1e9 - age * 86400,) * 2)
    forget_old_code(tmp_path, now=1e9)
    assert [path.name for path in (tmp_path / "code").iterdir()] == ["new"]


def test_nothing_is_left_when_the_connection_ends(hosts: Hosts, tmp_path: Path) -> None:
    hosts.tools(tmp_path / "a")
    joined = join(hosts.host("a"), "trixie", begin=hosts.begin)
    began = time.monotonic()
    joined.link.close()
    assert hosts.begun[0].child.wait(10) == 0
    assert time.monotonic() - began < 5


def test_a_worker_needs_no_library_of_the_host(hosts: Hosts, tmp_path: Path) -> None:
    """-I and -S leave site-packages out: what is not in the bundle cannot be imported."""
    hosts.tools(tmp_path / "a")
    joined = join(hosts.host("a"), "trixie", begin=hosts.begin)
    assert joined.link.ask({"op": "offer", **_nothing()}, timeout=10)[0]["needed"] == {}
    joined.link.close()


def _nothing() -> dict[str, Any]:
    return {
        "kind": "build",
        "key": "a" * 64,
        "manifest": {"meta": {}, "files": {}, "sum": digest([{}, {}])},
        "modes": {},
    }


def test_a_host_without_the_tool_root_is_refused_with_what_mends_it(hosts: Hosts, tmp_path: Path) -> None:
    tools = hosts.tools(tmp_path / "here")
    with pytest.raises(InfrastructureError, match=r"a has no tool root.*doctor --host a --fix"):
        open_hosts([hosts.host("a")], supply(tools, tmp_path), LIMITS, begin=hosts.begin)


def test_a_host_with_another_qemu_is_refused_with_both_versions(hosts: Hosts, tmp_path: Path) -> None:
    tools = hosts.tools(tmp_path / "here")
    hosts.tools(tmp_path / "a", version="1:7.2")
    words = r"a has another tool root: qemu-system-arm 1:7\.2 there, 1:10\.0\.13 here"
    with pytest.raises(InfrastructureError, match=words):
        open_hosts([hosts.host("a")], supply(tools, tmp_path), LIMITS, begin=hosts.begin)


def test_what_is_wrong_with_each_host_is_said_at_once_and_no_connection_stays(hosts: Hosts, tmp_path: Path) -> None:
    tools = hosts.tools(tmp_path / "good")
    hosts.tools(tmp_path / "old", version="1:7.2")

    def begin(host: Host, command: str) -> ProcessPipe:
        if host.name == "away":
            raise InfrastructureError("cannot reach away: No route to host")
        return hosts.begin(host, command)

    names = [hosts.host(name) for name in ("good", "old", "away")]
    with pytest.raises(InfrastructureError) as caught:
        open_hosts(names, supply(tools, tmp_path), LIMITS, begin=begin)
    assert "old has another tool root" in str(caught.value)
    assert "cannot reach away: No route to host" in str(caught.value)
    assert "good" not in str(caught.value)
    assert [pipe.child.wait(10) for pipe in hosts.begun] == [0, 0]


def test_hosts_that_are_well_become_places(hosts: Hosts, tmp_path: Path) -> None:
    tools = hosts.tools(tmp_path / "a")
    (place,) = open_hosts([hosts.host("a")], supply(tools, tmp_path), LIMITS, begin=hosts.begin)
    assert (place.name, place.slots, place.kinds, place.lost) == ("a", 2, GUEST_KINDS, "")
    assert place.moved[0] > 0
    hosts.begun[0].child.kill()
    end = time.monotonic() + 10
    while not place.lost and time.monotonic() < end:
        threading.Event().wait(0.01)
    assert place.lost


def test_a_host_that_builds_says_whose_objects_it_has(hosts: Hosts, tmp_path: Path) -> None:
    tools = hosts.tools(tmp_path / "a")
    for name in ("out/x86_64-1", "out/arm64-2", "src/00aa"):
        (tmp_path / "a" / name).mkdir(parents=True)
    (tmp_path / "a/out/x86_64-1/vmlinux").touch()
    host = replace(hosts.host("a"), uses=frozenset({"build"}))
    (place,) = open_hosts([host], supply(tools, tmp_path), LIMITS, begin=hosts.begin)
    assert (place.kinds, place.objects) == (frozenset({BUILD}), {"x86_64-1"})
    place.close()


@pytest.mark.parametrize(
    ("uses", "sources", "words"),
    [
        ({"build", "guest"}, [], "a has 2.9 GB free where"),
        ({"build"}, [], "3 GB at least is needed to build kernels"),
        ({"build"}, ["00aa"], ""),
        ({"guest"}, [], ""),
    ],
)
def test_a_host_that_builds_needs_room_for_source(
    hosts: Hosts, tmp_path: Path, uses: set[str], sources: list[str], words: str
) -> None:
    tools = hosts.tools(tmp_path / "a")
    joined = join(hosts.host("a"), "trixie", begin=hosts.begin)
    joined.link.close()
    assert joined.hello["sources"] == []
    hello = {**joined.hello, "free": 29 * 10**8, "sources": sources}
    said = faults(replace(joined, hello=hello, host=replace(joined.host, uses=frozenset(uses))), tools)
    assert said.startswith(words) if words.startswith("a ") else words in said
    assert bool(said) == bool(words)


def test_hosts_are_joined_side_by_side(hosts: Hosts, tmp_path: Path) -> None:
    waiting = threading.Barrier(3, timeout=20)

    def begin(host: Host, _: str) -> ProcessPipe:
        waiting.wait()
        raise InfrastructureError(f"cannot reach {host.name}")

    names = [hosts.host(name) for name in ("a", "b", "c")]
    tools = hosts.tools(tmp_path / "here")
    with pytest.raises(InfrastructureError, match=r"reach a[\s\S]*reach b[\s\S]*reach c"):
        open_hosts(names, supply(tools, tmp_path), LIMITS, begin=begin)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo sh: python3: not found >&2; exit 127", r"does not start there[\s\S]*python3: not found"),
        ("echo This account is not available.", r"does not start there[\s\S]*account is not available"),
    ],
)
def test_a_host_without_python_says_so(hosts: Hosts, script: str, words: str) -> None:
    def begin(_: Host, __: str) -> ProcessPipe:
        hosts.begun.append(ProcessPipe(["sh", "-c", script], dict(os.environ)))
        return hosts.begun[-1]

    with pytest.raises(InfrastructureError, match=words):
        join(hosts.host("a"), "trixie", begin=begin)


def test_a_work_directory_that_cannot_be_made_is_said(hosts: Hosts, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InfrastructureError, match=r"a: cannot write below .*file"):
        join(hosts.host("a", str(tmp_path / "file" / "work")), "trixie", begin=hosts.begin)


def test_a_home_is_the_home_there(hosts: Hosts, tmp_path: Path) -> None:
    joined = join(hosts.host("a", "~/w"), "trixie", begin=hosts.begin)
    assert joined.hello["cache"] == str(tmp_path / "w")
    joined.link.close()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"code": "0" * 64}, "another version of kpatch-ci"),
        ({"machine": "aarch64"}, "a is aarch64"),
        ({"free": 5 * 10**8}, "0.5 GB free"),
        ({"sandbox": "cannot enter the build sandbox"}, "a: cannot enter the build sandbox"),
    ],
)
def test_a_host_that_differs_is_refused(hosts: Hosts, tmp_path: Path, change: dict[str, Any], words: str) -> None:
    tools = hosts.tools(tmp_path / "a")
    joined = join(hosts.host("a"), "trixie", begin=hosts.begin)
    joined.link.close()
    assert words in faults(replace(joined, hello={**joined.hello, **change}), tools)
