# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels that a cluster's workers build: source and kernel go through the store, each once, and nothing damaged counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kpatch_ci import process
from kpatch_ci.kernel.build import KIND
from kpatch_ci.kernel.sent import has_source
from kpatch_ci.model.status import Status
from kpatch_ci.pipeline.cluster import there
from kpatch_ci.pipeline.cluster.carrier import Carrier, Identity, Shared
from kpatch_ci.pipeline.cluster.rounds import Rounds
from kpatch_ci.pipeline.farplace import FarPlace
from kpatch_ci.pipeline.places import BUILD, PlaceLost
from kpatch_ci.pipeline.supply import Supply
from kpatch_ci.pipeline.worker import Worker, code_version
from kpatch_ci.store.artifacts import ArtifactStore
from kpatch_ci.store.depot import Depot
from tests.fakes.far import LIMITS
from tests.unit.pipeline.far.test_builds import PATCH, Lab
from tests.unit.pipeline.far.test_builds import lab as lab  # noqa: PLC0414 (a fixture)
from tests.unit.pipeline.test_cluster_carrier import Late


class Hub:
    """A client whose worker does what it is asked for, at once."""

    def __init__(self) -> None:
        self.resources: list[dict[str, float]] = []
        self.answers: list[str] = []

    def run(self, function: Any, *args: Any, **kwargs: Any) -> None:
        """Nobody is to be told anything."""

    def submit(self, func: Any, text: str, **kwargs: Any) -> Late:
        self.resources.append(kwargs["resources"])
        self.answers.append(func(text))
        future = Late()
        future.set(self.answers[-1])
        return future


Place = Callable[..., tuple[FarPlace, Hub]]


@pytest.fixture
def place(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """Makes a worker's place, whose cache is ``lab.there`` unless it is ``cache``; with a depot unless they share a cache."""

    def make(depot: Depot | None, cache: Path | None = None, **labels: float) -> tuple[FarPlace, Hub]:
        worker = Worker(cache or lab.there, lab.tools)
        monkeypatch.setattr(there, "_worker", lambda _: worker)
        supply = Supply(lab.root / "here", lab.store, lab.tools, 60.0)
        hub, identity = Hub(), Identity(code_version(), lab.tools.suite, lab.tools.fingerprint)
        carrier = Carrier(Rounds(hub), "tcp://a:1", identity, Shared(lab.store, depot), labels)
        return FarPlace("worker a", 2, frozenset({BUILD}), carrier, LIMITS, supply), hub

    yield make
    process.go_on()


@pytest.fixture
def depot(tmp_path: Path) -> Depot:
    return Depot(f"file://{tmp_path}/depot")


def test_a_baseline_and_a_patched_kernel_come_back_as_they_would_be_here(lab: Lab, place: Place, depot: Depot) -> None:
    request = lab.request(PATCH)
    alone = lab.alone(request)
    there_, hub = place(depot, slot=2.0, build=1.0, x86_64=2.0, memory=1e9)
    base = there_.build(request.baseline(), lab.logs)
    assert has_source(lab.there, lab.tree.tree_id)
    assert there_.has_objects(request)
    patched = there_.build(request, lab.logs)
    assert (base.status, patched.status) == (Status.PASSED, Status.PASSED)
    assert (patched.image_digest, patched.objects, patched.differing) == (alone.image_digest, 2, alone.differing)
    for built in (base, patched):
        assert built.artifact == lab.store.place(KIND, built.key)
        assert lab.store.get(KIND, built.key) is not None
    assert len(hub.answers) == 3, "the source was lacking once, and the patched kernel asked for once"
    assert "lacking" in hub.answers[0]
    assert hub.resources[0] == {"slot": 1.0, "build": 1.0, "x86_64": 1.0, "memory": 1e9}, "no more than it has"
    sent, received = there_.moved
    assert min(sent, received) > 0


def test_the_source_is_brought_once_however_many_lack_it(lab: Lab, place: Place, depot: Depot) -> None:
    request = lab.request()
    first, _ = place(depot)
    first.build(request, lab.logs)
    brought = first.carrier._shared.sent  # type: ignore[attr-defined]
    lab.store.drop(KIND, request.key(lab.tools))
    second, hub = place(depot, lab.root / "third")
    built = second.build(lab.request(PATCH), lab.logs)
    assert built.status is Status.PASSED
    assert has_source(lab.root / "third", lab.tree.tree_id)
    assert second.carrier._shared.sent < 20_000 < brought  # type: ignore[attr-defined]
    assert "lacking" not in hub.answers[-1]


def test_with_one_cache_for_all_nothing_travels(lab: Lab, place: Place) -> None:
    one, _ = place(None, lab.root / "here")
    built = one.build(lab.request(PATCH), lab.logs)
    assert (built.status, one.moved[0]) == (Status.PASSED, 0)
    assert has_source(lab.root / "here", lab.tree.tree_id)


def test_a_kernel_that_is_damaged_on_its_way_is_the_workers_loss(lab: Lab, place: Place, depot: Depot) -> None:
    request = lab.request()
    one, _ = place(depot)
    push = Depot.push

    def damaged(self: Depot, artifact: Any, *, again: bool = False) -> int:
        done = push(self, artifact, again=again)
        if artifact.kind == KIND:
            image = lab.root / "depot/blobs" / artifact.digests["image"][:2] / artifact.digests["image"]
            image.write_bytes(b"rot")
        return done

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Depot, "push", damaged)
        with pytest.raises(PlaceLost, match=f"{KIND}/.*did not arrive whole"):
            one.build(request, lab.logs)
    assert lab.store.get(KIND, request.key(lab.tools)) is None


def test_a_kernel_that_does_not_build_comes_back_with_what_make_said(lab: Lab, place: Place, depot: Depot) -> None:
    one, _ = place(depot)
    built = one.build(lab.request({"lib/a.c": "fn a\nerror no such thing\n"}), lab.logs)
    assert built.status is Status.FAILED
    assert built.log is not None
    assert built.log.name == "build-x86_64-s.on-worker a.log"
    assert "no such thing" in built.log.read_text()
    assert not ArtifactStore(lab.there / "store").get(KIND, built.key)
