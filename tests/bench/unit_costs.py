# SPDX-License-Identifier: GPL-2.0-or-later
"""What one replicate costs this process beside its guest: python -m tests.bench.unit_costs [COUNT]

Takes a replicate that is in the cache (run something first), and times what is done with each: its key, the look-up, the parser,
keeping it; what a call weighs and takes to pack; and how the recorder, the progress display and the memo grow. Milliseconds of
processor time, and of wall time where the disk is in it. Nothing is asserted.
"""

from __future__ import annotations

import io
import json
import shutil
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from kpatch_ci.cli.progress import LiveProgress, PlainProgress
from kpatch_ci.guest.files import machine_slice
from kpatch_ci.model.digest import digest
from kpatch_ci.model.status import Mode, Status
from kpatch_ci.model.workload import Replicate, Seed
from kpatch_ci.pipeline.calls import ReplicateAnswer, ReplicateCall, decode, encode
from kpatch_ci.pipeline.engine import Node
from kpatch_ci.pipeline.memo import Memo
from kpatch_ci.store.artifacts import ArtifactStore
from kpatch_ci.store.cache import cache_root
from kpatch_ci.store.depot import Depot
from kpatch_ci.workloads.cases import expand
from kpatch_ci.workloads.events import parse_events
from kpatch_ci.workloads.table import WORKLOADS
from tests.bench.scheduler import BOOT, BUILD, IMAGE, LIMITS, MACHINE, RUN

SEED = Seed(1, 1)


def timed(what: str, count: int, act: Callable[[int], object]) -> None:
    """Print what one costs."""
    wall, cpu = time.monotonic(), time.process_time()
    for number in range(count):
        act(number)
    wall, cpu = time.monotonic() - wall, time.process_time() - cpu
    cost = f"{1000 * cpu / count:.3f} ms of processor, {1000 * wall / count:.3f} ms of wall time"
    print(f"{what}: {cost}", file=sys.__stdout__)  # rich's bars keep the other one to themselves


def of_the_store(count: int, text: str, place: Path) -> None:
    """Look-up and keeping, in a store of its own."""
    store = ArtifactStore(place)
    keys = [digest([n]) for n in range(count)]
    timed(
        "keep a replicate", count, lambda n: store.put("replicate", keys[n], lambda _: {"text": text, "seconds": 1.0})
    )
    timed("find a replicate", count, lambda n: store.get("replicate", keys[n]))
    timed("see that there is none", count, lambda n: store.get("inexact", keys[n]))
    timed("its mode's key", count, lambda _: digest(["inexact", "f" * 64, "p" * 64, machine_slice(MACHINE), "dd"]))
    (case,) = expand("hackbench", {"groups": 8, "loops": 50})
    parse = WORKLOADS["hackbench"]
    timed("parse a replicate", count, lambda _: parse_events(text, parse, case, SEED, Mode.DETERMINISTIC, "hackbench"))


def of_memory(text: str) -> None:
    """What a parsed replicate takes."""
    (case,) = expand("hackbench", {"groups": 8, "loops": 50})
    tracemalloc.start()
    kept = [
        parse_events(text, WORKLOADS["hackbench"], case, SEED, Mode.DETERMINISTIC, "hackbench") for _ in range(1000)
    ]
    print(f"{len(kept)} parsed replicates take {tracemalloc.get_traced_memory()[0] / 1e6:.1f} MB")
    tracemalloc.stop()


def of_calls(count: int) -> None:
    """Packing."""
    call = ReplicateCall(BOOT, BUILD, IMAGE, MACHINE, "run\tdd\n" * 3, "n", LIMITS)
    answer = ReplicateAnswer(RUN, "")
    packed = json.dumps(encode(answer))
    print(f"a call is {len(json.dumps(encode(call)))} bytes, an answer {len(packed)}")
    timed("pack a call, with its key", count, lambda _: (json.dumps(encode(call)), digest(encode(call))))
    timed("unpack an answer", count, lambda _: decode(ReplicateAnswer, json.loads(packed)))


def of_artifacts(place: Path) -> None:
    """Of a build, to a depot in a directory and back."""
    source = ArtifactStore(cache_root() / "store")
    found = next(p.parent for p in (source.root / "build").glob("*/*/manifest.json"))
    artifact = source.get("build", found.name)
    assert artifact is not None
    depot, there = Depot(f"file://{place}/depot"), ArtifactStore(place / "there")
    size = sum((artifact.path / name).stat().st_size for name in artifact.digests)
    print(f"a build is {size / 1e6:.1f} MB")
    timed("bring a build to a directory", 1, lambda _: depot.push(artifact))
    timed("fetch a build from a directory", 1, lambda _: depot.pull("build", found.name, there))


def of_what_grows(count: int, place: Path) -> None:
    """Progress with many at work at once; the memo, whose file is written whole."""
    for at_once in (2, 1000):
        for make in (PlainProgress, LiveProgress):
            shown = make(Console(file=io.StringIO(), force_terminal=True, width=120))
            nodes = [Node(f"run arm64 s dd case seed {n}.1", "run", lambda _: None) for n in range(count)]
            with shown:
                shown.planned(nodes)
                for node in nodes[:at_once]:
                    shown.started(node)

                def step(n: int, shown: PlainProgress = shown, nodes: list[Node] = nodes, ahead: int = at_once) -> None:
                    shown.finished(nodes[n], Replicate("dd", "c", SEED, Status.PASSED, Mode.DETERMINISTIC), 1.0, False)
                    if n + ahead < len(nodes):
                        shown.started(nodes[n + ahead])

                timed(f"{make.__name__}, {at_once} at work", min(count, 500), step)
    memo = Memo(place / "memo.json")
    timed(
        "memo of a stage",
        10_000,
        lambda n: memo.why(f"boot {n}", {"kernel": "k" * 64, "tools": "t" * 64}, reused=False),
    )
    timed("writing the memo of 10,000 stages", 1, lambda _: memo.save())


def main(count: int) -> None:
    """Measure all."""
    kept = next((cache_root() / "store" / "replicate").glob("*/*/manifest.json"), None)
    if kept is None:
        sys.exit("no replicate in the cache: run something first")
    text = json.loads(kept.read_text())["meta"]["text"]
    print(f"a replicate's text is {len(text)} bytes, its entry {kept.stat().st_size}")
    place = Path(tempfile.mkdtemp(prefix="kpatch-ci-bench-"))
    try:
        of_the_store(count, text, place / "store")
        of_memory(text)
        of_calls(count)
        of_artifacts(place)
        of_what_grows(count, place)
    finally:
        shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
