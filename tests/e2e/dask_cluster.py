# SPDX-License-Identifier: GPL-2.0-or-later
"""A scheduler and workers as real processes on the loopback, each worker with a cache of its own; and means to hurt them."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from kpatch_ci.store.cache import cache_root

PROJECT = Path(__file__).resolve().parents[2]
WORKER_TTL = 5
"""Seconds of silence after which the scheduler gives a worker up."""


def linked(source: Path, target: Path) -> None:
    """A copy of a tree that shares the files' bytes where the file system can."""

    def copy(one: str, other: str) -> str:
        try:
            os.link(one, other)
        except OSError:
            shutil.copy2(one, other)
        return other

    shutil.copytree(source, target, copy_function=copy, symlinks=True, dirs_exist_ok=True)


def cache_of_its_own(place: Path, *, builds: bool) -> Path:
    """A cache with the tool root of the one that is there; with ``builds`` also with its trees and kernels, and no boot or sample."""
    place.mkdir(parents=True)
    (place / "tools").symlink_to(cache_root() / "tools")
    for name in ("trees", "guest", "store/build", "store/guest-image") if builds else ():
        if (cache_root() / name).exists():
            linked(cache_root() / name, place / name)
    return place


def free_port() -> int:
    """One that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Cluster:
    """Processes below ``place``. A context manager: none is left."""

    place: Path
    port: int = field(default_factory=free_port)
    nannies: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    scheduler: subprocess.Popen[bytes] | None = None

    @property
    def engine(self) -> str:
        return f"dask://127.0.0.1:{self.port}"

    def _start(self, name: str, argv: list[str], env: Mapping[str, str]) -> subprocess.Popen[bytes]:
        settings = {
            "PYTHONPATH": str(PROJECT),
            "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": f"{WORKER_TTL}s",
            "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
        }
        with (self.place / f"{name}.log").open("ab") as log:
            whole = [sys.executable, "-m", "dask", *argv, "--no-dashboard"]
            env = {**os.environ, **settings, **env}
            return subprocess.Popen(whole, stdout=log, stderr=log, env=env, cwd=self.place)

    def start_scheduler(self) -> None:
        argv = ["scheduler", "--host", "127.0.0.1", "--port", str(self.port)]
        self.scheduler = self._start("scheduler", argv, {"PYTHONPATH": ""})  # it needs no kpatch-ci
        ends = time.monotonic() + 60
        while time.monotonic() < ends:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.2)
        raise TimeoutError((self.place / "scheduler.log").read_text())

    def start_worker(
        self, name: str, cache: Path, resources: str = "slot=1", *, nanny: bool = True, **env: str
    ) -> None:
        argv = ["worker", f"tcp://127.0.0.1:{self.port}", "--host", "127.0.0.1", "--name", name, "--nthreads", "2"]
        argv += ["--nworkers", "1", "--resources", resources, "--local-directory", str(self.place / f"dask-{name}")]
        argv += [] if nanny else ["--no-nanny"]
        self.nannies[name] = self._start(name, argv, {"KPATCH_CI_CACHE": str(cache), **env})

    @property
    def registered(self) -> int:
        """How often a worker has come so far."""
        return (self.place / "scheduler.log").read_text().count("Register worker")

    def wait_for(self, workers: int) -> None:
        """Until one has come so often."""
        ends = time.monotonic() + 90
        while self.registered < workers:
            if time.monotonic() > ends:
                raise TimeoutError("".join(p.read_text() for p in self.place.glob("*.log")))
            time.sleep(0.2)

    def process_of(self, name: str) -> psutil.Process | None:
        """The worker itself, which its nanny watches where it has one; None while there is none."""
        try:
            process = psutil.Process(self.nannies[name].pid)
            children = (p for p in process.children() if "spawn_main" in " ".join(p.cmdline()))
            return process if "--no-nanny" in process.cmdline() else next(children, None)
        except psutil.Error:
            return None

    def kill_worker(self, name: str) -> None:
        """SIGKILL; its nanny, where it has one, starts another."""
        process = self.process_of(name)
        assert process, f"{name} is not there"
        process.send_signal(signal.SIGKILL)

    def freeze_worker(self, name: str) -> None:
        """For longer than the scheduler waits, so that its results come late; then it ends, as a worker that was given up does.

        Not one with a nanny: that would kill it.
        """
        process = self.process_of(name)
        assert process, f"{name} is not there"
        process.suspend()
        time.sleep(WORKER_TTL * 2)
        process.resume()
        process.wait(60)
        self.nannies.pop(name).wait(10)

    def kill_nanny(self, name: str) -> None:
        """SIGKILL it and its worker: that host is gone."""
        process, nanny = self.process_of(name), self.nannies.pop(name)
        nanny.kill()
        nanny.wait(30)
        if process and process.pid != nanny.pid and process.is_running():
            process.kill()

    def __enter__(self) -> Cluster:
        self.place.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self.nannies):
            self.kill_nanny(name)
        if self.scheduler:
            self.scheduler.kill()
            self.scheduler.wait(30)
