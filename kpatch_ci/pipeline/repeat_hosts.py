# SPDX-License-Identifier: GPL-2.0-or-later
"""Repeats on other machines: boots that are pinned to one, and how what a machine saw compares with what this one saw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from kpatch_ci.guest.image import GuestImage
from kpatch_ci.model.boot import BootResult
from kpatch_ci.model.build import BuildResult
from kpatch_ci.model.machine import Machine
from kpatch_ci.model.status import Status
from kpatch_ci.pipeline.determinism import Observation, differences
from kpatch_ci.pipeline.engine import Node, Values
from kpatch_ci.pipeline.places import Place
from kpatch_ci.pipeline.session import Session
from kpatch_ci.pipeline.stagenames import PRIORITY, boot_name, build_name, image_name

LOST = "its host was lost"
_SOURCE = "host "


def host_source(name: str) -> str:
    """How an observation made on a host calls where it comes from."""
    return f"{_SOURCE}{name}"


def host_name(source: str) -> str:
    """The host of a source that is one."""
    return source.removeprefix(_SOURCE)


def there_name(boot: str, host: str) -> str:
    """Node of a boot on a host."""
    return f"{boot} on {host}"


def boot_there(session: Session, machine: Machine, kernel: str, boot_seed: int, place: Place) -> Node:
    """Boot a kernel on one host, and on no other; its value is None where there is no kernel, or the host is lost."""
    built, image = build_name(machine.arch, kernel), image_name(machine.arch)
    name = there_name(boot_name(machine.arch, kernel, boot_seed), place.name)
    at = partial(_boot_at, session, machine, boot_seed)
    return Node(
        name, "boot", _no_boot, (built, image), slot=False, priority=PRIORITY["boot"], elsewhere=at, only=place.name
    )


def _boot_at(session: Session, machine: Machine, boot_seed: int, values: Values, place: Place) -> BootResult | None:
    """See Node.elsewhere."""
    build: BuildResult | None = next((v for v in values.values() if isinstance(v, BuildResult)), None)
    image = next(v for v in values.values() if isinstance(v, GuestImage))
    if build is None or build.status is not Status.PASSED:
        return None
    return place.boot(build, image, machine, boot_seed, session.logs / f"on-{place.name}", memory=True)


def _no_boot(_: Values) -> None:
    """The host is lost."""


@dataclass(frozen=True, slots=True)
class HostFinding:
    """Of ``compared`` boots and repeats on a host ``alike`` were, to the byte, as on this machine. ``first`` is what differs first."""

    name: str
    compared: int
    alike: int
    first: str = ""

    @property
    def identical(self) -> bool:
        """It did something, and all of it alike."""
        return self.compared > 0 and self.alike == self.compared


def compare_host(name: str, seen: Sequence[tuple[str, Sequence[Observation]]]) -> HostFinding:
    """Compare a host with this machine. ``seen``: of each boot and subject its name and all observations.

    Where this machine's own are not alike the first that passed counts. Samples and counters come before the rest, so the
    first difference is a counter wherever one differs.
    """
    compared = alike = 0
    first = ""
    for subject, observations in seen:
        ours = next((o for o in observations if _ours(o) and o.status is Status.PASSED), None)
        for one in observations:
            if one.source != host_source(name) or one.status is Status.SKIPPED or ours is None:
                continue
            compared += 1
            alike += one.said == ours.said
            if one.said != ours.said and not first:
                found = differences(ours, one)[0]
                first = f"{subject}: {found.field}: {found.value} there, {found.usual} here"
    return HostFinding(name, compared, alike, first)


def _ours(one: Observation) -> bool:
    return not one.source.startswith(_SOURCE)
