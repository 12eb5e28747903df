# SPDX-License-Identifier: GPL-2.0-or-later
"""Who of a cluster gets work: those that are alike, those that join later, and nobody who is gone."""

from __future__ import annotations

import importlib
import importlib.metadata
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from kpatch_ci.config.cluster import EngineSettings
from kpatch_ci.debian.toolroot import ToolRoot
from kpatch_ci.model.errors import InfrastructureError, UserError
from kpatch_ci.pipeline.calls import Limits
from kpatch_ci.pipeline.cluster import cluster as clusters
from kpatch_ci.pipeline.cluster import there
from kpatch_ci.pipeline.cluster.carrier import Shared
from kpatch_ci.pipeline.cluster.cluster import Cluster, Told, open_cluster
from kpatch_ci.pipeline.cluster.deployers import Connection, connect
from kpatch_ci.pipeline.farplace import FarPlace
from kpatch_ci.pipeline.places import GUEST_KINDS, does
from kpatch_ci.pipeline.supply import Supply
from kpatch_ci.pipeline.worker import code_version
from kpatch_ci.store.artifacts import ArtifactStore
from kpatch_ci.store.depot import Depot

TOOLS = ToolRoot(Path("/nowhere"), "trixie", "f" * 64, {"gcc": "14", "qemu-system-x86": "10.0.2"})
LIMITS = Limits(60, 120, 30)
GOOD: dict[str, Any] = {
    "code": code_version(),
    "distributed": importlib.metadata.version("distributed"),
    "tools": "f" * 64,
    "versions": TOOLS.versions,
    "cache": "/c",
    "free": 2.5e9,
    "sources": [],
    "objects": ["x86_64-0123456789abcdef"],
    "trouble": [],
}


@dataclass
class Client:
    """A cluster of whom ``said`` is what each says of itself."""

    said: dict[str, Any]
    resources: dict[str, dict[str, float]] = field(default_factory=dict)
    closed: bool = False
    broken: bool = False

    def nthreads(self) -> Mapping[str, int]:
        if self.broken:
            raise OSError("the connection broke")
        return dict.fromkeys(self.said, 2)

    def scheduler_info(self, n_workers: int) -> Any:
        assert n_workers == -1
        one = {a: {"name": a[-1], "nthreads": 2, "resources": self.resources.get(a, {})} for a in self.said}
        return {"workers": one}

    def run(self, function: Any, *args: Any, workers: list[str], on_error: str) -> Any:
        assert (function, on_error) == (there.hello, "return")
        return {a: self.said[a]() if callable(self.said[a]) else self.said[a] for a in workers}

    def close(self, timeout: float) -> None:
        self.closed = True


Make = Callable[[Client], Cluster]


def supply_of(place: Path) -> Supply:
    return Supply(place, ArtifactStore(place / "store"), TOOLS, 60.0)


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    monkeypatch.setattr(clusters, "WATCH", 0.02)
    all_of_them: list[Cluster] = []

    def make(client: Client) -> Cluster:
        supply = supply_of(tmp_path)
        shared = Shared(supply.store, None)
        all_of_them.append(Cluster(Connection(client, None, "dask://s:1"), shared, supply, LIMITS))
        all_of_them[-1].start(wait=0)
        return all_of_them[-1]

    yield make
    for one in all_of_them:
        one.close()
    for thread in threading.enumerate():
        if thread.name == "cluster":
            thread.join(5)
            assert not thread.is_alive()


def until(true: Callable[[], object]) -> None:
    done = threading.Event()
    for _ in range(500):
        if true():
            return
        done.wait(0.01)
    pytest.fail("it never came to that")


def test_every_worker_is_a_place_with_the_slots_and_architectures_of_its_labels(made: Make) -> None:
    labels = {"tcp://h:2": {"slot": 16.0, "arm64": 16.0, "memory": 6e10}}
    cluster = made(Client({"tcp://h:1": GOOD, "tcp://h:2": GOOD}, labels))
    one, two = cluster.places()
    assert cluster.slots == 2 + 16
    assert (one.name, one.slots, one.kinds) == ("worker 1 (tcp://h:1)", 2, GUEST_KINDS)
    assert (two.slots, two.kinds) == (16, frozenset({"boot arm64", "run arm64"}))
    assert [does(place, "run x86_64") for place in (one, two)] == [True, False]
    assert [does(place, "run arm64") for place in (one, two)] == [True, True]
    assert not does(one, "build arm64")


def test_a_worker_builds_where_it_is_labelled_so_and_has_room(made: Make) -> None:
    roomy, labels = {**GOOD, "free": 3.5e9}, {"tcp://h:1": {"build": 1.0}, "tcp://h:2": {"build": 2.0, "arm64": 4.0}}
    client = Client({"tcp://h:1": {**GOOD, "sources": ["0123456789abcdef"]}, "tcp://h:2": roomy}, labels)
    one, two = cast("list[FarPlace]", made(client).places())
    assert one.kinds == GUEST_KINDS | {"build"}
    assert two.kinds == frozenset({"build arm64", "boot arm64", "run arm64"})
    assert one.supply is not None
    assert one.objects == {"x86_64-0123456789abcdef"}
    with pytest.raises(InfrastructureError, match=r"has 2.5 GB free below /c: 3 GB at least to build kernels"):
        made(Client({"tcp://h:1": GOOD}, labels))


