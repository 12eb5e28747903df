# SPDX-License-Identifier: GPL-2.0-or-later
"""What is missing on the host is named, explained, and installed where that may be done."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kpatch_ci.host import install
from kpatch_ci.host.install import NEEDS, Need, ensure, missing
from kpatch_ci.model.errors import InfrastructureError

if TYPE_CHECKING:
    from tests.conftest import FakeTool

APT = 'echo "$DEBIAN_FRONTEND $*" >> {log}; for last; do :; done; {body}'


@pytest.fixture(autouse=True)
def bare_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that lacks one program, with package lists, and root."""
    need = Need(str(tmp_path / "bwrap"), "bubblewrap", "the sandbox")
    monkeypatch.setattr(install, "NEEDS", (need, Need("git", "git", "objects")))
    monkeypatch.setattr(install, "LISTS", tmp_path / "lists")
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "archive.example_dists_trixie_main_Packages").write_text("")
    monkeypatch.setattr(os, "geteuid", lambda: 0)


def calls(tmp_path: Path) -> list[str]:
    return (tmp_path / "calls").read_text().splitlines()


def fake_apt(fake_tool: FakeTool, tmp_path: Path, body: str) -> None:
    fake_tool("apt-get", APT.format(log=tmp_path / "calls", body=body))


def silent(_: str) -> None:
    pytest.fail("nothing was to be said")


def test_every_need_says_why() -> None:
    assert all(need.package and need.why for need in NEEDS)
    assert len({need.wanted for need in NEEDS}) == len(NEEDS)


def test_what_is_there_is_not_missing(tmp_path: Path) -> None:
    assert [need.package for need in missing()] == ["bubblewrap"]
    (tmp_path / "bwrap").write_text("")
    assert missing() == []
    ensure(silent)


def test_root_installs_and_says_what_and_why(fake_tool: FakeTool, tmp_path: Path) -> None:
    fake_apt(fake_tool, tmp_path, f"touch {tmp_path}/bwrap")
    said: list[str] = []
    ensure(said.append)
    assert said == ["installing bubblewrap (the sandbox)"]
    assert calls(tmp_path) == [
        "noninteractive -q -o DPkg::Lock::Timeout=120 install -y --no-install-recommends bubblewrap"
    ]


def test_absent_package_lists_are_fetched_first(fake_tool: FakeTool, tmp_path: Path) -> None:
    fake_apt(fake_tool, tmp_path, f'[ "$last" = update ] || touch {tmp_path}/bwrap')
    next((tmp_path / "lists").iterdir()).unlink()
    ensure(lambda _: None)
    assert [line.split()[4] for line in calls(tmp_path)] == ["update", "install"]


def test_stale_package_lists_are_fetched_again_once(fake_tool: FakeTool, tmp_path: Path) -> None:
    again = f"if [ -e {tmp_path}/new ]; then touch {tmp_path}/bwrap; else echo 'E: Unable to fetch some'; exit 100; fi"
    fake_apt(fake_tool, tmp_path, f'if [ "$last" = update ]; then touch {tmp_path}/new; else {again}; fi')
    ensure(lambda _: None)
    assert [line.split()[4] for line in calls(tmp_path)] == ["install", "update", "install"]


def test_apts_own_words_and_the_command_are_in_the_error(fake_tool: FakeTool, tmp_path: Path) -> None:
    fake_apt(fake_tool, tmp_path, "echo 'E: dpkg was interrupted'; exit 100")
    with pytest.raises(
        InfrastructureError,
        match=r"cannot install bubblewrap[\s\S]*dpkg was interrupted[\s\S]*sudo apt-get install -y bub",
    ):
        ensure(lambda _: None)
    assert len(calls(tmp_path)) == 1


def test_a_package_that_does_not_bring_the_program_is_an_error(fake_tool: FakeTool, tmp_path: Path) -> None:
    fake_apt(fake_tool, tmp_path, "exit 0")
    with pytest.raises(InfrastructureError, match="is installed, but"):
        ensure(lambda _: None)


def test_without_root_the_exact_command_is_told(fake_tool: FakeTool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    fake_tool("apt-get", "exit 99")
    fake_tool("sudo", "exit 1")
    with pytest.raises(InfrastructureError) as caught:
        ensure(silent)
    assert caught.value.exit_code == 3
    assert caught.value.hint == "sudo apt-get install -y bubblewrap"


def test_sudo_that_asks_nothing_is_used(fake_tool: FakeTool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    fake_tool("sudo", f'echo "sudo $*" >> {tmp_path}/calls; shift; exec "$@"')
    fake_apt(fake_tool, tmp_path, f"touch {tmp_path}/bwrap")
    ensure(lambda _: None)
    assert calls(tmp_path)[:2] == [
        "sudo -n true",
        "sudo -n env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=120"
        " install -y --no-install-recommends bubblewrap",
    ]


def test_no_debian_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(InfrastructureError, match=r"bubblewrap, git, and this is no Debian"):
        ensure(silent)
