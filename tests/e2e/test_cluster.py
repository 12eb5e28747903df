# SPDX-License-Identifier: GPL-2.0-or-later
"""A cluster whose workers are killed, frozen and replaced, and whose scheduler dies, gives the figures that this machine gives."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Command
from tests.e2e.dask_cluster import PROJECT, Cluster, cache_of_its_own

pytestmark = pytest.mark.e2e
BOOTS = 4
WHAT = ("--quick", "--seeds", str(BOOTS), "--series", "wakeup-gran", "--arch", "arm64", "--workload", "hackbench")
REPLICATES = BOOTS * 2 * 2
"""Cases, arms."""
OF_TIME_AND_PLACE = {"seconds", "log", "console", "reproduce", "snapshot_digest", "source", "command", "cached"}
"""Keys whose values are of when and where something was done. A snapshot's digest covers the host's clock (guest/snapshot.py)."""


@dataclass(frozen=True, slots=True)
class Ended:
    code: int
    result: Any
    said: str


def figures(result: Any) -> Any:
    """All that a run found, without what is of time and place."""

    def stripped(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: stripped(v) for k, v in value.items() if k not in OF_TIME_AND_PLACE}
        return [stripped(v) for v in value] if isinstance(value, list) else value

    return stripped({key: result[key] for key in ("status", "mode", "fingerprint", "series", "thresholds")})


def run_on(cache: Path, output: Path, *more: str, until: Callable[[], None] | None = None) -> Ended:
    """``kpatch-ci run`` in a cache; ``until`` is called beside it. Its limit is the test's own: no hang is left unexplained."""
    argv = [sys.executable, "-m", "kpatch_ci", "run", *WHAT, "--json", "-j", "2", "--output", str(output), *more]
    env = {**os.environ, "KPATCH_CI_CACHE": str(cache), "KPATCH_CI_HISTORY": str(output.parent / "history.sqlite3")}
    errors = output.with_suffix(".stderr")
    with (
        errors.open("wb") as stderr,
        subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=stderr, env=env, cwd=PROJECT) as run,
    ):
        beside = threading.Thread(target=until) if until else None
        if beside:
            beside.start()
        out, _ = run.communicate(timeout=900)
        if beside:
            beside.join(60)
    said = errors.read_text()
    assert out, said
    return Ended(run.returncode, json.loads(out), said)


def said_so_far(output: Path) -> str:
    errors = output.with_suffix(".stderr")
    return errors.read_text() if errors.exists() else ""


def wait_until(output: Path, line: str) -> None:
    ends = time.monotonic() + 300
    while line not in said_so_far(output):
        assert time.monotonic() < ends, said_so_far(output)
        time.sleep(0.1)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cluster")


@pytest.fixture(scope="module")
def alone(kpatch_ci: Command, place: Path) -> Ended:
    """The same run on this machine alone, with a cache that knows the kernels and nothing else."""
    assert kpatch_ci("build", *WHAT[3:-2]).code == 0
    assert kpatch_ci("boot", "--arch", "arm64").code == 0, "the guest image is there"
    done = run_on(cache_of_its_own(place / "alone", builds=True), place / "of-alone")
    assert done.code == 0, done.said
    return done


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path / "processes") as made:
        made.start_scheduler()
        yield made


def pipeline(place: Path, text: str) -> Path:
    """This project's pipeline.yaml and folders, with ``text`` at its end."""
    for name in ("patches", "kconfigs", "qemu"):
        (place / name).symlink_to(PROJECT / name)
    path = place / "pipeline.yaml"
    path.write_text(f"{(PROJECT / 'pipeline.yaml').read_text()}\n{text}\n")
    return path


def test_workers_that_are_killed_frozen_and_replaced_change_no_figure(
    alone: Ended, cluster: Cluster, tmp_path: Path
) -> None:
    """Their artifacts come through a store: each has a cache of its own, with a tool root in it and nothing else."""
    caches = {name: cache_of_its_own(tmp_path / name, builds=False) for name in ("a", "b")}

    def start(name: str) -> None:
        cluster.start_worker(name, caches[name], nanny=name == "a")

    for name in caches:
        start(name)
    cluster.wait_for(2)
    path = pipeline(tmp_path, f"engine: {cluster.engine}\nstore: file://{tmp_path}/store")
    output, over = tmp_path / "of-cluster", threading.Event()
    seed = int(os.environ.get("KPATCH_CI_CHAOS", str(time.time_ns() % 100_000)))
    happened: list[str] = []

    def chaos() -> None:
        chance = random.Random(seed)  # noqa: S311 (which worker is hurt, and when)
        wait_until(output, "boot arm64 baseline seed")
        for act in ("replace a", "kill a", "freeze b", "replace b", "kill a", "replace a", "kill a"):
            if over.wait(chance.uniform(0.5, 3.0)):
                return
            (what, name), before = act.split(), cluster.registered
            {"replace": cluster.kill_nanny, "kill": cluster.kill_worker, "freeze": cluster.freeze_worker}[what](name)
            happened.append(act)
            if what != "kill":
                start(name)
            cluster.wait_for(before + 1)

    try:
        done = run_on(cache_of_its_own(tmp_path / "far", builds=True), output, "-c", str(path), until=chaos)
    finally:
        over.set()
    print(f"KPATCH_CI_CHAOS={seed}: {happened}\n{done.said}")  # noqa: T201 (shown when the test fails)
    assert (done.code, figures(done.result)) == (0, figures(alone.result))
    assert happened[:3] == ["replace a", "kill a", "freeze b"]
    assert "is lost: it left the cluster; its work goes to" in done.said
    assert "has joined" in done.said
    runs = [s for s in done.result["stages"] if s["stage"].startswith("run ")]
    assert sum(int(s["why"].split()[4]) for s in runs) == REPLICATES, "each was measured once, none reused"
    assert not list((caches["a"] / "store").glob("replicate")), "only this machine keeps replicates"


def test_a_cluster_whose_scheduler_dies_is_lost_and_the_rest_is_done_here(
    alone: Ended, cluster: Cluster, tmp_path: Path
) -> None:
    """The worker uses this machine's own cache: nothing travels, no store is named."""
    far = cache_of_its_own(tmp_path / "far", builds=True)
    cluster.start_worker("a", far, resources="slot=2,arm64=2,memory=4e9")
    cluster.wait_for(1)
    output = tmp_path / "of-cluster"

    def kill_scheduler() -> None:
        wait_until(output, f"boot: {2 * BOOTS}/{2 * BOOTS}")
        time.sleep(3)
        assert cluster.scheduler
        cluster.scheduler.kill()

    done = run_on(far, output, "--engine", cluster.engine, until=kill_scheduler)
    assert re.search(r"worker a .* is lost: the scheduler .*is gone.*; its work goes to this machine", done.said)
    assert (done.code, figures(done.result)) == (0, figures(alone.result))
