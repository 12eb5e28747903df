# SPDX-License-Identifier: GPL-2.0-or-later
"""With dask's own scheduler and worker: what one client has called for is ended there, and what another has is not."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import distributed
import pytest

from kpatch_ci.debian.toolroot import ToolRoot
from kpatch_ci.pipeline.calls import Answer, BootAnswer, BootCall, Call
from kpatch_ci.pipeline.cluster import there
from kpatch_ci.pipeline.cluster.carrier import Carrier, Identity, Shared
from kpatch_ci.pipeline.cluster.rounds import Rounds
from kpatch_ci.pipeline.places import PlaceLost
from kpatch_ci.pipeline.worker import code_version
from kpatch_ci.process import Process
from kpatch_ci.store.artifacts import ArtifactStore
from tests.unit.pipeline.test_cluster_carrier import BOOT, CALL

TOOLS = ToolRoot(Path("/nowhere"), "trixie", "f" * 64, {})
IDENTITY = Identity(code_version(), "trixie", "f" * 64)


@dataclass
class SlowWorker:
    """A call is a child that sleeps until it is ended. ``children``: by boot seed."""

    tools: ToolRoot = TOOLS
    children: dict[int, int] = field(default_factory=dict)

    def missing(self, _: Call) -> list[tuple[str, str]]:
        return []

    def do(self, call: BootCall) -> BootAnswer:
        with Process(["sleep", "600"]) as child:
            self.children[call.boot_seed] = child.pid
            child.wait()
        return BootAnswer(BOOT, f"ended {call.boot_seed}")


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> SlowWorker:
    made = SlowWorker()
    monkeypatch.setattr(there, "_worker", lambda _: made)
    return made


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """In this process, without a socket: no dashboard, and nobody asks for this machine's address."""
    monkeypatch.setattr("distributed.node.ServerNode.start_http_server", lambda *_, **__: None)
    monkeypatch.setattr("distributed.comm.inproc.get_ip", lambda *_: "127.0.0.1")
    local: Any = distributed.LocalCluster
    with local(
        n_workers=1, threads_per_worker=4, processes=False, protocol="inproc://", dashboard_address=None
    ) as made:
        yield made


@dataclass
class Caller:
    """A run's end: a client of its own."""

    carrier: Carrier
    answers: list[Answer | str] = field(default_factory=list)
    threads: list[threading.Thread] = field(default_factory=list)

    def call(self, seed: int) -> None:
        def ask() -> None:
            try:
                self.answers.append(self.carrier.do(replace(CALL, boot_seed=seed)))
            except PlaceLost as lost:
                self.answers.append(str(lost))

        self.threads.append(threading.Thread(target=ask, daemon=True))
        self.threads[-1].start()

    def done(self) -> list[Answer | str]:
        for thread in self.threads:
            thread.join(20)
            assert not thread.is_alive()
        return self.answers


def until(true: Callable[[], object]) -> None:
    ends = time.monotonic() + 20
    while not true():
        assert time.monotonic() < ends, "it never came to that"
        time.sleep(0.01)


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_run_that_is_stopped_ends_its_own_work_on_a_worker_and_nobody_else_s(
    cluster: Any, worker: SlowWorker, tmp_path: Path
) -> None:
    (address,) = cluster.scheduler_info["workers"]
    shared, client = Shared(ArtifactStore(tmp_path), None), cast("Any", distributed.Client)
    with client(cluster, set_as_default=False) as mine, client(cluster, set_as_default=False) as others:
        one, two = (Caller(Carrier(Rounds(c), address, IDENTITY, shared)) for c in (mine, others))
        for caller, seed in ((one, 1), (two, 2), (one, 3)):
            caller.call(seed)
        until(lambda: len(worker.children) == 3)
        began = time.monotonic()
        one.carrier.stop()
        assert one.done() == ["this run is being ended"] * 2
        until(lambda: gone(worker.children[1]) and gone(worker.children[3]))
        assert time.monotonic() - began < 5
        assert not gone(worker.children[2])
        one.call(4)
        until(lambda: 4 in worker.children)
        for seed in (2, 4):
            os.kill(worker.children[seed], signal.SIGKILL)
        assert two.done() == [BootAnswer(BOOT, "ended 2")]
        assert one.done()[2:] == [BootAnswer(BOOT, "ended 4")], "the next round is another"
