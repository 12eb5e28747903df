# SPDX-License-Identifier: GPL-2.0-or-later
"""One replicate as a stage: when it is known, when it is not to be measured, and what comes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kpatch_ci.guest.events import find_event
from kpatch_ci.guest.image import GuestImage
from kpatch_ci.guest.secondlook import twice
from kpatch_ci.model.boot import BootResult
from kpatch_ci.model.build import BuildResult
from kpatch_ci.model.machine import Machine
from kpatch_ci.model.series import Arm
from kpatch_ci.model.status import Mode, Status
from kpatch_ci.model.workload import Case, Replicate, Seed, WorkloadPlan
from kpatch_ci.pipeline.engine import Values
from kpatch_ci.pipeline.inexact import mode_of
from kpatch_ci.pipeline.places import HERE, Doubted, Place
from kpatch_ci.pipeline.stagenames import GIVE_UP_AFTER, OVER, boot_name, build_name, image_name
from kpatch_ci.store.atomic import require_space
from kpatch_ci.workloads.events import parse_events
from kpatch_ci.workloads.table import WORKLOADS

if TYPE_CHECKING:
    from kpatch_ci.pipeline.stages import Stages

REPLICATE = "replicate"


@dataclass(frozen=True, slots=True)
class One:
    """One replicate: found in the store by its key, or run and kept there if it passed."""

    stages: Stages
    machine: Machine
    arm: Arm
    plan: WorkloadPlan
    case: Case
    seed: Seed
    job: str
    others: tuple[str, ...] = ()
    """Builds of the kernels that it is compared with."""

    def _needs(self, values: Values) -> tuple[BuildResult, GuestImage, BootResult] | None:
        build: BuildResult | None = values[build_name(self.machine.arch, self.arm.kernel)]
        boot: BootResult | None = values[boot_name(self.machine.arch, self.arm.kernel, self.seed.boot)]
        if build is None or boot is None or boot.status is not Status.PASSED:
            return None
        return build, values[image_name(self.machine.arch)], boot

    def look(self, values: Values) -> Replicate | None:
        """The replicate, when it was measured before: it is a pure function of what its key covers."""
        if not differs(values, build_name(self.machine.arch, self.arm.kernel), self.others):
            return self._unmeasured(Status.SKIPPED, "no other kernel was built to compare it with")
        needs = self._needs(values)
        if needs is None:
            return self._unmeasured(Status.SKIPPED, OVER if self._too_late(values) else "its guest was not booted")
        if self._mode(needs[1]) is not Mode.DETERMINISTIC:
            return None
        kept = self.stages.session.store.get(REPLICATE, self.stages.guests.replicate_key(needs[2], self.job))
        if kept is None:
            return None
        found = self._parse(str(kept.meta["text"]), Mode.DETERMINISTIC)
        return replace(found, seconds=float(kept.meta["seconds"]), cached=True)

    def _too_late(self, values: Values) -> bool:
        """Whether there is a kernel, and time was up before it was booted."""
        build = usable(values[build_name(self.machine.arch, self.arm.kernel)])
        return (
            self.stages.over
            and build is not None
            and values[boot_name(self.machine.arch, self.arm.kernel, self.seed.boot)] is None
        )

    def work(self, values: Values) -> Replicate:
        """On this machine."""
        return self.at(values, self.stages.here)

    def at(self, values: Values, place: Place) -> Replicate:
        """Resume the snapshot at a place, run, read the result channel."""
        needs = self._needs(values)
        assert needs is not None, "look() answers for skipped ones"  # noqa: S101
        if self.stages.over:
            return self._unmeasured(Status.SKIPPED, OVER)
        case_key = f"{self.machine.arch} {self.arm.label} {self.plan.name} {self.case.label}"
        if self.stages.failed(case_key) >= GIVE_UP_AFTER:
            return self._unmeasured(Status.SKIPPED, f"this case failed under {GIVE_UP_AFTER} other seeds")
        build, image, boot = needs
        name = f"{self.machine.arch}-{self.arm.label}-{self.plan.name}-{self.case.label}-{self.seed}".replace("/", "_")
        raw = place.replicate(boot, build, image, self.machine, self.job, logs=self.stages.session.logs, name=name)
        mode = self._mode(image)
        result = replace(self._parse(raw.text, mode), seconds=round(raw.seconds, 3), first=raw.first)
        if raw.status is Status.PASSED and result.status is Status.PASSED:
            if mode is Mode.DETERMINISTIC:
                self._keep(boot, raw.text, result.seconds)
            return result
        doubt(place, raw.reason or result.reason)
        self.stages.note_failure(case_key)
        require_space(self.stages.session.cache)
        # The workload's own words say more than the guest's end, unless the kernel crashed under it, or in its boot.
        booting = self.machine.real_time and find_event(raw.text, "job") is None
        guests_end = result.status is Status.PASSED or "crashed" in raw.reason or booting
        if raw.status is not Status.PASSED and guests_end:
            result = replace(result, status=raw.status, reason=raw.reason)
        reason = twice(result.reason, raw.first)
        return replace(result, samples={}, reason=reason, log_tail=raw.log_tail or result.log_tail)

    def _keep(self, boot: BootResult, text: str, seconds: float) -> None:
        key = self.stages.guests.replicate_key(boot, self.job)
        self.stages.session.store.put(REPLICATE, key, lambda _: {"text": text, "seconds": seconds})

    def _mode(self, image: GuestImage) -> Mode:
        session = self.stages.session
        return mode_of(session.store, session.tools, image, self.machine, self.plan.kind)

    def _parse(self, text: str, mode: Mode) -> Replicate:
        return parse_events(text, WORKLOADS[self.plan.kind], self.case, self.seed, mode, self.plan.name)

    def _unmeasured(self, status: Status, reason: str) -> Replicate:
        mode = Mode(self.machine.accel)
        return Replicate(self.plan.name, self.case.label, self.seed, status, mode, reason=reason)


def differs(values: Values, built: str, others: Sequence[str]) -> bool:
    """Whether one of ``others`` is another kernel than ``built``; also where there are none to compare it with."""
    mine = usable(values[built])
    builds = [usable(values[name]) for name in others]
    return not others or any(mine and other and mine.kernel_digest != other.kernel_digest for other in builds)


def doubt(place: Place, reason: str) -> None:
    """Raises Doubted where it was not this machine that saw a kernel or a guest fail."""
    if place.name != HERE:
        raise Doubted(reason)


def usable(build: BuildResult | None) -> BuildResult | None:
    """The build, where it gave a kernel."""
    return build if build is not None and build.status is Status.PASSED else None
