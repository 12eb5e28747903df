# SPDX-License-Identifier: GPL-2.0-or-later
"""What scheduling costs: a graph like a run's, whose stages do nothing. python -m tests.bench.scheduler [KIND] [REPLICATES]

    threads    this machine's slots (2)
    places     16 other places with 4 slots each, which answer at once; 1000 places with one slot each: `many`
    known      every replicate is looked up, as in a run that was done before
    dask       a scheduler and two workers as processes on the loopback, with real calls and answers around nothing (2,000 of them)

The graph: 100 series on two architectures, 20 cases, as many boots as the number of replicates (100,000) asks for, each kernel's
boots and builds before them. Prints milliseconds of processor time of this process and of wall time for each replicate, and memory.
Nothing is asserted.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import psutil

from kpatch_ci.guest.guests import RawRun
from kpatch_ci.guest.image import GuestImage
from kpatch_ci.guest.machine import load_machine
from kpatch_ci.model.boot import BootResult
from kpatch_ci.model.build import BuildResult
from kpatch_ci.model.status import Status
from kpatch_ci.pipeline.calls import BootAnswer, Limits, ReplicateAnswer, encode
from kpatch_ci.pipeline.cluster.carrier import Carrier, Identity, Shared
from kpatch_ci.pipeline.cluster.rounds import Rounds
from kpatch_ci.pipeline.engine import Engine, Node, Values
from kpatch_ci.pipeline.farplace import FarPlace
from kpatch_ci.pipeline.places import GUEST_KINDS, Place
from kpatch_ci.pipeline.slots import Slots
from kpatch_ci.store.artifacts import ArtifactStore
from tests.e2e.dask_cluster import Cluster

PROJECT = Path(__file__).resolve().parents[2]
SERIES, ARCHES, CASES = 100, ("arm64", "x86_64"), 20
MACHINE = load_machine(PROJECT / "qemu" / "arm64-6+2.yaml")
BUILD = BuildResult(Status.PASSED, "patched", "arm64", "t" * 40, "k" * 64, 12.5, 6, False, image_digest="i" * 64)
IMAGE = GuestImage("arm64", Path("/nowhere"), "d" * 64, {"dbench": "4.0-2"}, "i" * 64, Path("/nowhere"), "p" * 64)
BOOT = BootResult(Status.PASSED, "patched", "arm64", "m", 3, "b" * 64, 1.25, False, facts={"cpus": list(range(8))})
TEXT = json.dumps({"event": "sample", "metric": "time", "value": 0.158, "counters": dict.fromkeys("abcdefgh", 123456)})
TEXT = f"{TEXT}\n" * 6
LIMITS = Limits(180, 180, 120)


class Quiet:
    """An observer that counts."""

    ended = 0

    def planned(self, nodes: Sequence[Node]) -> None:
        pass

    def started(self, node: Node) -> None:
        pass

    def finished(self, node: Node, value: Any, seconds: float, known: bool) -> None:
        self.ended += node.kind == "run"

    def tick(self) -> None:
        pass

    def note(self, text: str) -> None:
        print(text)


def graph(replicates: int, at: Callable[[str, Place], Any], *, known: bool = False) -> list[Node]:
    """Nodes as plan() makes them: names, needs, priorities and affinities."""
    boots = max(1, replicates // (SERIES * len(ARCHES) * CASES))
    nodes = []

    def add(name: str, priority: int, needs: tuple[str, ...], affinity: str = "", arch: str = "") -> None:
        kind = name.partition(" ")[0]

        def elsewhere(_: Values, place: Place) -> Any:
            return at(kind, place)

        far = elsewhere if kind in GUEST_KINDS else None
        look = (lambda _: name) if known and kind in GUEST_KINDS else None
        how = {"lookup": look, "elsewhere": far, "affinity": affinity, "arch": arch}
        nodes.append(Node(name, kind, lambda _: name, needs, kind != "apply", priority, **cast("Any", how)))

    for series in range(SERIES):
        add(f"apply {series}", 0, ())
        for arch in ARCHES:
            build = f"build {arch} {series}"
            add(build, 2, (f"apply {series}",), arch=arch)
            for seed in range(boots):
                boot = f"boot {arch} {series} seed {seed}"
                add(boot, 3, (build,), boot, arch)
            for case in range(CASES):
                for seed in range(boots):
                    boot = f"boot {arch} {series} seed {seed}"
                    add(f"run {arch} {series} case {case} seed {seed}", 4, (build, boot), boot, arch)
    return nodes


@dataclass
class Nothing:
    """A place that answers at once."""

    name: str
    slots: int
    kinds: frozenset[str] = GUEST_KINDS


def measure(what: str, nodes: Sequence[Node], places: Sequence[Place] = ()) -> None:
    """Run the graph and print its cost."""
    observer = Quiet()
    began, cpu = time.monotonic(), time.process_time()
    with Slots(2) as slots:
        Engine(slots, observer, places, spare_here=bool(places)).run(nodes)
    wall, spent = time.monotonic() - began, time.process_time() - cpu
    runs = observer.ended
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{what}: {len(nodes)} stages, {runs} replicates: {1000 * spent / runs:.3f} ms of processor, "
        f"{1000 * wall / runs:.3f} ms of wall time each; {memory:.0f} MiB at most"
    )


class NoCalls:
    """A client through which each call is sent as it is, and answered without being done."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def submit(self, func: Any, text: str, **how: Any) -> Any:
        assert func.__name__ == "do_call"
        answers = {"boot": encode(BootAnswer(BOOT, "")), "replicate": encode(ReplicateAnswer(RUN, ""))}
        return self._client.submit(answer_without_doing, text, answers, **how)

    def run(self, function: Any, *args: Any, **how: Any) -> Any:
        return self._client.run(function, *args, **how)


