# SPDX-License-Identifier: GPL-2.0-or-later
"""Calls to a worker of a cluster: what it answers, what it lacks, and what happens when it is gone, late or of another kind."""

from __future__ import annotations

import io
import json
import pickle
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from distributed.protocol import pickle as dask_pickle

from kpatch_ci import process
from kpatch_ci.debian.toolroot import ToolRoot
from kpatch_ci.guest.guests import RawRun
from kpatch_ci.guest.machine import load_machine
from kpatch_ci.model.boot import BootResult
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.model.status import Status
from kpatch_ci.pipeline.calls import BootAnswer, BootCall, Limits, ReplicateAnswer, ReplicateCall, encode
from kpatch_ci.pipeline.cluster import carrier as carriers
from kpatch_ci.pipeline.cluster import rounds as rounds_module
from kpatch_ci.pipeline.cluster import there
from kpatch_ci.pipeline.cluster.carrier import Carrier, Identity, Shared, _patience
from kpatch_ci.pipeline.cluster.rounds import Rounds
from kpatch_ci.pipeline.places import PlaceLost
from kpatch_ci.pipeline.worker import Worker, code_version
from kpatch_ci.store.artifacts import ArtifactStore
from kpatch_ci.store.depot import Depot
from tests.unit.pipeline.test_calls import BUILD, IMAGE, LIMITS, MACHINES

MACHINE = load_machine(MACHINES[0])
BOOT = BootResult(Status.PASSED, "patched", "arm64", "m", 3, "b" * 64, 1.25, False)
CALL = BootCall(BUILD, IMAGE, MACHINE, 7, LIMITS)
IDENTITY = Identity(code_version(), "trixie", "f" * 64)


