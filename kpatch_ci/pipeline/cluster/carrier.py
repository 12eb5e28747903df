# SPDX-License-Identifier: GPL-2.0-or-later
"""Takes calls to one worker of a cluster, and answers back."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from kpatch_ci import process
from kpatch_ci.guest.guests import measured
from kpatch_ci.model.digest import digest
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.pipeline.calls import (
    ANSWERS,
    Answer,
    BuildCall,
    Call,
    GuestCall,
    Ref,
    ReplicateCall,
    decode,
    encode,
    kind_of,
    refs,
)
from kpatch_ci.pipeline.cluster.rounds import Rounds
from kpatch_ci.pipeline.farplace import Provide, is_there
from kpatch_ci.pipeline.places import PlaceLost
from kpatch_ci.store.artifacts import Artifact, ArtifactStore
from kpatch_ci.store.depot import Depot

POLL = 1.0
"""Seconds between two looks at whether this run is being ended."""
GRACE = 300.0
"""Seconds that a call may take beyond its guest's own limits: fetching artifacts, booting anew, a busy network."""
QEMU_BYTES = 256 << 20
"""What QEMU takes beside its guest's memory."""
SLOT, MEMORY = "slot", "memory"
"""Labels (dask's resources) that mean something here, beside architectures: guests at once, and bytes."""


def done_there() -> Callable[[str], str]:
    """``there.do_call`` in a wrapping that the scheduler can unpack without having kpatch-ci: dask sends an inner function by value."""

    def do_call(text: str) -> str:
        from kpatch_ci.pipeline.cluster import there  # noqa: PLC0415 (in the worker)

        return there.do_call(text)

    return do_call


@dataclass(frozen=True, slots=True)
class Identity:
    """What a worker must be alike in: digest of our source, suite and fingerprint of the tool root."""

    code: str
    suite: str
    tools: str


@dataclass
class Shared:
    """Artifacts that this run has brought to the depot. Safe for concurrent threads."""

    store: ArtifactStore
    depot: Depot | None
    sent: int = 0
    """Bytes."""
    _known: set[tuple[str, str]] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def bring(self, call: Call, provide: Provide = is_there, *, again: bool = False) -> None:
        """What a call needs is there afterwards. Raises InfrastructureError."""
        if self.depot is None:
            return
        for ref in refs(call):
            if ref in self._known and not again:
                continue
            with self._lock:
                if ref in self._known and not again:
                    continue
                provide(ref)
                artifact = self.store.get(*ref)
                if artifact is None:
                    raise InfrastructureError(f"artifact {'/'.join(ref)} is not in {self.store.root}")
                self.sent += self.depot.push(artifact, again=again)
                self._known.add(ref)