RUN = RawRun(Status.PASSED, TEXT, 0.5)


def answer_without_doing(text: str, answers: dict[str, Any]) -> str:
    """In the worker."""
    import json as j  # noqa: PLC0415 (it is sent by value)

    asked = j.loads(text)
    return j.dumps({"key": asked["key"], "kind": asked["kind"], "answer": answers[asked["kind"]], "fetched": 0})


def on_dask(replicates: int) -> None:
    """Through scheduler and workers."""
    import distributed  # noqa: PLC0415 (slow to import)

    with tempfile.TemporaryDirectory() as name, Cluster(Path(name) / "cluster") as cluster:
        cluster.start_scheduler()
        for worker in ("a", "b"):
            cluster.start_worker(worker, Path(name) / worker, resources="slot=4")
        cluster.wait_for(2)
        client: Any = cast("Any", distributed).Client(cluster.engine.replace("dask", "tcp"), set_as_default=False)
        try:
            shared = Shared(ArtifactStore(Path(name) / "store"), None)
            places = [
                FarPlace(
                    address,
                    4,
                    GUEST_KINDS,
                    Carrier(Rounds(NoCalls(client)), address, Identity("c", "s", "t"), shared, {"slot": 4}),
                    LIMITS,
                )
                for address in client.nthreads()
            ]
            logs = Path(name)

            def at(kind: str, place: Place) -> Any:
                if kind == "boot":
                    return place.boot(BUILD, IMAGE, MACHINE, 3, logs)
                return place.replicate(BOOT, BUILD, IMAGE, MACHINE, "run\tdd\n", logs=logs, name="x")

            measure("dask", graph(replicates, at), places)
            assert cluster.scheduler
            times = psutil.Process(cluster.scheduler.pid).cpu_times()
            print(
                f"dask: the scheduler's process used {times.user + times.system:.1f} s of processor, its start included"
            )
        finally:
            client.close()


def main(kinds: Sequence[str], replicates: int) -> None:
    """Measure each kind."""
    for kind in kinds:
        if kind == "dask":
            on_dask(min(replicates, 4000))
            continue
        nodes = graph(replicates, lambda _, place: place.name, known=kind == "known")
        places = {
            "places": [Nothing(f"place {n}", 4) for n in range(16)],
            "many": [Nothing(f"place {n}", 1) for n in range(1000)],
        }
        measure(kind, nodes, cast("Any", places.get(kind, ())))


if __name__ == "__main__":
    numbers = [int(a) for a in sys.argv[1:] if a.isdigit()]
    main(
        [a for a in sys.argv[1:] if not a.isdigit()] or ["threads", "places", "known", "dask"], *(numbers or [100_000])
    )
