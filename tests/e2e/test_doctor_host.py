# SPDX-License-Identifier: GPL-2.0-or-later
"""``doctor --host`` on a machine that lacks things, and ``--fix``, which brings them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kpatch_ci.debian.toolroot import ToolRoot
from kpatch_ci.store.cache import cache_root
from tests.e2e.conftest import Done, own_toolroot
from tests.e2e.hosts_run import Command, project
from tests.e2e.sshclient import Client
from tests.e2e.sshd import SshHost, host, install

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def tools() -> ToolRoot:
    """This machine's."""
    install()
    return own_toolroot()


@pytest.fixture
def bare(tools: ToolRoot, tmp_path: Path) -> Iterator[SshHost]:
    """A copy of this machine without bubblewrap, and with nothing of ours."""
    with host("bare", tmp_path, Client(tmp_path / "home"), copy=True) as made:
        made.inside("dpkg", "--remove", "--force-depends", "bubblewrap")
        yield made


def findings(done: Done) -> dict[str, Any]:
    return {one["name"]: one for one in json.loads(done.stdout)["findings"]}


def test_what_a_host_lacks_is_said_and_brought(bare: SshHost, tools: ToolRoot, tmp_path: Path) -> None:
    config = project(tmp_path / "project", [bare])
    run = Command(bare.client, cache_root(), tmp_path)
    doctor = ("doctor", "--host", "bare", "-c", config, "--json")
    before = run(*doctor)
    found = findings(before)
    assert before.code == 3
    assert {name for name, one in found.items() if one["ok"] is False} == {"bubblewrap", "sandbox", "tool root"}
    assert found["tool root"]["fix"] == "kpatch-ci doctor --host bare --fix"
    assert "as here" in found["worker"]["detail"]

    fixed = run(*doctor, "--fix")
    assert fixed.code == 0, fixed.stderr
    assert "bare: installing bubblewrap" in fixed.stderr
    assert "bare is ready" in fixed.stderr
    assert {one["ok"] for one in findings(fixed).values()} == {True}
    assert tools.fingerprint[:12] in findings(fixed)["tool root"]["detail"]
    there = bare.work / "tools" / tools.path.name
    assert (there / "packages.json").read_bytes() == (tools.path / "packages.json").read_bytes()

    again = run(*doctor, "--fix")
    assert again.code == 0
    assert "bare has our tool root, byte for byte" in again.stderr
    assert "installing" not in again.stderr
    bare.wait_quiet()
