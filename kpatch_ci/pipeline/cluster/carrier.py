# SPDX-License-Identifier: GPL-2.0-or-later
"""Takes calls to one worker of a cluster, and answers back."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from kpatch_ci import process
from kpatch_ci.guest.guests import measured
from kpatch_ci.kernel.sent import SOURCE
from kpatch_ci.model.digest import digest
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.pipeline.calls import (
    ANSWERS,
    Answer,
    BuildCall,
    Call,
    Ref,
    ReplicateCall,
    build_limit,
    decode,
    encode,
    kind_of,
    refs,
)
from kpatch_ci.pipeline.cluster.rounds import Rounds
from kpatch_ci.pipeline.farplace import Provide, is_there
from kpatch_ci.pipeline.places import BUILD, PlaceLost
from kpatch_ci.store.artifacts import Artifact, ArtifactStore
from kpatch_ci.store.depot import Depot

POLL = 1.0
"""Seconds between two looks at whether this run is being ended."""
GRACE = 300.0
"""Seconds that a call may take beyond its guest's own limits: fetching artifacts, booting anew, a busy network."""
QEMU_BYTES = 256 << 20
"""What QEMU takes beside its guest's memory."""
COMPILER_BYTES = 512 << 20
"""What a job of make takes at most."""
SLOT, MEMORY = "slot", "memory"
"""Labels (dask's resources) that mean something here, beside architectures and BUILD: guests at once, and bytes."""


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

    @property
    def known(self) -> frozenset[Ref]:
        """What was brought so far."""
        return frozenset(self._known)

    def bring(self, wanted: Iterable[Ref], provide: Provide = is_there, *, had: Collection[Ref] = ()) -> None:
        """These artifacts are there afterwards. ``had``: were brought before and not found, and are brought again.

        Raises InfrastructureError.
        """
        for ref in wanted:
            if ref in self._known and ref not in had:
                continue
            with self._lock:
                if ref in self._known and ref not in had:
                    continue
                provide(ref)
                if self.depot is None:
                    continue
                artifact = self.store.get(*ref)
                if artifact is None:
                    raise InfrastructureError(f"artifact {'/'.join(ref)} is not in {self.store.root}")
                self.sent += self.depot.push(artifact, again=ref in had)
                self._known.add(ref)

    def fetch(self, ref: Ref) -> tuple[Artifact | None, int]:
        """What a worker made and brought, and the bytes that came; None where it is not there, or damaged. Raises InfrastructureError."""
        came = self.depot.pull(*ref, self.store) if self.depot else 0
        return (None, 0) if came is None else (self.store.get(*ref), came)


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
        """See Carrier of farplace."""
        found, came = self._shared.fetch(ref)
        if found is None:
            raise PlaceLost(f"{'/'.join(ref)}, which it made, did not arrive whole")
        with self._lock:
            self.answered += came
        return found

    def do(self, call: Call, provide: Provide = is_there) -> Answer:
        """See Carrier of farplace. The kernel's source, which is large, is brought only to a worker that lacks it."""
        self._shared.bring((ref for ref in refs(call) if ref[0] != SOURCE), provide)
        for again in (False, True):
            had = self._shared.known
            found = self._ask(call)
            if "answer" in found:
                with self._lock:
                    self.fetched += int(found["fetched"])
                kind: Any = ANSWERS[found["kind"]]
                return cast("Answer", decode(kind, found["answer"]))
            if "refused" in found:
                raise PlaceLost(found["refused"])
            if not again:
                self._shared.bring(refs(call), provide, had=had)
        lacking = "/".join(found["lacking"][0])
        where = f"the store {self._shared.depot.shown}" if self._shared.depot else "its own store"
        raise InfrastructureError(f"{self._address} cannot find {lacking} in {where}, where it was just put")

    def _ask(self, call: Call) -> dict[str, Any]:
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

    def _needs(self, call: Call) -> dict[str, float]:
        """Of the labels that the worker has, what a call takes."""
        if isinstance(call, BuildCall):
            memory = min(float(call.jobs * COMPILER_BYTES), self._labels.get(MEMORY, 0.0))
            wanted = {SLOT: 1.0, BUILD: 1.0, MEMORY: memory, call.arch: 1.0}
        else:
            memory = float((call.machine.memory_mib << 20) + QEMU_BYTES)
            wanted = {SLOT: 1.0, MEMORY: memory, call.machine.arch: 1.0}
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


def _patience(call: Call) -> float:
    """Seconds after which a worker is given up."""
    if isinstance(call, BuildCall):
        return build_limit(call) + GRACE
    limits = call.limits
    runs = measured(call.job) if isinstance(call, ReplicateCall) else 0
    return limits.boot + limits.replicate * runs + limits.silence + GRACE
