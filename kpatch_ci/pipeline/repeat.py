# SPDX-License-Identifier: GPL-2.0-or-later
"""Repeating replicates to see whether they are alike: nodes beside those of a run, which neither find nor keep a replicate.

Every boot seed is booted twice: once as a run does it (reused when it was made before), once afresh into a store of its own that
is gone afterwards. Odd repeats resume the one snapshot, even repeats the other. Where there are hosts each of them boots it too,
and repeats go round: kept boot, fresh boot, each host.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kpatch_ci.guest.image import GuestImage
from kpatch_ci.model.boot import BootResult
from kpatch_ci.model.build import BuildResult
from kpatch_ci.model.machine import Machine
from kpatch_ci.model.series import BASELINE, Arm, Series
from kpatch_ci.model.status import Mode, Status
from kpatch_ci.model.workload import Case, Seed, WorkloadPlan
from kpatch_ci.pipeline.determinism import Finding, Observation, compare
from kpatch_ci.pipeline.engine import Node, Observer, Values
from kpatch_ci.pipeline.inexact import mark
from kpatch_ci.pipeline.places import Place, with_memory
from kpatch_ci.pipeline.plan import Depth, plan, plans_for
from kpatch_ci.pipeline.repeat_hosts import (
    LOST,
    HostFinding,
    boot_there,
    compare_host,
    host_name,
    host_source,
    there_name,
)
from kpatch_ci.pipeline.session import Session
from kpatch_ci.pipeline.slots import Slots
from kpatch_ci.pipeline.stagenames import GIVE_UP_AFTER, PRIORITY, boot_name, build_name, image_name, run_name
from kpatch_ci.pipeline.stages import Stages
from kpatch_ci.store.artifacts import ArtifactStore
from kpatch_ci.store.atomic import disk_errors
from kpatch_ci.workloads.events import parse_events
from kpatch_ci.workloads.table import WORKLOADS

KEPT, FRESH = "kept boot", "fresh boot"
HERE_TOO = (KEPT, FRESH)
"""Where this machine's repeats come from."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is repeated: one case of a workload on one machine, in one arm, under one seed."""

    machine: Machine
    arm: Arm
    plan: WorkloadPlan
    case: Case
    seed: Seed

    @property
    def name(self) -> str:
        """As the run's node is called."""
        return run_name(self.machine.arch, self.arm, self.plan.name, self.case.label, self.seed)


@dataclass(frozen=True, slots=True)
class BootPair:
    """The boots of one seed, compared: the guest's memory, what it said of itself, and its console."""

    machine: Machine
    arm: str
    seed: int
    finding: Finding


@dataclass(frozen=True, slots=True)
class Verified:
    """Every subject with what its repeats showed, and the boots."""

    subjects: tuple[tuple[Subject, Finding], ...]
    boots: tuple[BootPair, ...]
    hosts: tuple[HostFinding, ...] = ()

    @property
    def identical(self) -> bool:
        """All boots and all repeats."""
        findings = [*(f for _, f in self.subjects), *(b.finding for b in self.boots)]
        return bool(self.subjects) and all(f.identical for f in findings)


def verify(session: Session, series: Sequence[Series], observer: Observer, *, repeats: int) -> Verified:
    """Build, boot twice, repeat every replicate of the configuration ``repeats`` times. Raises InfrastructureError."""
    config = session.config
    arms = {one.arms[1]: plans_for(one, config.workloads) for one in series} or {Arm(BASELINE): config.workloads}
    kernels = list(dict.fromkeys(arm.kernel for arm in arms))
    subjects = [
        Subject(machine, arm, one, case, seed)
        for machine in config.machines
        for arm, plans in arms.items()
        for one in plans
        for case in one.cases
        for seed in config.seeds
    ]
    sources = (*HERE_TOO, *(host_source(place.name) for place in session.places))
    with Slots(session.jobs) as slots, _scratch(session.cache / "work") as scratch:
        builder = session.builder(slots.path)
        apart = replace(session, store=ArtifactStore(scratch))
        stages = Stages(session, builder, session.guests())
        fresh = Stages(apart, builder, apart.guests())
        nodes = [_kept_here(node) for node in plan(stages, series, Depth(replicates=False), baseline=not series)]
        pairs = [
            (m, kernel, seed)
            for m in config.machines
            for kernel in kernels
            for seed in sorted({s.boot for s in config.seeds})
        ]
        nodes += [_afresh(fresh.boot(*pair)) for pair in pairs]
        nodes += [boot_there(session, *pair, place) for pair in pairs for place in session.places]
        nodes += [
            _Repeat(one, number, sources, stages, fresh).node() for one in subjects for number in range(1, repeats + 1)
        ]
        values = session.engine(slots, observer).run(nodes)
        booted = [_boots_of(*pair, sources, values) for pair in pairs]
    seen = [(s.name, [values[_repeat_name(s, n)] for n in range(1, repeats + 1)]) for s in subjects]
    boots = tuple(BootPair(*pair, compare(found)) for pair, found in zip(pairs, booted, strict=True))
    everything = [*zip((boot_name(m.arch, kernel, seed) for m, kernel, seed in pairs), booted, strict=True), *seen]
    hosts = tuple(compare_host(place.name, everything) for place in session.places)
    found = [(s, compare([values[_repeat_name(s, n)] for n in range(1, repeats + 1)])) for s in subjects]
    for subject, finding in found:
        if finding.mode is Mode.VIRTUAL_TIME:
            image: GuestImage = values[image_name(subject.machine.arch)]
            because = f"{subject.name}, {finding.alike} of {repeats} alike: {finding.first}"
            mark(session.store, session.tools, image, subject.machine, subject.plan.kind, because=because)
    return Verified(tuple(found), boots, hosts)