class Late:
    """What distributed.Future is to us."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.value: Any = None
        self.callbacks: list[Callable[[Any], None]] = []
        self.released = False

    def set(self, value: Any) -> None:
        self.value = value
        self.done.set()
        for one in self.callbacks:
            one(self)

    def add_done_callback(self, one: Callable[[Any], None]) -> None:
        self.callbacks.append(one)
        if self.done.is_set():
            one(self)

    def result(self, timeout: float) -> Any:
        assert self.done.wait(timeout)
        if isinstance(self.value, Exception):
            raise self.value
        return self.value

    def release(self) -> None:
        self.released = True


class Hub:
    """A client whose one worker answers what it is told to; None: it does not answer."""

    def __init__(self, *answers: Mapping[str, Any] | Exception | None) -> None:
        self.answers = list(answers)
        self.futures: list[Late] = []
        self.submitted: list[dict[str, Any]] = []
        self.asked: list[dict[str, Any]] = []
        self.ended: list[str] = []

    def run(self, function: Any, *args: Any, on_error: str) -> None:
        assert on_error == "return"
        self.ended.append(args[0])

    def submit(self, func: Any, *args: Any, **kwargs: Any) -> Late:
        assert func.__qualname__ == carriers.done_there().__qualname__
        asked = json.loads(args[0])
        self.asked.append(asked)
        self.submitted.append(kwargs)
        future = Late()
        self.futures.append(future)
        answer = self.answers.pop(0)
        if answer is not None:
            future.set(answer if isinstance(answer, Exception) else json.dumps({"key": asked["key"], **answer}))
        return future


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(carriers, "POLL", 0.02)
    yield
    process.go_on()


def carrier(hub: Hub, tmp_path: Path, depot: Depot | None = None, **labels: float) -> Carrier:
    return Carrier(Rounds(hub), "tcp://a:1", IDENTITY, Shared(ArtifactStore(tmp_path / "here"), depot), labels)


def answered(console: str = "") -> dict[str, Any]:
    return {"kind": "boot", "answer": encode(BootAnswer(BOOT, console)), "fetched": 5}


def test_an_answer_comes_back_and_the_worker_is_asked_alone(tmp_path: Path) -> None:
    hub = Hub(answered("booting\n"))
    one = carrier(hub, tmp_path, slot=2, memory=8e9)
    assert one.do(CALL) == BootAnswer(BOOT, "booting\n")
    assert one.fetched == 5
    (how,) = hub.submitted
    assert (how["workers"], how["allow_other_workers"], how["retries"]) == (["tcp://a:1"], False, 0)
    assert how["resources"] == {"slot": 1.0, "memory": float((MACHINE.memory_mib << 20) + (256 << 20))}
    assert hub.futures[0].released


def test_the_scheduler_needs_no_kpatch_ci_to_pass_a_call_on() -> None:
    """It unpacks what it passes on: nothing in there may be ours by name."""
    modules: list[str] = []

    class Scheduler(pickle.Unpickler):
        def find_class(self, module_name: str, global_name: str) -> Any:
            modules.append(module_name)
            return super().find_class(module_name, global_name)

    call = Scheduler(io.BytesIO(cast("Any", dask_pickle).dumps(carriers.done_there()))).load()
    assert modules
    assert not [name for name in modules if name.startswith("kpatch_ci")]
    assert (
        json.loads(call(json.dumps({"key": "k", "code": "other"})))["refused"] == "its kpatch-ci is of another version"
    )


def test_what_a_worker_is_not_labelled_with_is_not_asked_of_it(tmp_path: Path) -> None:
    hub = Hub(answered(), answered())
    carrier(hub, tmp_path).do(CALL)
    carrier(hub, tmp_path, None, **{MACHINE.arch: 4.0, "gpu": 1.0}).do(CALL)
    assert [how["resources"] for how in hub.submitted] == [{}, {MACHINE.arch: 1.0}]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"refused": "its kpatch-ci is of another version"}, "its kpatch-ci is of another version"),
        ({**answered(), "key": "of another call"}, "it answered another call than the one that it was given"),
        (RuntimeError("Nanny killed it"), "RuntimeError: Nanny killed it"),
        (RuntimeError("k cancelled for reason: scheduler-connection-lost."), "^the scheduler is gone$"),
    ],
)
def test_a_worker_that_refuses_or_answers_something_else_is_lost(tmp_path: Path, answer: Any, why: str) -> None:
    with pytest.raises(PlaceLost, match=why):
        carrier(Hub(answer), tmp_path).do(CALL)


def test_what_is_of_another_form_is_not_taken_for_an_answer(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="a BootAnswer that cannot be read"):
        carrier(Hub({"kind": "boot", "answer": {"boot": "yes"}, "fetched": 0}), tmp_path).do(CALL)


def lost_while_waiting(hub: Hub, one: Carrier, act: Callable[[], object]) -> str:
    """The reason with which a call ends that was waiting when ``act`` was done."""
    reasons: list[str] = []

    def ask() -> None:
        with pytest.raises(PlaceLost) as caught:
            one.do(CALL)
        reasons.append(str(caught.value))

    thread = threading.Thread(target=ask)
    thread.start()
    while not hub.futures:
        pass
    act()
    thread.join(10)
    assert not thread.is_alive()
    return reasons[0]


def test_who_waits_for_a_worker_that_leaves_is_told_at_once_and_nobody_asks_it_again(tmp_path: Path) -> None:
    hub = Hub(None)
    one = carrier(hub, tmp_path)
    assert lost_while_waiting(hub, one, lambda: one.lose("it left the cluster")) == "it left the cluster"
    assert hub.futures[0].released
    with pytest.raises(PlaceLost, match="it left the cluster"):
        one.do(CALL)
    assert len(hub.futures) == 1


def test_a_late_answer_and_one_that_comes_twice_reach_nobody(tmp_path: Path) -> None:
    """Each round has a key of its own at dask; what it asks for, and so the answer, is the same."""
    hub = Hub(None, answered("second\n"))
    old, new = carrier(hub, tmp_path), carrier(hub, tmp_path)
    lost_while_waiting(hub, old, lambda: old.lose("it left the cluster"))
    assert new.do(CALL) == BootAnswer(BOOT, "second\n")
    hub.futures[0].set(json.dumps({"key": hub.asked[0]["key"], **answered("late\n")}))
    hub.futures[1].set(json.dumps({"key": hub.asked[1]["key"], **answered("twice\n")}))
    assert [{**asked, "round": ""} for asked in hub.asked[:1]] == [{**asked, "round": ""} for asked in hub.asked[1:]]
    assert hub.submitted[0]["key"] != hub.submitted[1]["key"]


def test_a_run_that_is_being_ended_waits_for_nobody(tmp_path: Path) -> None:
    hub = Hub(None)
    assert lost_while_waiting(hub, carrier(hub, tmp_path), process.kill_all) == "this run is being ended"


def test_what_a_stopped_round_has_called_for_is_ended_by_its_name_once_and_the_next_has_another(tmp_path: Path) -> None:
    hub = Hub(None, answered())
    rounds = Rounds(hub)
    shared = Shared(ArtifactStore(tmp_path / "here"), None)
    one, two = (Carrier(rounds, f"tcp://{name}:1", IDENTITY, shared) for name in "ab")
    two.stop()
    assert hub.ended == [], "nothing was called for yet"
    assert lost_while_waiting(hub, one, one.stop) == "this run is being ended"
    two.stop()
    assert hub.ended == [hub.asked[0]["round"]]
    two.do(CALL)
    assert hub.asked[1]["round"] not in ("", hub.asked[0]["round"])


def test_a_round_whose_workers_do_not_hear_of_its_end_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds_module, "TELLING", 0.05)
    hub, heard = Hub(answered()), threading.Event()
    monkeypatch.setattr(hub, "run", lambda *_, **__: heard.wait(20))
    one = carrier(hub, tmp_path)
    one.do(CALL)
    one.stop()
    assert not heard.is_set()
    heard.set()


def test_a_worker_that_does_not_answer_in_its_time_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(carriers, "_patience", lambda _: 0.1)
    hub = Hub(None)
    with pytest.raises(PlaceLost, match="no answer within 0 s"):
        carrier(hub, tmp_path).do(CALL)


def test_a_worker_s_time_covers_every_command_that_is_measured() -> None:
    job = "run\tdd\nrun\tdd\n"
    call = ReplicateCall(BOOT, BUILD, IMAGE, MACHINE, job, "n", Limits(60.0, 120.0, 30.0))
    assert _patience(call) == 60 + 2 * 120 + 30 + 300


def artifacts(store: ArtifactStore) -> None:
    for kind, key in (("build", BUILD.key), ("guest-image", IMAGE.key)):
        store.put(kind, key, lambda place: {"n": (place / "image").write_text("x" * 1000)})


def test_what_a_worker_lacks_is_brought_again_once(tmp_path: Path) -> None:
    depot = Depot(f"file://{tmp_path}/depot")
    artifacts(ArtifactStore(tmp_path / "here"))
    hub = Hub({"lacking": [["build", BUILD.key]]}, answered(), answered())
    one = carrier(hub, tmp_path, depot)
    one.do(CALL)
    sent = one._shared.sent
    one.do(CALL)
    assert one._shared.sent == sent > 3000, "twice each because it was asked for; then never again"
    assert hub.asked[0]["depot"] == depot.told()
    again = {"lacking": [["build", BUILD.key]]}
    with pytest.raises(
        InfrastructureError, match=rf"tcp://a:1 cannot find build/k+ in the store file://{tmp_path}/depot"
    ):
        carrier(Hub(again, again), tmp_path, depot).do(CALL)


def test_a_worker_does_what_it_is_asked_and_refuses_what_is_of_another_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = ToolRoot(tmp_path, "trixie", "f" * 64, {})
    worker = Worker(tmp_path / "there", root)
    monkeypatch.setattr(there, "_worker", lambda _: worker)
    depot = Depot(f"file://{tmp_path}/depot")
    run = ReplicateAnswer(RawRun(Status.PASSED, "{}\n", 0.5), "")
    monkeypatch.setattr(worker, "do", lambda call: run if isinstance(call, ReplicateCall) else BootAnswer(BOOT, ""))
    replicate = ReplicateCall(BOOT, BUILD, IMAGE, MACHINE, "run\tdd\n", "n", LIMITS)

    def ask(call: Any, kind: str, **other: Any) -> Any:
        told = {"code": code_version(), "suite": "trixie", "tools": "f" * 64, "depot": depot.told()}
        return json.loads(there.do_call(json.dumps({"key": "k", "kind": kind, "call": encode(call), **told, **other})))

    assert ask(CALL, "boot") == {"key": "k", "lacking": [["build", BUILD.key]]}
    assert ask(CALL, "boot", depot=None) == {"key": "k", "lacking": [["build", BUILD.key]]}
    here = ArtifactStore(tmp_path / "here")
    artifacts(here)
    for kind, key in (("build", BUILD.key), ("guest-image", IMAGE.key)):
        artifact = here.get(kind, key)
        assert artifact
        depot.push(artifact)
    first = ask(CALL, "boot")
    assert (first["answer"], first["fetched"] > 2000) == (encode(BootAnswer(BOOT, "")), True)
    assert ask(replicate, "replicate") == {"key": "k", "kind": "replicate", "answer": encode(run), "fetched": 0}
    assert "of another version" in ask(CALL, "boot", code="0" * 64)["refused"]
    assert "other packages" in ask(CALL, "boot", tools="0" * 64)["refused"]
    assert "a BootCall that cannot be read" in ask(replicate, "boot")["refused"]

    def full(_: object) -> None:
        raise InfrastructureError("no space left on the disk")

    monkeypatch.setattr(worker, "do", full)
    assert ask(CALL, "boot")["refused"] == "no space left on the disk"
