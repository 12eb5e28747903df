# SPDX-License-Identifier: GPL-2.0-or-later
"""The examination of this machine, with everything real replaced."""

from __future__ import annotations

import json
import socket
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kpatch_ci.debian.toolroot import toolroot_place
from kpatch_ci.host import doctor
from kpatch_ci.host.finding import Finding

if TYPE_CHECKING:
    from tests.conftest import FakeTool


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake_tool: FakeTool) -> None:
    """A healthy machine without KVM."""
    fake_tool("bwrap", 'case "$1" in --version) echo bubblewrap 0.8.0 ;; *) exit 0 ;; esac')
    fake_tool("apt-get", "echo 'https://archive.example/debian/ trixie'")
    fake_tool("apt-config", "exit 0")
    monkeypatch.delenv("http_proxy", raising=False)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: [])
    monkeypatch.setattr(doctor, "KVM", tmp_path / "kvm")
    monkeypatch.setattr(doctor, "NEEDS", ())
    (tmp_path / "meminfo").write_text("MemTotal:        8000000 kB\nMemFree: 1 kB\n")
    monkeypatch.setattr(doctor, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(doctor, "CGROUP_LIMIT", tmp_path / "memory.max")


def examine(tmp_path: Path, **options: Any) -> dict[str, Finding]:
    return {f.name: f for f in doctor.examine(tmp_path / "cache", "trixie", **{"probe": None, **options})}


def make_root(cache: Path) -> None:
    place = toolroot_place(cache, "trixie")
    place.mkdir(parents=True)
    versions = {"gcc": "4:14.2.0-1", "qemu-system-arm": "1:10.0.2+ds-2+deb13u1", "make": "4.4.1-2"}
    (place / "packages.json").write_text(json.dumps(versions))


def test_a_healthy_machine_lacks_nothing(tmp_path: Path) -> None:
    found = examine(tmp_path)
    assert list(found) == [
        "python", "git", "bubblewrap", "sandbox", "packages", "tool root", "cores", "memory", "disk", "archives", "kvm",
    ]  # fmt: skip
    assert [f for f in found.values() if f.ok is False and f.name != "disk"] == []
    assert "host's own" in found["sandbox"].detail
    assert found["tool root"].ok is None


def test_a_tool_root_tells_its_versions(tmp_path: Path) -> None:
    make_root(tmp_path / "cache")
    found = examine(tmp_path)
    assert found["tool root"].detail == "trixie: gcc 14.2.0, QEMU 10.0.2, make 4.4.1"
    assert found["sandbox"].detail == "enters the tool root"


def test_a_sandbox_that_does_not_work_is_an_error_with_its_words(tmp_path: Path, fake_tool: FakeTool) -> None:
    fake_tool(
        "bwrap", 'case "$1" in --version) echo bubblewrap 0.8.0 ;; *) echo "bwrap: no namespaces"; exit 1 ;; esac'
    )
    assert examine(tmp_path)["sandbox"].detail == "bwrap: no namespaces"
    make_root(tmp_path / "cache")
    found = examine(tmp_path)["sandbox"]
    assert found.ok is False
    assert "namespace" in found.fix


def test_what_never_answers_is_said_to_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: time.sleep(5))
    began = time.monotonic()
    found = examine(tmp_path, deadline=0.8)
    assert time.monotonic() - began < 3
    hanging = [t for t in threading.enumerate() if t is not threading.main_thread()]
    assert hanging
    assert all(t.daemon for t in hanging), "the program must be able to end"
    assert (found["archives"].ok, found["archives"].detail) == (None, "no answer within 1 s")


def test_a_name_that_does_not_resolve_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    found = examine(tmp_path)["archives"]
    assert (found.ok, found.detail) == (False, "archive.example: Name or service not known")


def test_behind_a_proxy_it_is_the_proxys_name_that_counts(tmp_path: Path, fake_tool: FakeTool) -> None:
    fake_tool("apt-config", "echo http://proxy.example:3128/")
    assert "proxy.example (proxy)" in examine(tmp_path)["archives"].detail


def test_an_archive_on_disk_must_be_there(tmp_path: Path, fake_tool: FakeTool) -> None:
    fake_tool("apt-get", f"echo 'file:{tmp_path}/debian/ trixie'")
    assert examine(tmp_path)["archives"].ok is False
    (tmp_path / "debian").mkdir()
    assert examine(tmp_path)["archives"].ok is True


def test_a_containers_memory_limit_counts(tmp_path: Path) -> None:
    assert examine(tmp_path)["memory"].ok is True
    (tmp_path / "memory.max").write_text("max\n")
    assert examine(tmp_path)["memory"].ok is True
    (tmp_path / "memory.max").write_text(f"{2 * 1024**3}\n")
    assert examine(tmp_path)["memory"].ok is False


@pytest.mark.parametrize(("ran", "ok"), [(True, True), (False, None)])
def test_kvm_is_believed_only_after_a_guest_ran(tmp_path: Path, ran: bool, ok: bool | None) -> None:
    def probe() -> tuple[bool, str]:
        return ran, "words"

    assert examine(tmp_path, probe=probe)["kvm"].detail.startswith("no /dev/kvm")
    (tmp_path / "kvm").write_text("")
    assert examine(tmp_path, probe=None)["kvm"].ok is None
    found = examine(tmp_path, probe=probe)["kvm"]
    assert (found.ok, found.detail) == (ok, "words")