class Carrier:
    """To the worker at ``address``. Safe for concurrent threads."""

    def __init__(
        self,
        rounds: Rounds,
        address: str,
        identity: Identity,
        shared: Shared,
        labels: Mapping[str, float] | None = None,
    ) -> None:
        self._rounds, self._hub = rounds, rounds.hub
        self._address, self._identity, self._shared = address, identity, shared
        self._labels = labels or {}
        self._gone = ""
        self._stops = 0
        self._waiting: set[threading.Event] = set()
        self._lock = threading.Lock()
        self.fetched = 0
        """Bytes that the worker fetched from the depot."""
        self.answered = 0
        """Bytes of its answers."""

    @property
    def lost(self) -> str:
        """See Place.lost."""
        return self._gone

    @property
    def moved(self) -> tuple[int, int]:
        """See Place.moved; what it gets it gets from the depot."""
        return self.fetched, self.answered

    def stop(self) -> None:
        """See Place.stop: whoever waits waits no longer, and what this run's workers are at is ended there."""
        with self._lock:
            self._stops += 1
            for one in self._waiting:
                one.set()
        self._rounds.end()

    def close(self) -> None:
        """See Place.close."""
        self.lose("this run is over")

    def lose(self, why: str) -> None:
        """The worker is gone: whoever waits for it is told so."""
        with self._lock:
            self._gone = self._gone or why
            for one in self._waiting:
                one.set()

    def fetch(self, ref: Ref) -> Artifact:
        """Kernels are built on this machine."""
        raise NotImplementedError

    def do(self, call: Call, provide: Provide = is_there) -> Answer:
        """See Carrier of farplace."""
        assert not isinstance(call, BuildCall)  # noqa: S101 (a cluster's places do none)
        self._shared.bring(call, provide)
        for again in (False, True):
            found = self._ask(call)
            if "answer" in found:
                with self._lock:
                    self.fetched += int(found["fetched"])
                kind: Any = ANSWERS[found["kind"]]
                return cast("Answer", decode(kind, found["answer"]))
            if "refused" in found:
                raise PlaceLost(found["refused"])
            if not again:
                self._shared.bring(call, provide, again=True)
        lacking = "/".join(found["lacking"][0])
        where = f"the store {self._shared.depot.shown}" if self._shared.depot else "its own store"
        raise InfrastructureError(f"{self._address} cannot find {lacking} in {where}, where it was just put")

    def _ask(self, call: GuestCall) -> dict[str, Any]:
        """One round. The key under which dask knows it is of this round alone: what comes late of an earlier one is nobody's."""
        body = encode(call)
        kind = kind_of(call)
        one, depot = self._identity, self._shared.depot
        key = digest([one.code, one.tools, kind, body])
        told = {"code": one.code, "suite": one.suite, "tools": one.tools, "depot": depot.told() if depot else None}
        done = threading.Event()
        with self._lock:
            if self._gone:
                raise PlaceLost(self._gone)
            stops = self._stops
            self._waiting.add(done)
        text = json.dumps({"key": key, "kind": kind, "call": body, "round": self._rounds.enter(), **told})
        future = None
        try:
            future = self._hub.submit(
                done_there(),
                text,
                key=f"kpatch-ci-{key[:16]}-{uuid.uuid4().hex}",
                workers=[self._address],
                allow_other_workers=False,
                resources=self._needs(call),
                retries=0,
                pure=False,
            )
            future.add_done_callback(lambda _: done.set())
            return self._answer(future, done, key, _patience(call), stops=stops)
        finally:
            with self._lock:
                self._waiting.discard(done)
            if future is not None:
                future.release()

    def _needs(self, call: GuestCall) -> dict[str, float]:
        """Of the labels that the worker has, what a call takes."""
        wanted = {SLOT: 1.0, MEMORY: float((call.machine.memory_mib << 20) + QEMU_BYTES), call.machine.arch: 1.0}
        return {label: much for label, much in wanted.items() if label in self._labels}

    def _answer(self, future: Any, done: threading.Event, key: str, patience: float, *, stops: int) -> dict[str, Any]:
        ends = time.monotonic() + patience
        while not done.wait(POLL):
            if process.is_stopping():
                raise PlaceLost("this run is being ended")
            if time.monotonic() > ends:
                raise PlaceLost(f"no answer within {patience:.0f} s")
        if self._gone:
            raise PlaceLost(self._gone)
        if stops != self._stops:
            raise PlaceLost("this run is being ended")
        try:
            text = future.result(timeout=GRACE)
            found: dict[str, Any] = json.loads(text)
        except Exception as error:  # dask's own, or what the worker's Python made of it: the worker is no good
            raise PlaceLost(self._gone or _in_words(error)) from error
        if found["key"] != key:
            raise PlaceLost("it answered another call than the one that it was given")
        with self._lock:
            self.answered += len(text)
        return found


def _in_words(error: Exception) -> str:
    said = " ".join(str(error).split())
    return "the scheduler is gone" if "scheduler-connection-lost" in said else f"{type(error).__name__}: {said[:300]}"


def _patience(call: GuestCall) -> float:
    """Seconds after which a worker is given up."""
    limits = call.limits
    runs = measured(call.job) if isinstance(call, ReplicateCall) else 0
    return limits.boot + limits.replicate * runs + limits.silence + GRACE
