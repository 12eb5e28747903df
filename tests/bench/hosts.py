# SPDX-License-Identifier: GPL-2.0-or-later
"""What a host costs: replicates on a host over SSH against the same replicates here, and the cost of handing one over.

    .venv/bin/python -m tests.bench.hosts FILE HOST [REPLICATES [WORKLOAD]]

FILE is a pipeline.yaml whose ``hosts:`` has HOST: best this very machine, over loopback, with as many slots as are compared
(two). Blocks of replicates alternate (here, there, there, here), so that a busy machine slows both alike.
Prints figures; what is asserted is that both said the same.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from kpatch_ci.config.load import Config, Selection, load_config
from kpatch_ci.guest.guests import RawRun
from kpatch_ci.model.boot import BootResult
from kpatch_ci.model.series import BASELINE, Arm
from kpatch_ci.model.status import Status
from kpatch_ci.model.workload import Seed, WorkloadPlan
from kpatch_ci.pipeline.calls import Answer, Call, ReplicateAnswer, encode
from kpatch_ci.pipeline.engine import Engine, Node, Values
from kpatch_ci.pipeline.far.carrier import LinkCarrier
from kpatch_ci.pipeline.farplace import FarPlace
from kpatch_ci.pipeline.places import Place
from kpatch_ci.pipeline.session import Session, open_session
from kpatch_ci.pipeline.slots import Slots
from kpatch_ci.pipeline.stagenames import boot_name, build_name, image_name
from kpatch_ci.pipeline.stages import Stages
from tests.fakes.progress import Silent

SLOTS = 2
BLOCKS = 10
NOTHINGS = 1000


@dataclass(frozen=True, slots=True)
class Bench:
    """One kernel, booted once on either side, and a job."""

    session: Session
    stages: Stages
    plan: WorkloadPlan
    values: Values

    def block(self, count: int, *, there: bool) -> tuple[float, list[str]]:
        """Seconds that so many replicates take, and what each said."""
        machine = self.session.config.machines[0]
        boot: BootResult = self.values[boot_name(machine.arch, BASELINE, 1)]
        needs = (self.values[build_name(machine.arch, BASELINE)], self.values[image_name(machine.arch)])

        def node(number: int) -> Node:
            job = self.stages.job(Arm(BASELINE), self.plan, self.plan.cases[0], Seed(1, number + 1))

            def at(_: Values, place: Place) -> RawRun:
                return place.replicate(boot, *needs, machine, job, logs=self.session.logs, name=f"r{number}")

            return Node(f"r{number}", "run", lambda v: at(v, self.stages.here), elsewhere=at, affinity="boot")

        with Slots(SLOTS) as slots:
            places = self.session.places if there else ()
            began = time.monotonic()
            runs = Engine(slots, Silent(), places, spare_here=there).run([node(n) for n in range(count)])
            seconds = time.monotonic() - began
        assert all(run.status is Status.PASSED for run in runs.values())
        return seconds, [runs[f"r{n}"].text for n in range(count)]


class Nothing:
    """Hands a call over, has it read and looked up there, and takes no for an answer: all but the guest."""

    def __init__(self, carrier: LinkCarrier) -> None:
        self.carrier = carrier
        self.lost, self.moved = "", (0, 0)

    def do(self, call: Call) -> Answer:
        """Round trip."""
        header = {"op": "call", "kind": "replicate", "call": encode(call)}
        assert "lacking" in self.carrier.link.ask(header, timeout=60)[0]
        return ReplicateAnswer(RawRun(Status.PASSED, "", 0.0), "")

    def close(self) -> None:
        """Nothing is open."""

    def stop(self) -> None:
        """Nothing runs."""


def handing_over(bench: Bench, place: FarPlace) -> float:
    """Milliseconds of scheduling, sending and answering for a replicate that does nothing, with all slots at work."""
    machine = bench.session.config.machines[0]
    build = replace(bench.values[build_name(machine.arch, BASELINE)], key="0" * 64)
    image, boot = bench.values[image_name(machine.arch)], bench.values[boot_name(machine.arch, BASELINE, 1)]
    empty = replace(place, carrier=Nothing(place.carrier))  # type: ignore[arg-type]

    def at(_: Values, there: Place) -> RawRun:
        return there.replicate(boot, build, image, machine, "run\tx\n", logs=bench.session.logs, name="n")

    nodes = [Node(f"n{n}", "run", lambda _: None, elsewhere=at) for n in range(NOTHINGS)]
    with Slots(SLOTS) as slots:
        began = time.monotonic()
        Engine(slots, Silent(), [empty], spare_here=True).run(nodes)
        return (time.monotonic() - began) * 1000 / NOTHINGS


def prepare(config: Config, logs: Path) -> Bench:
    """The kernel, and its boot here and there."""
    session = open_session(config, jobs=SLOTS, logs=logs, say=print)
    machine, plan = config.machines[0], config.workloads[0]
    with Slots(SLOTS) as slots:
        stages = Stages(session, session.builder(slots.path), session.guests())
        nodes = [stages.build_baseline(machine.arch), stages.image(machine.arch), stages.boot(machine, BASELINE, 1)]
        values = Engine(slots, Silent()).run(nodes)
    needs = (values[build_name(machine.arch, BASELINE)], values[image_name(machine.arch)])
    here = stages.here.boot(*needs, machine, 1, logs)
    for place in session.places:
        there = place.boot(*needs, machine, 1, logs)
        assert (there.said_digest, there.key) == (here.said_digest, here.key)
    return Bench(session, stages, plan, {**values, boot_name(machine.arch, BASELINE, 1): here})


def main(arguments: Sequence[str]) -> None:
    """Print the figures."""
    file, host = arguments[:2]
    count = int(arguments[2]) if len(arguments) > 2 else 100
    workload = arguments[3] if len(arguments) > 3 else "hackbench"
    config = load_config(Path(file), Selection(arches=("arm64",), workloads=(workload,), profile="quick", on=(host,)))
    first = config.workloads[0]
    config = replace(config, workloads=(replace(first, cases=first.cases[:1]),))
    with tempfile.TemporaryDirectory() as logs:
        bench = prepare(config, Path(logs))
        (place,) = bench.session.places
        assert isinstance(place, FarPlace)
        assert place.slots == SLOTS
        bench.block(SLOTS, there=False)
        bench.block(SLOTS, there=True)
        each, moved = count // BLOCKS, place.moved
        seconds: dict[bool, list[float]] = {False: [], True: []}
        for number in range(BLOCKS):
            said = {}
            for there in (False, True) if number % 2 == 0 else (True, False):
                taken, said[there] = bench.block(each, there=there)
                seconds[there].append(taken)
            assert said[False] == said[True], "they are not alike"
        sent, received = (now - then for now, then in zip(place.moved, moved, strict=True))
        here, far = sum(seconds[False]), sum(seconds[True])
        pairs = [b / a for a, b in zip(seconds[False], seconds[True], strict=True)]
        print(f"{each * BLOCKS} replicates of {workload}: here {here:.1f} s, there {far:.1f} s, ratio {far / here:.3f}")
        print(f"by block: median {median(pairs):.3f}, {', '.join(f'{one:.2f}' for one in pairs)}")
        print(f"{sent / 1e3:.0f} kB sent, {received / 1e3:.0f} kB received, every text alike")
        print(
            f"handing over: {handing_over(bench, place):.2f} ms a replicate ({NOTHINGS} that do nothing, {SLOTS} at once)"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
