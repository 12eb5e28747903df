# SPDX-License-Identifier: GPL-2.0-or-later
"""Modules of ours: sources, keys, and where they are built."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kpatch_ci.debian.toolroot import ToolRoot
from kpatch_ci.kernel.build import BuildRequest
from kpatch_ci.kernel.external import copy_external, drop_external, place_external, read_external
from kpatch_ci.kernel.outputs import OddOutput
from kpatch_ci.model.arch import ARM64
from kpatch_ci.model.build import Tree
from kpatch_ci.model.errors import InfrastructureError

ROOT = Path(__file__).parents[3]


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    folder = tmp_path / "driver"
    folder.mkdir()
    (folder / "Kbuild").write_text("obj-m := driver.o\n")
    (folder / "driver.c").write_text("int x;\n")
    (folder / "driver.o").write_text("left by hand")
    return folder


def request_for(tmp_path: Path) -> BuildRequest:
    tree = Tree("t", "6.1", tmp_path, "c", "tree", "o")
    return BuildRequest("baseline", ARM64, tree, "tree", {})


def test_the_frequency_driver_is_a_module_of_ours() -> None:
    names = [name for name, _ in read_external(ROOT / "qemu/cpufreq").files]
    assert names == ["Kbuild", "changes.h", "kpci_cpufreq.c"]


def test_a_folder_without_kbuild_is_named(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="has no Kbuild file"):
        read_external(tmp_path)


def test_the_key_follows_the_sources_and_nothing_else(sources: Path, tmp_path: Path) -> None:
    tools = ToolRoot(tmp_path, "trixie", "tools-1", {})
    plain = request_for(tmp_path)

    def key() -> str:
        return replace(plain, external=(read_external(sources),)).key(tools)

    before = key()
    assert before != plain.key(tools)
    (sources / "driver.o").write_text("changed")
    assert key() == before
    (sources / "driver.c").write_text("int y;\n")
    assert key() != before


def test_the_baseline_of_a_request_keeps_its_modules(sources: Path, tmp_path: Path) -> None:
    patched = replace(request_for(tmp_path), arm="s", tree_id="other", external=(read_external(sources),))
    assert patched.baseline() == replace(patched, arm="baseline", tree_id="tree")


def test_sources_are_laid_out_afresh_and_modules_copied(sources: Path, tmp_path: Path) -> None:
    module = read_external(sources)
    place = place_external(module, tmp_path / "out")
    (place / "stale.ko").write_bytes(b"old")
    place = place_external(module, tmp_path / "out")
    assert sorted(p.name for p in place.iterdir()) == ["Kbuild", "driver.c"]
    (place / "driver.ko").write_bytes(b"module")
    assert copy_external(module, tmp_path / "out", tmp_path / "modules") == ["driver.ko"]
    assert (tmp_path / "modules/driver.ko").read_bytes() == b"module"
    drop_external(tmp_path / "out")
    assert not place.exists()


def test_a_build_cannot_pass_off_another_file_as_the_module(sources: Path, tmp_path: Path) -> None:
    module = read_external(sources)
    place = place_external(module, tmp_path / "out")
    with pytest.raises(OddOutput, match="left no module of driver"):
        copy_external(module, tmp_path / "out", tmp_path / "modules")
    (place / "driver.ko").symlink_to(sources / "driver.o")
    with pytest.raises(OddOutput, match="no regular file"):
        copy_external(module, tmp_path / "out", tmp_path / "modules")
