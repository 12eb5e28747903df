# SPDX-License-Identifier: GPL-2.0-or-later
"""The sandbox, tried from the inside: a patch's build is somebody else's code."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpatch_ci.debian.apt import host_archives
from kpatch_ci.debian.toolroot import ToolRoot, make_toolroot
from kpatch_ci.guest.image import make_image
from kpatch_ci.model.arch import ARCHES
from kpatch_ci.process import run
from kpatch_ci.store.artifacts import ArtifactStore
from kpatch_ci.store.cache import cache_root
from tests.e2e.conftest import PROJECT

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def tools() -> ToolRoot:
    return make_toolroot(cache_root(), "trixie", host_archives())


def inside(tools: ToolRoot, script: str, source: Path, out: Path) -> tuple[int, str]:
    argv = tools.argv(["sh", "-c", script], mounts=[(source, "/src")], write_mounts=[(out, "/out")])
    done = run(argv, timeout=60)
    return done.returncode, done.output


@pytest.mark.parametrize(
    "attack",
    [
        "echo x > /src/file",
        "mount -o remount,bind,rw /src && echo x > /src/file",
        "echo x > /usr/bin/gcc",
        "mount -o remount,bind,rw /usr && echo x > /usr/bin/gcc",
        "mknod /out/disk b 8 0",
        "cat /etc/shadow",
        "ls /root",
        "ls /home",
        "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 22), 1)'",
    ],
)
def test_a_build_cannot_get_out(tools: ToolRoot, tmp_path: Path, attack: str) -> None:
    source, out = tmp_path / "src", tmp_path / "out"
    for place in (source, out):
        place.mkdir()
    (source / "file").write_text("as it was")
    code, said = inside(tools, attack, source, out)
    assert code != 0, said
    assert (source / "file").read_text() == "as it was"


def test_it_can_write_where_it_should(tools: ToolRoot, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "out").mkdir()
    assert inside(tools, "touch /out/object && touch /tmp/scratch", tmp_path / "src", tmp_path / "out") == (0, "")
    assert (tmp_path / "out/object").exists()


@pytest.mark.parametrize("arch", list(ARCHES))
def test_the_guest_image_is_the_same_bytes_when_it_is_made_again(tools: ToolRoot, tmp_path: Path, arch: str) -> None:
    images = [
        make_image(
            ARCHES[arch],
            tmp_path / name,
            ArtifactStore(tmp_path / name),
            tools,
            archives=host_archives(),
            agent_sources=PROJECT / "qemu/guest",
        )
        for name in ("one", "two")
    ]
    assert images[0].digest == images[1].digest
    assert images[0].preload_digest == images[1].preload_digest
    assert {"rt-tests", "dbench", "coreutils", "xfsprogs", "e2fsprogs", "busybox-static"} <= set(images[0].packages)
