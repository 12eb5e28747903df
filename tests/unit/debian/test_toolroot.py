# SPDX-License-Identifier: GPL-2.0-or-later
"""The tool root: how it is entered, found, and what is said when it cannot be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kpatch_ci.debian.toolroot import ToolRoot, check_sandbox, find_toolroot, toolroot_place
from kpatch_ci.model.errors import InfrastructureError

if TYPE_CHECKING:
    from tests.conftest import FakeTool

ROOT = ToolRoot(Path("/cache/tools/t"), "trixie", "f" * 64, {"make": "4.4.1-2"})


def test_the_command_line_is_exactly_this() -> None:
    argv = ROOT.argv(
        ["make", "-j2"],
        read=[Path("/src")],
        write=[Path("/out")],
        mounts=[(Path("/host/a"), "/a")],
        write_mounts=[(Path("/host/b"), "/b")],
        cwd=Path("/out"),
        env={"ARCH": "arm64", "TZ": "CET"},
    )
    assert " ".join(argv) == (
        "bwrap --unshare-all --die-with-parent --new-session --clearenv --cap-drop ALL"
        " --ro-bind /cache/tools/t/usr /usr --ro-bind /cache/tools/t/etc /etc"
        " --symlink usr/bin /bin --symlink usr/sbin /sbin --symlink usr/lib /lib --symlink usr/lib64 /lib64"
        " --dev /dev --proc /proc --size 1073741824 --tmpfs /tmp"
        " --ro-bind /src /src --ro-bind /host/a /a --bind /host/b /b --bind /out /out --chdir /out"
        " --setenv ARCH arm64 --setenv HOME /tmp --setenv LC_ALL C.UTF-8 --setenv PATH /usr/bin:/usr/sbin"
        " --setenv TZ CET -- make -j2"
    )


def test_nothing_of_the_host_and_no_network_is_there_by_default() -> None:
    argv = ROOT.argv(["true"])
    assert "--unshare-all" in argv
    assert "--share-net" not in argv
    sources = [argv[n + 1] for n, word in enumerate(argv) if word in ("--bind", "--ro-bind", "--dev-bind")]
    assert sources == ["/cache/tools/t/usr", "/cache/tools/t/etc"]


def test_a_tool_root_without_its_list_is_not_there(tmp_path: Path) -> None:
    assert find_toolroot(tmp_path, "trixie") is None
    place = toolroot_place(tmp_path, "trixie")
    place.mkdir(parents=True)
    assert find_toolroot(tmp_path, "trixie") is None
    (place / "packages.json").write_text("{")
    assert find_toolroot(tmp_path, "trixie") is None
    (place / "packages.json").write_text(json.dumps({"make": "1"}))
    found = find_toolroot(tmp_path, "trixie")
    assert found is not None
    assert found.versions == {"make": "1"}
    assert find_toolroot(tmp_path, "forky") is None


def test_other_packages_are_another_tool_root(tmp_path: Path) -> None:
    place = toolroot_place(tmp_path, "trixie", ("browser",))
    place.mkdir(parents=True)
    (place / "packages.json").write_text(json.dumps({"browser": "1"}))
    assert find_toolroot(tmp_path, "trixie") is None
    found = find_toolroot(tmp_path, "trixie", ("browser",))
    assert found is not None
    assert found.path == place


def test_the_fingerprint_changes_with_any_version(tmp_path: Path) -> None:
    place = toolroot_place(tmp_path, "trixie")
    place.mkdir(parents=True)
    prints = set()
    for version in ("1", "2"):
        (place / "packages.json").write_text(json.dumps({"make": version}))
        found = find_toolroot(tmp_path, "trixie")
        assert found is not None
        prints.add(found.fingerprint)
    assert len(prints) == 2


def test_a_sandbox_that_works_is_silent_and_one_that_does_not_says_why(fake_tool: FakeTool) -> None:
    fake_tool("bwrap", "exit 0")
    check_sandbox(ROOT)
    fake_tool("bwrap", "echo 'bwrap: No permissions to create new namespace'; exit 1")
    with pytest.raises(InfrastructureError, match=r"cannot enter[\s\S]*No permissions[\s\S]*namespace"):
        check_sandbox(ROOT)


@pytest.mark.parametrize(
    "setting",
    [
        ("user/max_user_namespaces", "0", "user.max_user_namespaces=10000"),
        ("kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "kernel.apparmor_restrict_unprivileged_userns=0"),
    ],
)
def test_the_setting_that_forbids_a_sandbox_is_named_and_nothing_is_built_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake_tool: FakeTool, setting: tuple[str, str, str]
) -> None:
    name, value, told = setting
    fake_tool("bwrap", "echo 'bwrap: setting up uid map: Permission denied'; exit 1")
    monkeypatch.setattr("kpatch_ci.debian.toolroot.PROC_SYS", tmp_path)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    (tmp_path / name).parent.mkdir()
    (tmp_path / name).write_text(f"{value}\n")
    with pytest.raises(InfrastructureError, match="is not run without it") as caught:
        check_sandbox(ROOT)
    assert caught.value.exit_code == 3
    assert told in str(caught.value)
