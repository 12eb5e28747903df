# SPDX-License-Identifier: GPL-2.0-or-later
"""Boards among a run's machines: who is asked, what they are started with, and that guests' kernels stay as they were."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kpatch_ci.board import console
from kpatch_ci.board.boards import Boards
from kpatch_ci.board.image import BoardImage, Sources
from kpatch_ci.cli import boot as boot_verb
from kpatch_ci.cli import build as build_verb
from kpatch_ci.cli.main import main
from kpatch_ci.debian.apt import Archives
from kpatch_ci.debian.toolroot import ToolRoot
from kpatch_ci.guest.guests import Guests, RawRun
from kpatch_ci.guest.image import GuestImage
from kpatch_ci.guest.qemu import accelerator
from kpatch_ci.model.boot import BootResult
from kpatch_ci.model.build import BuildResult, Tree
from kpatch_ci.model.errors import InfrastructureError, UserError
from kpatch_ci.model.machine import Machine
from kpatch_ci.model.status import REAL_TIME, Mode, Status
from kpatch_ci.pipeline import board as module
from kpatch_ci.pipeline import session as sessions
from kpatch_ci.pipeline.board import Kit, OnBoards, prepare_boards, refuse_prompt
from kpatch_ci.pipeline.fingerprint import fingerprint
from kpatch_ci.pipeline.stages import Stages
from kpatch_ci.store.artifacts import ArtifactStore
from tests.fakes.board import FakeBoard, machine

PIPELINE = Path(__file__).resolve().parents[3] / "pipeline.yaml"
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


class AskedGuests:
    """Guests that do the same."""

    def find_boot(self, *_: Any) -> str:
        return "a guest's"

    def boot(self, *_: Any) -> BootResult:
        return BootResult(Status.PASSED, "baseline", "x86_64", "m", 1, "guest", 1.0, False)

    def replicate(self, *_: Any, **__: Any) -> RawRun:
        return RawRun(Status.PASSED, "a guest's run", 1.0)


def test_boards_are_asked_where_the_machine_is_one_and_guests_elsewhere(kit: Kit, tmp_path: Path) -> None:
    made: list[OnBoards] = []

    def on_boards() -> OnBoards:
        made.append(OnBoards(cast("Boards", Asked()), kit))
        return made[-1]

    session = cast("Any", SimpleNamespace(on_boards=on_boards))
    stages = Stages(session, cast("Any", None), cast("Guests", AskedGuests()))
    here, kernel, own = stages.here, build(tmp_path), image(tmp_path)
    guest = Machine("m", "", "x86_64", "q35", "qemu64", 512, (), 0)
    assert here.boot(kernel, own, guest, 5, tmp_path).key == "guest"
    booted = BootResult(Status.PASSED, "baseline", "x86_64", "m", 5, "k", 1.0, False)
    assert here.replicate(booted, kernel, own, guest, "job", logs=tmp_path, name="n").text == "a guest's run"
    assert made == [], "nobody asks for boards where there are none"
    booted = here.boot(kernel, own, machine(), 5, tmp_path)
    assert (booted.key, booted.boot_seed) == ("board", 5)
    assert here.replicate(booted, kernel, own, machine(), "job", logs=tmp_path, name="n").text == "lab job"
    node = stages.boot(machine(), "baseline", 5)
    assert (node.slot, node.lane, node.elsewhere) == (False, "board lab", None)
    values = {"build x86_64 baseline": kernel, "image x86_64": own}
    assert node.lookup
    assert node.lookup(values) is None
    assert len(made) == 1, "what one boot showed the others know"
    node = stages.boot(guest, "baseline", 5)
    assert (node.slot, node.lane) == (True, "")


def test_a_prompt_on_a_board_is_refused_before_anything_is_built() -> None:
    with pytest.raises(UserError, match=r"lab is a board.* \(ssh -p 22 root@board.example\)"):
        refuse_prompt(machine())
    refuse_prompt(Machine("m", "", "x86_64", "q35", "qemu64", 512, (), 0))


@pytest.mark.parametrize("boots", [True, False])
def test_only_what_starts_kernels_needs_the_boards_and_kvm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, boots: bool
) -> None:
    tree = Tree("debian:6.1", "6.1", tmp_path, "commit", "tree", "origin")
    trees = SimpleNamespace(will_fetch=lambda _: False, get=lambda _: tree)
    asked: list[str] = []
    monkeypatch.setattr(sessions, "open_tools", lambda *_: (tmp_path, TOOLS, Archives("", None)))
    monkeypatch.setattr(sessions, "TreeCache", lambda *_: trees)
    monkeypatch.setattr(sessions, "prepare_boards", lambda *_: asked.append("boards"))
    monkeypatch.setattr(sessions, "prove_accelerators", lambda *_: asked.append("kvm"))
    timeouts = SimpleNamespace(build=60)
    made = SimpleNamespace(
        archives=None, tools="trixie", tree="t", machines=(machine(),), root=tmp_path, timeouts=timeouts
    )
    config = cast("Any", made)
    session = sessions.open_session(config, jobs=1, logs=tmp_path, say=lambda _: None, hosts=False, boots=boots)
    assert asked == (["boards", "kvm"] if boots else [])
    assert session.tree is tree


def test_every_board_is_met_before_any_work_and_nothing_else_is(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    board, said = FakeBoard(), list[str]()
    monkeypatch.setattr(console, "SETTLE", 0.05)
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


def test_build_says_that_it_starts_no_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[dict[str, Any]] = []

    def open_session(*_: Any, **how: Any) -> None:
        said.append(how)
        raise InfrastructureError("far enough")

    for verb in (build_verb, boot_verb):
        monkeypatch.setattr(verb, "open_session", open_session)
    for name in ("build", "boot"):
        assert main([name, "-c", str(PIPELINE), "--output", str(tmp_path / name)]) == 3
    assert [how.get("boots", True) for how in said] == [False, True]
