# SPDX-License-Identifier: GPL-2.0-or-later
"""A place that is reached by calls: another machine, a cluster. How a call gets there is its carrier's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from kpatch_ci.guest.guests import RawRun
from kpatch_ci.guest.image import GuestImage
from kpatch_ci.kernel.build import KIND, BuildRequest, passed
from kpatch_ci.model.boot import BootResult
from kpatch_ci.model.build import BuildResult
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.model.machine import Machine
from kpatch_ci.model.status import Status
from kpatch_ci.pipeline.calls import (
    Answer,
    BootAnswer,
    BootCall,
    BuildAnswer,
    Call,
    Limits,
    Ref,
    ReplicateAnswer,
    ReplicateCall,
    kept_log,
    stripped_boot,
    stripped_build,
    stripped_image,
)
from kpatch_ci.pipeline.supply import Supply
from kpatch_ci.store.artifacts import Artifact

Provide = Callable[[Ref], None]
"""Sees to it that an artifact that is about to be sent is in our store."""


def is_there(_: Ref) -> None:
    """Of a guest's artifacts all are."""


class Carrier(Protocol):
    """Takes calls to where they are done, with the artifacts that they need, and answers back. Safe for concurrent threads."""

    def do(self, call: Call, provide: Provide = is_there) -> Answer:
        """Blocks. Raises PlaceLost when the other end is gone, InfrastructureError where it is there and fails."""

    def fetch(self, ref: Ref) -> Artifact:
        """Bring an artifact from there into our store, whole and verified; only where the place does builds. Raises as ``do``."""

    @property
    def lost(self) -> str:
        """See Place.lost."""

    @property
    def moved(self) -> tuple[int, int]:
        """See Place.moved."""

    def stop(self) -> None:
        """See Place.stop."""

    def close(self) -> None:
        """See Place.close."""


@dataclass(frozen=True, slots=True)
class FarPlace:
    """See Place."""

    name: str
    slots: int
    kinds: frozenset[str]
    carrier: Carrier
    limits: Limits
    supply: Supply | None = None
    """Of what is built there; None where nothing is."""
    objects: set[str] = field(default_factory=set)
    """Objects of baselines that are there, by name."""

    @property
    def lost(self) -> str:
        """As its carrier says."""
        return self.carrier.lost

    @property
    def moved(self) -> tuple[int, int]:
        """As its carrier counts."""
        return self.carrier.moved

    def close(self) -> None:
        """Leave it."""
        self.carrier.close()

    def stop(self) -> None:
        """Give up what is at work there."""
        self.carrier.stop()

    def build(self, request: BuildRequest, logs: Path) -> BuildResult:
        """Build there, and fetch the kernel. What make said of one that does not build comes back as a log."""
        supply = self._supply(request)
        call = supply.call(request, self.slots)
        answer = self.carrier.do(call, partial(supply.provide, request.tree))
        if not isinstance(answer, BuildAnswer):
            raise InfrastructureError(f"{self.name} answered a build with {type(answer).__name__}")
        if answer.build.status is not Status.PASSED:
            log = logs / f"build-{request.arch.name}-{request.arm}.on-{self.name}.log"
            return replace(answer.build, log=kept_log(answer.log, log))
        artifact = self.carrier.fetch((KIND, call.key))
        self.objects.add(supply.objects_of(request))
        return passed(request, artifact, cached=answer.build.cached)

    def has_objects(self, request: BuildRequest) -> bool:
        """See Place."""
        return self.supply is not None and self.supply.objects_of(request) in self.objects

    def _supply(self, request: BuildRequest) -> Supply:
        if self.supply is None:
            raise InfrastructureError(f"{self.name} does no builds: {request.arm} for {request.arch.name}")
        return self.supply

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
        """Boot there; with ``memory`` its digest comes back too."""
        call = BootCall(stripped_build(build), stripped_image(image), machine, boot_seed, self.limits, memory)
        answer = self.carrier.do(call)
        if not isinstance(answer, BootAnswer):
            raise InfrastructureError(f"{self.name} answered a boot with {type(answer).__name__}")
        log = logs / f"boot-{machine.arch}-{build.arm}-{boot_seed}.console.log"
        return replace(answer.boot, console=kept_log(answer.console, log))

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
        """Resume there."""
        call = ReplicateCall(
            stripped_boot(boot), stripped_build(build), stripped_image(image), machine, job, name, self.limits
        )
        answer = self.carrier.do(call)
        if not isinstance(answer, ReplicateAnswer):
            raise InfrastructureError(f"{self.name} answered a replicate with {type(answer).__name__}")
        return replace(answer.run, console=kept_log(answer.console, logs / f"{name}.console.log"))