UNLIKE = {
    "code": ({"code": "0" * 64}, "its kpatch-ci is of another version"),
    "dask": ({"distributed": "1.0"}, "its dask.distributed is 1.0, here it is 20"),
    "no tools": ({"tools": ""}, r"has no tool root of Debian trixie below /c \(KPATCH_CI_CACHE there\)"),
    "tools": (
        {"tools": "0" * 64, "versions": {"gcc": "13", "qemu-system-x86": "10.0.2"}},
        "its tool root differs: gcc is 13, here 14",
    ),
    "disk": ({"trouble": ["less than 1 GiB are free below /c"]}, "less than 1 GiB are free"),
}


@pytest.mark.parametrize("what", UNLIKE)
def test_a_run_does_not_start_with_a_worker_that_is_unlike_this_machine(made: Make, what: str) -> None:
    change, why = cast("dict[str, Any]", UNLIKE[what][0]), UNLIKE[what][1]
    client = Client({"tcp://h:1": GOOD, "tcp://h:2": {**GOOD, **change}})
    with pytest.raises(InfrastructureError, match=rf"engine dask://s:1: worker 2 \(tcp://h:2\): {why}"):
        made(client)
    assert client.closed


def test_all_unlike_workers_are_named_at_once(made: Make) -> None:
    client = Client(
        {"tcp://h:1": {**GOOD, "code": ""}, "tcp://h:2": ModuleNotFoundError("No module named 'kpatch_ci'")}
    )
    with pytest.raises(InfrastructureError) as caught:
        made(client)
    text = str(caught.value)
    assert "tcp://h:1): its kpatch-ci is of another version" in text
    assert "tcp://h:2): has no such kpatch-ci: No module named 'kpatch_ci'" in text


def test_a_worker_without_a_slot_and_a_scheduler_without_workers_are_refused(made: Make) -> None:
    with pytest.raises(InfrastructureError, match="has no slot: its label `slot` is 0"):
        made(Client({"tcp://h:1": GOOD}, {"tcp://h:1": {"slot": 0.0}}))
    with pytest.raises(InfrastructureError, match="the dask scheduler at dask://s:1 has no worker"):
        made(Client({}))


def test_who_joins_is_greeted_first_and_who_is_unlike_gets_nothing(
    made: Make, caplog: pytest.LogCaptureFixture
) -> None:
    client = Client({"tcp://h:1": GOOD})
    cluster = made(client)
    assert [p.name for p in cluster.places()] == ["worker 1 (tcp://h:1)"]
    assert cluster.newcomers() == ()
    client.said = {**client.said, "tcp://h:2": GOOD, "tcp://h:3": {**GOOD, "code": ""}, "tcp://h:4": OSError("closed")}
    until(lambda: cluster._new)
    assert [p.name for p in cluster.newcomers()] == ["worker 2 (tcp://h:2)"]
    assert cluster.newcomers() == (), "each is told once"
    assert "worker 3 (tcp://h:3) has joined, and gets no work: its kpatch-ci is of another version" in caplog.text
    assert caplog.text.count("tcp://h:3") == 1, "said once"
    assert "tcp://h:4" not in caplog.text, "it was gone before it could answer"


def test_one_that_joins_and_never_answers_costs_the_others_nothing(
    made: Make, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusters, "LATER_HELLO", 0.1)
    client, thawed = Client({"tcp://h:1": GOOD}), threading.Event()
    cluster = made(client)
    client.said = {"tcp://h:1": GOOD, "tcp://h:2": lambda: thawed.wait(20)}
    until(lambda: "not all workers of dask://s:1 answered" in caplog.text)
    assert len(cluster.places()) == 1
    client.said = {"tcp://h:1": GOOD, "tcp://h:3": GOOD}
    until(cluster.newcomers)
    assert not cluster._carriers["tcp://h:1"]._gone
    thawed.set()


def test_who_leaves_is_lost_and_may_come_back(made: Make) -> None:
    client = Client({"tcp://h:1": GOOD, "tcp://h:2": GOOD})
    cluster = made(client)
    assert len(cluster.places()) == 2
    gone = cluster._carriers["tcp://h:2"]
    client.said = {"tcp://h:1": GOOD}
    until(lambda: gone._gone)
    assert gone._gone == "it left the cluster"
    assert len(cluster.places()) == 1
    client.said = {"tcp://h:1": GOOD, "tcp://h:2": GOOD}
    until(lambda: cluster._new)
    assert cluster._carriers["tcp://h:2"] is not gone


