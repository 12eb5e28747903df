# SPDX-License-Identifier: GPL-2.0-or-later
"""Boards in a pipeline.yaml: their kernels get fragments of their own, and nobody else's do."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from kpatch_ci.config.load import Selection, load_config
from kpatch_ci.model.errors import UserError
from kpatch_ci.model.machine import Accel

PROJECT = Path(__file__).resolve().parents[3]
BOARD: dict[str, Any] = {
    "kind": "board",
    "name": "shelf",
    "description": "",
    "arch": "arm64",
    "address": "shelf.example",
    "memory_mib": 4096,
    "clusters": [{"name": "all", "cpus": "0-3"}],
}


def pipeline(place: Path, **changes: Any) -> Path:
    """The project's own, with a board for arm64 and its guest for x86_64."""
    for folder in ("patches", "kconfigs"):
        (place / folder).symlink_to(PROJECT / folder)
    shutil.copytree(PROJECT / "qemu", place / "qemu")
    (place / "qemu/shelf.yaml").write_text(yaml.safe_dump(BOARD | changes))
    settings = yaml.safe_load((PROJECT / "pipeline.yaml").read_text())
    settings["machines"] = ["shelf", "x86_64-8"]
    (place / "pipeline.yaml").write_text(yaml.safe_dump(settings))
    return place / "pipeline.yaml"


def names(paths: tuple[Path, ...]) -> list[str]:
    return [path.stem for path in paths]


def test_fragments_of_a_board_come_last_and_only_for_its_architecture(tmp_path: Path) -> None:
    config = load_config(pipeline(tmp_path, kconfig=["board", "board-virtio", "xfs"]))
    usual = ["debug", "dvfs", "null_blk", "xfs", "ext4"]
    assert names(config.fragments("arm64")) == ["base", "arm64", *usual, "board", "board-virtio"], "each once"
    assert names(config.fragments("x86_64")) == ["base", "x86_64", *usual]
    own = load_config(PROJECT / "pipeline.yaml")
    assert names(own.fragments("arm64")) == ["base", "arm64", *usual], "as they were: kernels keep their keys"


def test_a_fragment_that_is_not_there_is_told_with_the_boards_name(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"shelf: kconfig: no 'rk3399'"):
        load_config(pipeline(tmp_path, kconfig=["board", "rk3399"]))


def test_an_accelerator_is_refused_for_a_board(tmp_path: Path) -> None:
    path = pipeline(tmp_path)
    with pytest.raises(UserError, match="--accel: shelf is a board"):
        load_config(path, Selection(accel=Accel.TCG))
