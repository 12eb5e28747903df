# SPDX-License-Identifier: GPL-2.0-or-later
"""Boards among a run's machines: what they are started with, and that they are there before any long work."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kpatch_ci.board.boards import Boards
from kpatch_ci.board.image import BoardImage, Sources, make_board_image
from kpatch_ci.board.install import Files
from kpatch_ci.board.running import Subject
from kpatch_ci.debian.apt import Archives
from kpatch_ci.debian.toolroot import ToolRoot
from kpatch_ci.guest import cpio
from kpatch_ci.guest.files import KERNEL, Module, guest_modules, pack_modules
from kpatch_ci.guest.guests import RawRun
from kpatch_ci.guest.image import GuestImage
from kpatch_ci.model.arch import ARCHES
from kpatch_ci.model.boot import BootResult
from kpatch_ci.model.build import BuildResult
from kpatch_ci.model.digest import digest
from kpatch_ci.model.errors import UserError
from kpatch_ci.model.machine import Machine
from kpatch_ci.store.artifacts import ArtifactStore

KIND = "board-files"
STAGE_VERSION = 1
INITRD = "initrd"


@dataclass(frozen=True, slots=True)
class Kit:
    """What boards' files are made from: their part of the image is made when the first is started."""

    cache: Path
    store: ArtifactStore
    tools: ToolRoot
    archives: Archives
    sources: Sources
    _images: dict[str, BoardImage] = field(default_factory=dict)

    def image(self, arch: str) -> BoardImage:
        """A board's part of the initramfs."""
        if arch not in self._images:
            self._images[arch] = make_board_image(
                ARCHES[arch], self.cache, self.store, self.tools, archives=self.archives, sources=self.sources
            )
        return self._images[arch]

    def subject(self, build: BuildResult, image: GuestImage, machine: Machine, boot_seed: int) -> Subject:
        """A build, with the files that a board is started with."""
        if build.artifact is None:
            raise ValueError(f"build {build.key} left no artifact: only a passed one can be started")
        part, modules = self.image(machine.arch), guest_modules(build, machine)
        files = Files(build.artifact / KERNEL, self._initrd(image, part, modules), part.busybox)
        return Subject(build, files, tuple(m.name for m in modules), boot_seed)

    def _initrd(self, image: GuestImage, part: BoardImage, modules: Sequence[Module]) -> Path:
        """The guest image, the modules, and the board's part, whose init replaces the guest's."""
        loaded = [[m.name, m.parameters, m.digest] for m in modules]
        key = digest([KIND, STAGE_VERSION, image.digest, part.digest, loaded])

        def fill(place: Path) -> Mapping[str, Any]:
            with tempfile.TemporaryDirectory(dir=place) as scratch:
                work = Path(scratch)
                pack_modules(self.tools, modules, work)
                cpio.concatenate([image.path, work / "modules.cpio", part.path], place / INITRD)
                shutil.rmtree(work / "root")
            return {"modules": [m.name for m in modules]}

        return (self.store.get(KIND, key) or self.store.put(KIND, key, fill)).path / INITRD


def prepare_boards(machines: Sequence[Machine], kit: Kit, say: Callable[[str], None]) -> None:
    """Meet every board, and make what it is started with, before any long work.

    Raises InfrastructureError, which names the board that cannot be used.
    """
    for machine in (m for m in machines if m.board):
        say(Boards(kit.cache, replicate_timeout=0).prepare(machine))
        kit.image(machine.arch)


@dataclass(frozen=True, slots=True)
class OnBoards:
    """What is asked of Guests, of boards."""

    boards: Boards
    kit: Kit

    def find_boot(self, build: BuildResult, machine: Machine, boot_seed: int) -> BootResult | None:
        """The boot, where this run made one of that kernel."""
        return self.boards.find_boot(build, machine, boot_seed)

    def boot(self, build: BuildResult, image: GuestImage, machine: Machine, boot_seed: int, logs: Path) -> BootResult:
        """See Boards.boot."""
        return self.boards.boot(self.kit.subject(build, image, machine, boot_seed), machine, logs)

    def replicate(
        self,
        boot: BootResult,
        build: BuildResult,
        image: GuestImage,
        machine: Machine,
        job: str,
        *,
        logs: Path,
        name: str,
    ) -> RawRun:
        """See Boards.replicate."""
        subject = self.kit.subject(build, image, machine, boot.boot_seed)
        return self.boards.replicate(subject, machine, job, logs=logs, name=name)


def refuse_prompt(machine: Machine) -> None:
    """Raises UserError for a board: people log in to one."""
    if machine.board:
        login = machine.board.login
        what = f"{machine.name} is a board, and a prompt on the terminal is a guest's"
        raise UserError(what, where="--shell", expected=f"ssh -p {login.port} {login.user}@{login.address}")
