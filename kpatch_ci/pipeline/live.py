# SPDX-License-Identifier: GPL-2.0-or-later
"""Measuring in real time (tcg, kvm): the order of replicates, one at a time, and a kernel under KVM before any of them.

A host's speed drifts. So arms alternate, A B B A: under each seed all arms run one after the other, in the opposite order
of the seed before, and nothing else is at work meanwhile: two guests at once would measure each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kpatch_ci.guest.guests import Guests
from kpatch_ci.model.boot import BootResult
from kpatch_ci.model.build import BuildResult
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.model.machine import Accel, Machine
from kpatch_ci.model.series import BASELINE, Arm
from kpatch_ci.model.status import Status
from kpatch_ci.model.workload import WorkloadPlan
from kpatch_ci.pipeline.accelerators import HINT
from kpatch_ci.pipeline.engine import Node, Values
from kpatch_ci.pipeline.stagenames import PRIORITY, build_name, image_name
from kpatch_ci.pipeline.stages import Stages

PROBE_TIMEOUT = 90.0
PROBE_SILENCE = 30.0
"""Wall seconds that a kernel gets under KVM: a boot takes one or two, so a busy host has time enough, and a hang is soon told."""


def interleaved(
    stages: Stages,
    machine: Machine,
    measured: Mapping[Arm, Sequence[WorkloadPlan]],
    apart: Mapping[Arm, Sequence[str]],
) -> list[Node]:
    """Replicates of every arm in the order in which they are to run. ``apart``: the kernels that one must differ from."""
    config = stages.session.config
    nodes = []
    for plan in config.workloads:
        arms = [arm for arm, wanted in measured.items() if plan in wanted]
        for case in plan.cases:
            one = replace(plan, cases=(case,))
            for turn, seed in enumerate(config.seeds):
                for arm in arms if turn % 2 == 0 else reversed(arms):
                    nodes += stages.replicates(machine, arm, one, (seed,), apart[arm])
    return nodes


def alone(nodes: Sequence[Node], live: Sequence[Node]) -> list[Node]:
    """``nodes``, then ``live`` one by one, each after the one before it and the first after all else."""
    before = tuple(node.name for node in nodes)
    chain = []
    for node in live:
        chain.append(replace(node, needs=tuple(dict.fromkeys((*node.needs, *before)))))
        before = (node.name,)
    return [*nodes, *chain]


def proven(stages: Stages, machine: Machine, boots: Sequence[Node]) -> list[Node]:
    """``boots``; under KVM each after the baseline has been seen to boot."""
    if machine.accel is not Accel.KVM:
        return list(boots)
    probe = _probe(stages, machine)
    return [probe, *(replace(node, needs=(*node.needs, probe.name)) for node in boots)]


def _probe(stages: Stages, machine: Machine) -> Node:
    """A disk sector may run where no kernel does. Ends the run, with what was tried, where the baseline does not boot."""
    session = stages.session
    built, image = build_name(machine.arch, BASELINE), image_name(machine.arch)

    def work(values: Values) -> BootResult | None:
        build: BuildResult | None = values[built]
        if build is None or build.status is not Status.PASSED:
            return None
        limits = {"boot_timeout": PROBE_TIMEOUT, "replicate_timeout": PROBE_TIMEOUT, "silence_timeout": PROBE_SILENCE}
        guests = Guests(session.cache, session.store, session.tools, **limits)
        found = guests.boot(build, values[image], machine, session.config.seeds[0].boot, session.logs / "probe")
        if found.status is Status.PASSED:
            return found
        what = (
            f"KVM cannot be used here: it runs a guest of one disk sector, but linux {build.release} on {machine.name} "
            f"did not boot within {found.seconds:.0f} s: {found.reason}"
        )
        raise InfrastructureError(
            what, log=found.log_tail, hint=f"{HINT}; if it does not boot there either, it is the kernel"
        )

    return Node(f"probe {machine.name}", "boot", work, needs=(built, image), priority=PRIORITY["boot"] - 1)
