# SPDX-License-Identifier: GPL-2.0-or-later
"""Boards among a run's machines: who is asked, what they are started with, and that guests' kernels stay as they were."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kpatch_ci.board.boards import Boards
from kpatch_ci.board.image import BoardImage, Sources
from kpatch_ci.debian.apt import Archives
from kpatch_ci.debian.toolroot import ToolRoot
from kpatch_ci.guest.guests import Guests, RawRun
from kpatch_ci.guest.image import GuestImage
from kpatch_ci.guest.qemu import accelerator
from kpatch_ci.model.boot import BootResult
from kpatch_ci.model.build import BuildResult
from kpatch_ci.model.errors import InfrastructureError, UserError
from kpatch_ci.model.machine import Machine
from kpatch_ci.model.status import REAL_TIME, Mode, Status
from kpatch_ci.pipeline import board as module
from kpatch_ci.pipeline.board import GuestsAndBoards, Kit, prepare_boards
from kpatch_ci.pipeline.fingerprint import fingerprint
from kpatch_ci.store.artifacts import ArtifactStore
from tests.fakes.board import FakeBoard, machine

TOOLS = ToolRoot(Path("/nonexistent"), "trixie", "print", {})


@pytest.fixture
def kit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kit:
    """Whose parts are a few bytes each."""

    def modules(tools: ToolRoot, found: Any, work: Path) -> None:
        (work / "root").mkdir()
        (work / "modules.cpio").write_bytes(b"M" * 512)

    for name in ("part", "busybox"):
        (tmp_path / name).write_bytes(name[0].encode() * 512)
    made = BoardImage(tmp_path / "part", tmp_path / "busybox", "part-digest", {})
    monkeypatch.setattr(module, "pack_modules", modules)
    monkeypatch.setattr(module, "make_board_image", lambda *_, **__: made)
    sources = Sources(tmp_path, tmp_path)
    return Kit(tmp_path / "cache", ArtifactStore(tmp_path / "store"), TOOLS, Archives("", None), sources)


def build(place: Path) -> BuildResult:
    (place / "modules").mkdir(exist_ok=True)
    (place / "modules" / "null_blk.ko").write_bytes(b"ELF")
    (place / "image").write_bytes(b"kernel")
    return BuildResult(
        Status.PASSED, "baseline", "x86_64", "tree", "key", 1.0, 1, False, release="6.1.0", artifact=place
    )


def image(place: Path) -> GuestImage:
    (place / "guest").write_bytes(b"G" * 512)
    return GuestImage("x86_64", place / "guest", "guest-digest", {}, "key", place / "preload", "")


def test_a_board_is_started_with_the_guests_image_the_modules_and_its_own_part_behind_it(
    kit: Kit, tmp_path: Path
) -> None:
    found = kit.subject(build(tmp_path), image(tmp_path), machine(), 3)
    assert found.files.initrd.read_bytes() == b"G" * 512 + b"M" * 512 + b"p" * 512, (
        "later files replace earlier ones: init"
    )
    assert found.files.kernel.read_bytes() == b"kernel"
    assert (found.modules, found.boot_seed) == (("null_blk",), 3)
    again = kit.subject(build(tmp_path), image(tmp_path), machine(), 4)
    assert again.files.initrd == found.files.initrd, "made once"


class Asked:
    """Boards that only note that they were asked."""

    def find_boot(self, *_: Any) -> None:
        return None

    def boot(self, subject: Any, of: Machine, logs: Path) -> BootResult:
        return BootResult(Status.PASSED, "baseline", of.arch, of.name, subject.boot_seed, "board", 1.0, False)

    def replicate(self, subject: Any, of: Machine, job: str, *, logs: Path, name: str) -> RawRun:
        return RawRun(Status.PASSED, f"{of.name} {job}", 1.0)


def test_boards_are_asked_where_the_machine_is_one_and_guests_elsewhere(
    kit: Kit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guests = Guests(tmp_path, kit.store, TOOLS, boot_timeout=1, replicate_timeout=1, silence_timeout=1)
    both = GuestsAndBoards(guests, Asked(), kit)  # type: ignore[arg-type]
    booted = both.boot(build(tmp_path), image(tmp_path), machine(), 5, tmp_path)
    assert (booted.key, booted.boot_seed) == ("board", 5)
    assert both.find_boot(build(tmp_path), image(tmp_path), machine(), 5) is None
    run = both.replicate(booted, build(tmp_path), image(tmp_path), machine(), "job", logs=tmp_path, name="n")
    assert run.text == "lab job"
    with pytest.raises(UserError, match=r"lab is a board.* \(ssh -p 22 root@board.example\)"):
        both.boot_plain(build(tmp_path), image(tmp_path), machine(), 5)
    monkeypatch.setattr(Guests, "boot", lambda *_: "a guest's boot")
    monkeypatch.setattr(Guests, "find_boot", lambda *_: "a guest's")
    monkeypatch.setattr(Guests, "replicate", lambda *_, **__: "a guest's run")
    guest = Machine("m", "", "x86_64", "q35", "qemu64", 512, (), 0)
    made, own = build(tmp_path), image(tmp_path)
    answers: list[Any] = [both.boot(made, own, guest, 5, tmp_path), both.find_boot(made, own, guest, 5)]
    answers.append(both.replicate(booted, made, own, guest, "j", logs=tmp_path, name="n"))
    assert answers == ["a guest's boot", "a guest's", "a guest's run"]


def test_every_board_is_met_before_any_work_and_nothing_else_is(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    board, said = FakeBoard(), list[str]()
    monkeypatch.setattr(module, "Boards", lambda cache, **more: Boards(cache, connect=board.connect, **more))
    guest = Machine("m", "", "arm64", "virt", "cortex-a57", 512, (), 0)
    prepare_boards([guest, machine()], kit, said.append)
    assert said == ["board lab (root@board.example:22) runs linux 6.12.0-own, at 192.0.2.7/24"]
    assert set(kit._images) == {"x86_64"}, "what it is started with is there too"
    board.state = "dead"
    with pytest.raises(InfrastructureError, match="board lab"):
        prepare_boards([machine()], kit, said.append)


def test_hardware_is_a_mode_of_real_time_and_names_the_board() -> None:
    assert Mode(machine().accel) is Mode.HARDWARE
    assert Mode.HARDWARE in REAL_TIME
    assert accelerator(machine()) == "hardware, board.example"


def test_the_fingerprint_has_what_of_the_board_stays_from_run_to_run() -> None:
    look = {
        "cpu": "Cortex",
        "governor": {"policy0": "performance"},
        "load": 0.3,
        "celsius": 41.0,
        "khz": {"policy0": "1"},
    }
    boot = BootResult(Status.PASSED, "baseline", "x86_64", "lab", 1, "key", 1.0, False, facts={"board": look})

    class Config:
        machines = (machine(),)
        workloads = ()

    found = fingerprint(Config(), {"boot x86_64 baseline seed 1": boot}, {}, {})  # type: ignore[arg-type]
    own = found["arches"]["x86_64"]
    assert own["board"] == {"cpu": "Cortex", "governor": {"policy0": "performance"}}
    assert json.dumps(found), "a report can hold it"