def test_with_the_scheduler_all_workers_are_lost(made: Make) -> None:
    client = Client({"tcp://h:1": GOOD, "tcp://h:2": GOOD})
    cluster = made(client)
    client.broken = True
    until(lambda: all(one._gone for one in cluster._carriers.values()))
    assert {one._gone for one in cluster._carriers.values()} == {"the scheduler at dask://s:1 is gone (OSError)"}
    assert cluster.places() == ()
    client.broken = False
    until(lambda: len(cluster.newcomers()) == 2 or cluster._places)


def test_a_worker_that_does_not_share_this_store_is_told_from_one_that_does(made: Make, tmp_path: Path) -> None:
    """Without `store:` nothing travels: the probe is a file in the store."""
    seen = []

    def looks() -> dict[str, Any]:
        seen.append(list((tmp_path / "store").iterdir()))
        return GOOD

    client = Client({"tcp://h:1": looks})
    made(client)
    assert len(seen[0]) == 1
    assert list((tmp_path / "store").iterdir()) == []


@pytest.fixture
def worker_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A worker's, in which a tool root would be."""
    cache = tmp_path / "cache"
    (cache / "store").mkdir(parents=True)
    monkeypatch.setenv("KPATCH_CI_CACHE", str(cache))
    monkeypatch.setattr(there, "find_toolroot", lambda *_: TOOLS)
    monkeypatch.setattr(there, "check_sandbox", lambda _: None)
    return cache


def test_a_worker_says_what_it_is(worker_cache: Path) -> None:
    (worker_cache / "store" / ".probe-x").touch()
    for name in ("out/x86_64-0123456789abcdef/vmlinux", "out/arm64-0123456789abcdef/.config"):
        (worker_cache / name).parent.mkdir(parents=True)
        (worker_cache / name).touch()
    said = there.hello("trixie", None, ".probe-x")
    assert said.pop("free") > 0
    assert said == {**{k: v for k, v in GOOD.items() if k != "free"}, "cache": str(worker_cache)}


def test_a_worker_says_what_keeps_it_from_working(
    worker_cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def trouble(depot: dict[str, Any] | None = None) -> str:
        return "; ".join(there.hello("trixie", depot, ".probe-x")["trouble"])

    assert trouble() == f"its store {worker_cache}/store is not this machine's, and no `store:` is named"
    assert "what was written to it a moment ago is not there" in trouble(Depot(f"file://{tmp_path}/depot").told())
    (worker_cache / "store" / ".probe-x").touch()

    def refuses(_: object) -> None:
        raise InfrastructureError("cannot enter the build sandbox", hint="sysctl")

    monkeypatch.setattr(there, "check_sandbox", refuses)
    assert trouble() == "cannot enter the build sandbox"
    monkeypatch.setattr(there, "check_sandbox", lambda _: None)
    usage = shutil.disk_usage(worker_cache)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    assert trouble() == f"less than 1 GiB are free below {worker_cache}"


def test_without_dask_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(f"No module named '{name}'")

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(
        InfrastructureError, match=r"engine dask://h:1: No module named 'distributed'(?s:.*)kpatch-ci\[cluster\]"
    ):
        connect(EngineSettings(address="tcp://h:1"))


def test_a_deployer_that_is_not_installed_or_does_not_take_its_options_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "dask_jobqueue", None)
    with pytest.raises(
        InfrastructureError, match=r"engine dask_jobqueue.SLURMCluster: (?s:.*)pip install dask-jobqueue"
    ):
        connect(EngineSettings(deployer="dask_jobqueue.SLURMCluster"))
    with pytest.raises(UserError, match=r"engine: options: engine dask.distributed.SSHCluster: .*hosts"):
        connect(EngineSettings(deployer="dask.distributed.SSHCluster", options={"host": []}))


def test_a_store_that_cannot_be_written_is_told_before_anything_is_connected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(clusters, "connect", lambda _: pytest.fail("too late"))
    settings = EngineSettings(address="tcp://h:1", depot=Depot(f"file://{tmp_path}/file/x"))
    with pytest.raises(InfrastructureError, match="cannot write"):
        open_cluster(settings, supply_of(tmp_path), LIMITS, cast("Any", print))


def test_a_worker_s_name_is_said_where_it_has_one() -> None:
    assert Told("tcp://h:1", "tcp://h:1", 1).shown == "worker tcp://h:1"
    assert Told("tcp://h:1", "SLURMCluster-3", 1).shown == "worker SLURMCluster-3 (tcp://h:1)"


def test_a_deployer_that_takes_signals_for_itself_does_not_get_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As dask-jobqueue 0.9 does when it is imported: after Ctrl-C the run would end as a success."""
    text = "import signal, sys\nsignal.signal(signal.SIGINT, lambda *_: sys.exit())\ndef SLURMCluster(): raise TypeError('no')\n"
    (tmp_path / "dask_jobqueue.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "dask_jobqueue", raising=False)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(UserError, match="no"):
        connect(EngineSettings(deployer="dask_jobqueue.SLURMCluster"))
    assert signal.getsignal(signal.SIGINT) is before
    assert "dask_jobqueue" in sys.modules