@contextmanager
def _scratch(place: Path) -> Iterator[Path]:
    """A directory that is gone afterwards; when we are killed, the next use of the cache sweeps it away."""
    with disk_errors(place):
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="verify-", dir=place, ignore_cleanup_errors=True) as name:
            yield Path(name)


def _repeat_name(subject: Subject, number: int) -> str:
    return f"{subject.name} repeat {number}"


def _fresh_name(boot: str) -> str:
    return f"{boot} afresh"


def _kept_here(node: Node) -> Node:
    """The same, done here; and a boot that is known here without its snapshot is made again: memories are compared."""
    node = replace(node, elsewhere=None)
    look = node.lookup
    if node.kind != "boot" or look is None:
        return node

    def found(values: Values) -> BootResult | None:
        boot: BootResult | None = look(values)
        return boot if boot and boot.snapshot else None

    return replace(node, lookup=found)


def _afresh(boot: Node) -> Node:
    """The same boot under a name of its own, never looked up."""
    return replace(boot, name=_fresh_name(boot.name), lookup=None, elsewhere=None)


@dataclass(frozen=True, slots=True)
class _Repeat:
    """One repeat of a subject. ``sources`` take turns."""

    subject: Subject
    number: int
    sources: tuple[str, ...]
    kept: Stages
    fresh: Stages

    @property
    def _boot(self) -> str:
        one = self.subject
        return _boot_of(boot_name(one.machine.arch, one.arm.kernel, one.seed.boot), self._source)

    @property
    def _source(self) -> str:
        return self.sources[(self.number - 1) % len(self.sources)]

    def node(self) -> Node:
        one = self.subject
        needs = (build_name(one.machine.arch, one.arm.kernel), image_name(one.machine.arch), self._boot)
        node = Node(_repeat_name(one, self.number), "run", self.work, needs=needs, priority=PRIORITY["run"])
        if self._source in HERE_TOO:
            return node
        there = host_name(self._source)
        return replace(node, work=lambda _: self._unmeasured(LOST), slot=False, elsewhere=self.at, only=there)

    def work(self, values: Values) -> Observation:
        """On this machine."""
        return self.at(values, (self.kept if self._source == KEPT else self.fresh).here)

    def at(self, values: Values, place: Place) -> Observation:
        """Resume, run, and take down all that was said."""
        one = self.subject
        build: BuildResult | None = values[build_name(one.machine.arch, one.arm.kernel)]
        image: GuestImage = values[image_name(one.machine.arch)]
        boot: BootResult | None = values[self._boot]
        if build is None or boot is None or boot.status is not Status.PASSED:
            return self._unmeasured(f"its guest did not boot ({self._source})")
        if self.kept.failed(one.name) >= GIVE_UP_AFTER:
            return self._unmeasured(f"{GIVE_UP_AFTER} other repeats failed")
        workload = WORKLOADS[one.plan.kind]
        job = self.kept.job(one.arm, one.plan, one.case, one.seed)
        name = _repeat_name(one, self.number).replace("/", "_").replace(" ", "-")
        logs = self.kept.session.logs
        raw = place.replicate(boot, build, image, one.machine, job, logs=logs, name=name)
        parsed = parse_events(raw.text, workload, one.case, one.seed, Mode.DETERMINISTIC, one.plan.name)
        passed = raw.status is Status.PASSED
        if not passed or parsed.status is not Status.PASSED:
            self.kept.note_failure(one.name)
        return Observation(
            status=parsed.status if passed else raw.status,
            text=raw.text,
            console=raw.said,
            samples=parsed.samples,
            source=self._source,
            reason=parsed.reason if passed else raw.reason,
            log_tail=raw.log_tail or parsed.log_tail,
            seconds=raw.seconds,
        )

    def _unmeasured(self, reason: str) -> Observation:
        return Observation(Status.SKIPPED, source=self._source, reason=reason)


def _boot_of(boot: str, source: str) -> str:
    """Node of the boot that a source's repeats are resumed from."""
    if source in HERE_TOO:
        return boot if source == KEPT else _fresh_name(boot)
    return there_name(boot, host_name(source))


def _boots_of(machine: Machine, arm: str, seed: int, sources: Sequence[str], values: Values) -> list[Observation]:
    name = boot_name(machine.arch, arm, seed)
    return [_boot_observation(values[_boot_of(name, source)], source, machine) for source in sources]


def _boot_observation(boot: BootResult | None, source: str, machine: Machine) -> Observation:
    if boot is None:
        why = "its kernel did not build" if source in HERE_TOO else f"its kernel did not build, or {LOST}"
        return Observation(Status.SKIPPED, source=source, reason=why)
    said: list[Mapping[str, Any]] = [{"event": "facts", **boot.facts}, {"event": "said", "sha256": boot.said_digest}]
    memory = boot.memory_digest or with_memory(boot, machine).memory_digest
    if memory:
        said.append({"event": "memory", "sha256": memory})
    text = "".join(json.dumps(event) + "\n" for event in said)
    console = boot.console.read_text(errors="replace") if boot.console else ""
    return Observation(boot.status, text, console, source=source, reason=boot.reason, log_tail=boot.log_tail)
