# SPDX-License-Identifier: GPL-2.0-or-later
"""Whole runs of 100 replicates, each from kernels that are there and nothing booted: two slots here, two hosts, two workers.

    .venv/bin/python -m tests.bench.places [ROUNDS]

The hosts are SSH servers on the loopback, the workers dask's, each with one slot and a cache of its own that has the kernels
from a run before. The three take turns (and go backwards every other round), so that a busy machine slows all alike.
Prints seconds and ratios; what is asserted is that all three found the same figures.
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, redirect_stdout
from pathlib import Path
from statistics import median
from typing import Any

from kpatch_ci.guest import snapshot
from kpatch_ci.store.cache import cache_root
from tests.e2e.dask_cluster import Cluster, cache_of_its_own
from tests.e2e.hosts_run import RUN, Command, comparisons, project
from tests.e2e.sshclient import Client
from tests.e2e.sshd import host, install
from tests.e2e.unmeasured import unmeasured_cache

PROFILE = """\
  hundred:
    seeds: {boots: 5, runs: 10}
    workloads: {hackbench: [{groups: 4, loops: 40}]}
"""
"""Of two arms."""
Way = tuple[str, Callable[[], None], tuple[str, ...]]
"""Name, what is done before each run, and the run's options."""


def quietly(command: Command, *arguments: str) -> Any:
    """A run's result, without what it says meanwhile."""
    with redirect_stdout(io.StringIO()):
        done = command(*arguments)
    assert done.code == 0, done.stderr
    return done.result


def pipeline(place: Path, hosts: Any, more: str) -> Path:
    """The project's file with our profile, hosts, and ``more`` at its end."""
    path = project(place, hosts)
    text = path.read_text() if hosts else path.read_text().replace("hosts: {}", "")
    path.write_text(text.replace("\nprofiles:\n", f"\nprofiles:\n{PROFILE}", 1) + more)
    return path


def main(rounds: int) -> None:
    """Print the figures."""
    install()
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kpatch-ci-bench-")))
        client, tools = Client(place / "home"), cache_root() / "tools"
        hosts = [stack.enter_context(host(name, place / "hosts", client, tools=tools)) for name in "ab"]
        cluster = stack.enter_context(Cluster(place / "processes"))
        cluster.start_scheduler()
        caches = {name: cache_of_its_own(place / name, builds=False) for name in ("v", "w")}
        of_hosts = pipeline(place / "with-hosts", hosts, "")
        of_workers = pipeline(place / "with-workers", [], f"engine: {cluster.engine}\nstore: file://{place}/store\n")
        run = ("run", *RUN, "--profile", "hundred", "-j", "2")
        alone = ("-c", str(of_hosts), "--on", "here")
        known = quietly(Command(client, cache_root(), place), *run, *alone)

        def forget_boots() -> None:
            for one in hosts:
                shutil.rmtree(one.work / "store" / snapshot.KIND, ignore_errors=True)

        def new_workers() -> None:
            for name in list(cluster.nannies):
                cluster.kill_nanny(name)
            before = cluster.registered
            for name, cache in caches.items():
                shutil.rmtree(cache / "store" / snapshot.KIND, ignore_errors=True)
                cluster.start_worker(name, cache)
            cluster.wait_for(before + 2)

        ways: list[Way] = [
            ("two slots here", lambda: None, alone),
            ("two hosts", forget_boots, ("-c", str(of_hosts), "--on", "a,b")),
            ("two workers", new_workers, ("-c", str(of_workers))),
        ]
        seconds: dict[str, list[float]] = {name: [] for name, _, _ in ways}
        for number in range(-1, rounds):  # the first brings the kernels there
            for name, before, more in ways if number % 2 else ways[::-1]:
                before()
                cache = unmeasured_cache(known, place / "cache")
                began = time.monotonic()
                result = quietly(Command(client, cache, place), *run, *more)
                taken = time.monotonic() - began
                shutil.rmtree(cache)
                assert comparisons(result) == comparisons(known)
                if number >= 0:
                    seconds[name].append(taken)
        local = seconds[ways[0][0]]
        for name, each in seconds.items():
            ratios = [one / other for one, other in zip(each, local, strict=True)]
            shown = ", ".join(f"{one:.1f}" for one in each)
            print(f"{name:15} {shown} s; ratio {sum(each) / sum(local):.3f}, median {median(ratios):.3f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4)
