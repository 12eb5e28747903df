# SPDX-License-Identifier: GPL-2.0-or-later
"""A tool root arrives as it was packed, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpatch_ci.debian.toolroot import ToolRoot, find_toolroot, toolroot_place
from kpatch_ci.debian.transport import KIND, PACKED, contents_digest, pack, unpack
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.store.artifacts import ArtifactStore


def tools(cache: Path) -> ToolRoot:
    place = toolroot_place(cache, "trixie")
    (place / "usr" / "bin").mkdir(parents=True)
    (place / "usr" / "bin" / "gcc").write_bytes(b"\x7fELF")
    (place / "usr" / "bin" / "gcc").chmod(0o755)
    (place / "usr" / "bin" / "cc").symlink_to("gcc")
    (place / "packages.json").write_text('{"gcc": "14"}')
    found = find_toolroot(cache, "trixie")
    assert found is not None
    return found


def test_it_arrives_byte_for_byte_with_links_and_permissions(tmp_path: Path) -> None:
    ours, store = tools(tmp_path / "here"), ArtifactStore(tmp_path / "there" / "store")
    packed = pack(ours, store)
    made = unpack(tmp_path / "there", store, packed.key)
    assert made.fingerprint == ours.fingerprint
    assert contents_digest(made.path) == contents_digest(ours.path) == packed.key
    assert (made.path / "usr/bin/cc").readlink() == Path("gcc")
    assert (made.path / "usr/bin/gcc").stat().st_mode & 0o777 == 0o755
    assert store.get(KIND, packed.key) is None  # nobody needs it twice


def test_what_was_there_before_is_replaced(tmp_path: Path) -> None:
    ours, store = tools(tmp_path / "here"), ArtifactStore(tmp_path / "there" / "store")
    (tools(tmp_path / "there").path / "usr/bin/gcc").write_bytes(b"another")
    packed = pack(ours, store)
    assert contents_digest(unpack(tmp_path / "there", store, packed.key).path) == packed.key


@pytest.mark.parametrize("change", ["content", "mode", "link", "more"])
def test_the_digest_is_of_everything_in_it(tmp_path: Path, change: str) -> None:
    ours = tools(tmp_path)
    before, folder = contents_digest(ours.path), ours.path / "usr" / "bin"
    if change == "content":
        (folder / "gcc").write_bytes(b"\x7fELG")
    elif change == "mode":
        (folder / "gcc").chmod(0o700)
    elif change == "link":
        (folder / "cc").unlink()
        (folder / "cc").symlink_to("clang")
    else:
        (folder / "more").mkdir()
    assert contents_digest(ours.path) != before


def test_a_packed_one_that_was_damaged_is_not_unpacked(tmp_path: Path) -> None:
    ours, store = tools(tmp_path / "here"), ArtifactStore(tmp_path / "there" / "store")
    packed = pack(ours, store)
    data = (packed.path / PACKED).read_bytes()
    (packed.path / PACKED).write_bytes(data[:-20] + b"x" * 20)
    with pytest.raises(InfrastructureError, match="damaged"):
        unpack(tmp_path / "there", store, packed.key)
    assert find_toolroot(tmp_path / "there", "trixie") is None
