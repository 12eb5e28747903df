# SPDX-License-Identifier: GPL-2.0-or-later
"""Where a stage may run: this machine, another one, a cluster. A stage says what is to be done; a place does it.

A build, a boot and a replicate are functions of artifacts and words, so it does not matter which place does them: the value is
the same, or the place is refused. What they need travels by digest; what they make comes back as an artifact of our own store.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from kpatch_ci.guest.guests import Guests, RawRun
from kpatch_ci.guest.image import GuestImage
from kpatch_ci.guest.snapshot import memory_digest
from kpatch_ci.kernel.build import Builder, BuildRequest
from kpatch_ci.model.boot import BootResult
from kpatch_ci.model.build import BuildResult
from kpatch_ci.model.machine import Machine

if TYPE_CHECKING:
    from kpatch_ci.pipeline.board import OnBoards

BUILD, BOOT, RUN = "build", "boot", "run"
GUEST_KINDS = frozenset({BOOT, RUN})
HERE = "here"


class PlaceLost(Exception):
    """A place is gone, in the middle of a stage or before it. Its work goes elsewhere, and it gets no more."""


def with_memory(boot: BootResult, machine: Machine) -> BootResult:
    """The boot with the digest of the memory in its snapshot, where it has one."""
    return replace(boot, memory_digest=memory_digest(boot.snapshot, machine.memory_mib)) if boot.snapshot else boot


class Doubted(Exception):
    """A place says that a kernel does not build, or a guest failed, and why. This machine must see it before it counts."""


class Place(Protocol):
    """One place with room for ``slots`` stages of ``kinds`` at once. Its methods block, each in a thread of the engine's.

    They raise PlaceLost when the place is gone, InfrastructureError where it is there and cannot do what it must.
    """

    @property
    def name(self) -> str:
        """As the configuration calls it."""

    @property
    def slots(self) -> int:
        """How many stages it does at once."""

    @property
    def kinds(self) -> frozenset[str]:
        """Of BUILD, BOOT and RUN, those that it does; with an architecture behind it ("run arm64") for that alone."""

    @property
    def lost(self) -> str:
        """Why it is gone; empty while it is there."""

    @property
    def moved(self) -> tuple[int, int]:
        """Bytes sent there and received from there so far."""

    def stop(self) -> None:
        """End what is at work there: its methods raise PlaceLost soon. It may be asked again afterwards."""

    def close(self) -> None:
        """Leave it for good: what is at work there ends, and it is lost."""

    def build(self, request: BuildRequest, logs: Path) -> BuildResult:
        """See Builder.build. A build that passed is in this machine's store afterwards."""

    def has_objects(self, request: BuildRequest) -> bool:
        """Whether the objects are there from which a patched kernel of the request's tree is built in seconds."""

    def boot(
        self,
        build: BuildResult,
        image: GuestImage,
        machine: Machine,
        boot_seed: int,
        logs: Path,
        *,
        memory: bool = False,
    ) -> BootResult:
        """See Guests.boot. The snapshot stays where it was made; what the boot said comes back, and with ``memory`` its digest."""

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
        """See Guests.replicate. A place that has no snapshot of the boot boots it, and must see it run alike."""


def does(place: Place, kind: str) -> bool:
    """Whether a place does a kind of stage; ``kind`` is followed by the stage's architecture."""
    return kind in place.kinds or kind.partition(" ")[0] in place.kinds


@dataclass(frozen=True, slots=True)
class Here:
    """This machine, and the boards that it starts. The engine's own slots bound it; what is on a board takes none."""

    builder: Builder
    guests: Guests
    on_boards: Callable[[], OnBoards]
    """Asked where a machine is a board."""
    name: str = HERE
    slots: int = 0
    kinds: frozenset[str] = frozenset({BUILD, *GUEST_KINDS})
    lost: str = ""
    moved: tuple[int, int] = (0, 0)

    def stop(self) -> None:
        """``process.kill_all`` does it."""

    def close(self) -> None:
        """Nobody leaves this machine."""

    def build(self, request: BuildRequest, logs: Path) -> BuildResult:
        """Build, a patched kernel from the baseline's objects though another place built that, and may be lost by now."""
        self.builder.make_objects(request, logs)
        return self.builder.build(request, logs)

    def has_objects(self, request: BuildRequest) -> bool:
        """See Place."""
        return self.builder.has_objects(request)

    def boot(
        self,
        build: BuildResult,
        image: GuestImage,
        machine: Machine,
        boot_seed: int,
        logs: Path,
        *,
        memory: bool = False,
    ) -> BootResult:
        """Boot."""
        if machine.board:
            return self.on_boards().boot(build, image, machine, boot_seed, logs)
        boot = self.guests.boot(build, image, machine, boot_seed, logs)
        return with_memory(boot, machine) if memory else boot

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
        """Resume, or in real time boot anew."""
        if machine.board:
            return self.on_boards().replicate(boot, build, image, machine, job, logs=logs, name=name)
        return self.guests.replicate(boot, build, image, machine, job, logs=logs, name=name)
