# SPDX-License-Identifier: GPL-2.0-or-later
"""The stages of a run as nodes of a graph: apply, build, guest image, boot, replicate.

A stage whose prerequisite failed has the value None: skipped. What the patch did wrong is in the values; only the
machine's faults are exceptions.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from kpatch_ci.guest.guests import Guests
from kpatch_ci.guest.image import GuestImage, find_image, make_image
from kpatch_ci.kernel.build import Builder, BuildRequest
from kpatch_ci.kernel.external import External, read_external
from kpatch_ci.kernel.kconfig import Requested, read_fragments
from kpatch_ci.model.arch import ARCHES
from kpatch_ci.model.boot import BootResult
from kpatch_ci.model.build import BuildResult
from kpatch_ci.model.machine import Machine
from kpatch_ci.model.series import BASELINE, ApplyResult, Arm, Series
from kpatch_ci.model.status import Status
from kpatch_ci.model.workload import Case, Seed, WorkloadPlan
from kpatch_ci.pipeline.board import OnBoards
from kpatch_ci.pipeline.calls import CACHE
from kpatch_ci.pipeline.engine import Node, Values
from kpatch_ci.pipeline.measuring import One, differs, doubt, usable
from kpatch_ci.pipeline.places import Here, Place
from kpatch_ci.pipeline.session import Session
from kpatch_ci.pipeline.stagenames import BOOT_SPAN, PRIORITY, apply_name, boot_name, build_name, image_name, run_name
from kpatch_ci.series.apply import apply_series
from kpatch_ci.store.artifacts import ArtifactStore
from kpatch_ci.store.atomic import require_space
from kpatch_ci.workloads.cases import in_real_time
from kpatch_ci.workloads.job import switch_off, workload_job
from kpatch_ci.workloads.table import WORKLOADS


@dataclass
class Stages:
    """Makes nodes for one session. ``builder`` and ``guests`` are shared by all of them; both are thread-safe."""

    session: Session
    builder: Builder
    guests: Guests
    deadline: float | None = None
    """time.monotonic() after which no boot and no replicate is begun; work goes boot by boot then."""
    _failures: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _boards: OnBoards | None = None
    _config: dict[str, dict[str, Requested]] = field(default_factory=dict)

    @property
    def here(self) -> Place:
        """This machine, as a place."""
        return Here(self.builder, self.guests, self.on_boards)

    def on_boards(self) -> OnBoards:
        """Boards of these stages: what one boot showed is known to the others."""
        with self._lock:
            self._boards = self._boards or self.session.on_boards()
        return self._boards

    def _here(self, at: Callable[[Values, Place], Any], values: Values) -> Any:
        return at(values, self.here)

    @property
    def _store(self) -> ArtifactStore:
        return self.session.store

    @property
    def _logs(self) -> Path:
        return self.session.logs

    @property
    def over(self) -> bool:
        """Whether time is up."""
        return self.deadline is not None and time.monotonic() > self.deadline

    def _priority(self, kind: str, boot_seed: int) -> int:
        return PRIORITY[kind] + (BOOT_SPAN * boot_seed if self.deadline is not None else 0)

    def request(self, arch: str, arm: str, tree_id: str) -> BuildRequest:
        """What is built for an arm."""
        if arch not in self._config:
            self._config[arch] = read_fragments(self.session.config.fragments(arch), self.session.tree.release)
        return BuildRequest(arm, ARCHES[arch], self.session.tree, tree_id, self._config[arch], self._external(arch))

    def _external(self, arch: str) -> tuple[External, ...]:
        """Our modules that guests of an architecture load, in load order: none where its machines ask for none."""
        names = dict.fromkeys(n for m in self.session.config.machines if m.arch == arch for n in m.modules)
        return tuple(read_external(self.session.module_sources(name)) for name in names)

    def apply(self, series: Series) -> Node:
        """Apply a series to the tree; costs no slot, for it takes a second."""
        return Node(
            apply_name(series.patched_kernel),
            "apply",
            lambda _: apply_series(series, self.session.tree, fuzz=self.session.config.fuzz),
            slot=False,
            priority=PRIORITY["apply"],
        )

    def image(self, arch: str) -> Node:
        """Make the guest image of an architecture."""
        s = self.session
        target = ARCHES[arch]

        def look(_: Values) -> GuestImage | None:
            return find_image(target, s.cache, s.store, s.tools, s.agent_sources)

        def work(_: Values) -> GuestImage:
            return make_image(target, s.cache, s.store, s.tools, archives=s.archives, agent_sources=s.agent_sources)

        return Node(image_name(arch), "image", work, slot=False, priority=PRIORITY["image"], lookup=look)

    def build_baseline(self, arch: str) -> Node:
        """Build the tree as it is."""
        request = self.request(arch, BASELINE, self.session.tree.tree_id)
        return Node(
            build_name(arch, BASELINE),
            "build",
            lambda _: self.here.build(request, self._logs),
            priority=PRIORITY["build"],
            lookup=lambda _: self.builder.find(request),
            elsewhere=lambda _, place: self._built(place, request),
            homes=partial(self._homes, arch),  # with another version of our modules its objects are the same
            arch=arch,
        )

    def build_patched(self, arch: str, kernel: str) -> Node:
        """Build the tree with a series on it, from the baseline's objects. ``kernel``: as it was applied."""
        applied, baseline = apply_name(kernel), build_name(arch, BASELINE)

        def request(values: Values) -> BuildRequest | None:
            result: ApplyResult = values[applied]
            base: BuildResult = values[baseline]
            if result.tree_id is None or base.status is not Status.PASSED:
                return None
            return self.request(arch, kernel, result.tree_id)

        def at(values: Values, place: Place) -> BuildResult | None:
            wanted = request(values)
            return self._built(place, wanted) if wanted else None

        def look(values: Values) -> BuildResult | None:
            wanted = request(values)
            return self.builder.find(wanted) if wanted else None

        name = build_name(arch, kernel)
        here = partial(self._here, at)
        needs, priority = (applied, baseline), PRIORITY["build"] + 1
        homes = partial(self._homes, arch)
        return Node(name, "build", here, needs, priority=priority, lookup=look, elsewhere=at, homes=homes, arch=arch)

    def _homes(self, arch: str) -> list[str]:
        """Places that have the baseline's objects: elsewhere a kernel takes minutes."""
        baseline = self.request(arch, BASELINE, self.session.tree.tree_id)
        return [place.name for place in (self.here, *self.session.every_place) if place.has_objects(baseline)]

    def _built(self, place: Place, request: BuildRequest) -> BuildResult:
        result = place.build(request, self._logs)
        if result.status is not Status.PASSED:
            doubt(place, result.reason)
        return result

    def boot(self, machine: Machine, kernel: str, boot_seed: int, against: Sequence[str] = ()) -> Node:
        """Boot a kernel, check what the guest says of itself, and keep it as a snapshot.

        Not where it is the same image as every kernel that it is to be compared with (``against``).
        """
        built, image = build_name(machine.arch, kernel), image_name(machine.arch)
        others = tuple(build_name(machine.arch, other) for other in against)

        def look(values: Values) -> BootResult | None:
            build = usable(values[built]) if differs(values, built, others) else None
            if build is None:
                return None
            if machine.board:
                found = self.on_boards().find_boot(build, machine, boot_seed)
            else:
                found = self.guests.find_boot(build, values[image], machine, boot_seed)
            return replace(found, arm=kernel) if found else None

        def at(values: Values, place: Place) -> BootResult | None:
            if self.over:
                return None
            build = usable(values[built]) if differs(values, built, others) else None
            result = place.boot(build, values[image], machine, boot_seed, self._logs) if build else None
            if result is None:
                return None
            if result.status is not Status.PASSED:
                doubt(place, result.reason)
                require_space(self.session.cache)  # a full disk is no kernel's fault
            return self._known_here(replace(result, arm=kernel), machine)

        name, priority = boot_name(machine.arch, kernel, boot_seed), self._priority("boot", boot_seed)
        here, needs = partial(self._here, at), (built, image, *others)
        return _bound(Node(name, "boot", here, needs, priority=priority, lookup=look, elsewhere=at), machine, name)

    def _known_here(self, boot: BootResult, machine: Machine) -> BootResult:
        """A boot, kept in mind where another place made it."""
        mine = replace(boot, reproduce=boot.reproduce.replace(CACHE, str(self.session.cache)))
        return self.guests.remember(mine, machine)

    def replicates(
        self, machine: Machine, arm: Arm, plan: WorkloadPlan, seeds: Iterable[Seed], against: Sequence[str] = ()
    ) -> list[Node]:
        """One node for each case and seed of a workload. Not measured where it is the same image as all of ``against``."""
        return [
            self._replicate(machine, arm, plan, case, seed, against=against) for case in plan.cases for seed in seeds
        ]

    def job(self, arm: Arm, plan: WorkloadPlan, case: Case, seed: Seed) -> str:
        """What the guest's agent is told to do for one replicate."""
        before = switch_off(arm.off, self.session.tree.release)
        return workload_job(WORKLOADS[plan.kind], case, seed, before)

    def _replicate(
        self, machine: Machine, arm: Arm, plan: WorkloadPlan, case: Case, seed: Seed, *, against: Sequence[str]
    ) -> Node:
        arch = machine.arch
        if machine.real_time:
            case = in_real_time(WORKLOADS[plan.kind], case)
        names = (build_name(arch, arm.kernel), image_name(arch), boot_name(arch, arm.kernel, seed.boot))
        others = tuple(build_name(arch, other) for other in against)
        one = One(self, machine, arm, plan, case, seed, self.job(arm, plan, case, seed), others)
        name = run_name(arch, arm, plan.name, case.label, seed)
        priority = self._priority("run", seed.boot)
        needs = (*names, *others)
        node = Node(name, "run", one.work, needs, priority=priority, lookup=one.look, elsewhere=one.at)
        return _bound(node, machine, names[2])

    def failed(self, key: str) -> int:
        """How often the case ``key`` has failed so far."""
        with self._lock:
            return self._failures[key]

    def note_failure(self, key: str) -> None:
        """Count a failure of the case ``key``."""
        with self._lock:
            self._failures[key] += 1


def _bound(node: Node, machine: Machine, boot: str) -> Node:
    """A node that is cheaper where the boot was made; in real time it runs here alone: another machine has another clock.

    What is done on a board takes no CPU of this machine, and one thing is done there at a time.
    """
    node = replace(node, arch=machine.arch)
    if machine.board:
        return replace(node, elsewhere=None, slot=False, lane=f"board {machine.name}")
    return replace(node, elsewhere=None) if machine.real_time else replace(node, affinity=boot)


def boot_nodes(
    stages: Stages, machine: Machine, kernel: str, seeds: Sequence[Seed], against: Sequence[str] = ()
) -> list[Node]:
    """Boots of one kernel, one a boot seed; none where it is the same image as all of ``against``."""
    return [stages.boot(machine, kernel, boot, against) for boot in sorted({s.boot for s in seeds})]
