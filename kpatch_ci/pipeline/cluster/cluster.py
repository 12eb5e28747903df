# SPDX-License-Identifier: GPL-2.0-or-later
"""A cluster as places: one for each worker, those that join later too, after each has said what it is."""

from __future__ import annotations

import atexit
import importlib.metadata
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooLate
from dataclasses import dataclass, field
from typing import Any

from kpatch_ci.config.cluster import EngineSettings
from kpatch_ci.host.finding import BUILD_ROOM
from kpatch_ci.model.arch import ARCHES
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.pipeline.calls import Limits
from kpatch_ci.pipeline.cluster.carrier import SLOT, Carrier, Identity, Shared
from kpatch_ci.pipeline.cluster.deployers import Connection, connect
from kpatch_ci.pipeline.cluster.rounds import Rounds
from kpatch_ci.pipeline.cluster.there import SPARE, hello
from kpatch_ci.pipeline.farplace import FarPlace
from kpatch_ci.pipeline.places import BUILD, GUEST_KINDS, Place
from kpatch_ci.pipeline.supply import Supply
from kpatch_ci.pipeline.worker import code_version
from kpatch_ci.store.artifacts import ArtifactStore

log = logging.getLogger(__name__)
Say = Callable[[str], None]

WATCH = 1.0
"""Seconds between two looks at who is there."""
HELLO_TIMEOUT, LATER_HELLO = 120.0, 30.0
"""Seconds for an answer: before the run, and of those that join it, when nobody watches the others meanwhile."""
FIRST_WORKER = 300.0
"""Seconds to wait for the first worker of a cluster that was just started: a batch system may let it wait."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a worker said of itself; ``labels`` are its resources, ``threads`` what it runs at once without the label `slot`."""

    address: str
    name: str
    threads: int
    labels: Mapping[str, float] = field(default_factory=dict)

    @property
    def shown(self) -> str:
        """For people."""
        return f"worker {self.name} ({self.address})" if self.name != self.address else f"worker {self.address}"

    @property
    def slots(self) -> int:
        """Guests at once."""
        return int(self.labels.get(SLOT, self.threads))

    @property
    def kinds(self) -> frozenset[str]:
        """Boots and replicates, and builds where it is labelled so; of its architectures only, where it is labelled with any."""
        all_kinds = GUEST_KINDS | {BUILD} if self.builds else GUEST_KINDS
        arches = [arch for arch in ARCHES if self.labels.get(arch, 0) >= 1]
        return frozenset(f"{kind} {arch}" for kind in all_kinds for arch in arches) if arches else all_kinds

    @property
    def builds(self) -> bool:
        """Whether it builds kernels."""
        return self.labels.get(BUILD, 0) >= 1


class Cluster:
    """See module. Safe for the engine's thread and its own; closed at the end of the process at the latest."""

    def __init__(
        self,
        connection: Connection,
        shared: Shared,
        supply: Supply,
        limits: Limits,
        *,
        identity: Identity | None = None,
    ) -> None:
        tools = supply.tools
        self._connection, self._client = connection, connection.client
        self._supply, self._versions, self._limits = supply, tools.versions, limits
        self._identity = identity or Identity(code_version(), tools.suite, tools.fingerprint)
        self.shared = shared
        self._rounds = Rounds(self._client)
        self._carriers: dict[str, Carrier] = {}
        self._places: dict[str, FarPlace] = {}
        self.ever: list[FarPlace] = []
        """Every worker that was a place, those that are gone too."""
        self._refused: set[str] = set()
        self._new: list[Place] = []
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="cluster", daemon=True)

    def places(self) -> Sequence[Place]:
        """The workers that are there now."""
        with self._lock:
            self._new.clear()
            return tuple(self._places.values())

    def newcomers(self) -> Sequence[Place]:
        """Those that have come since."""
        if not self._new:
            return ()
        with self._lock:
            found, self._new = tuple(self._new), []
        return found

    @property
    def slots(self) -> int:
        """Guests at once, of all workers that are there now."""
        with self._lock:
            return sum(one.slots for one in self._places.values())

    @property
    def fetched(self) -> int:
        """Bytes that workers fetched from the depot."""
        return sum(one.fetched for one in self._carriers.values())

    def start(self, wait: float) -> None:
        """Greet the workers. Raises InfrastructureError that names all which are unlike this machine, or where there are none."""
        try:
            self._first(wait)
        except BaseException:
            self.close()
            raise
        atexit.register(self.close)
        self._watcher.start()

    def _first(self, wait: float) -> None:
        ends = time.monotonic() + wait
        while not (there := self._there()) and time.monotonic() < ends:
            time.sleep(WATCH)
        shown = self._connection.shown
        if not there:
            raise InfrastructureError(
                f"the dask scheduler at {shown} has no worker", hint="start some: docs/cluster.md"
            )
        bad = self._greet(there)
        if bad:
            hint = "each worker needs this very kpatch-ci and tool root: docs/cluster.md"
            raise InfrastructureError(f"engine {shown}: " + "\n".join(f"{t.shown}: {why}" for t, why in bad), hint=hint)

    def close(self) -> None:
        """Leave the cluster; one that was started for us is stopped."""
        if self._closing.is_set():
            return
        self._closing.set()
        atexit.unregister(self.close)
        for one in self._carriers.values():
            one.lose("this run is over")
        try:
            self._connection.close()
        except Exception as error:  # it may be gone already
            log.debug("closing the cluster: %s", error)

    def _there(self) -> list[str]:
        return list(self._client.nthreads())

    def _greet(self, addresses: Sequence[str], timeout: float = HELLO_TIMEOUT) -> list[tuple[Told, str]]:
        """Ask workers what they are. The good ones are places afterwards; the others are returned, with why not."""
        known: Mapping[str, Any] = self._client.scheduler_info(n_workers=-1)["workers"]
        told = [
            Told(a, str(known[a]["name"]), int(known[a]["nthreads"]), known[a].get("resources", {}))
            for a in addresses
            if a in known
        ]
        answers = self._hello([one.address for one in told], timeout) if told else {}
        told = [one for one in told if not isinstance(answers.get(one.address), OSError | None)]  # gone meanwhile
        bad = [(one, why) for one in told if (why := self._unlike(one, answers[one.address]))]
        unfit = {one.address for one, _ in bad}
        with self._lock:
            self._refused |= unfit
            for one in (t for t in told if t.address not in unfit):
                carrier = Carrier(self._rounds, one.address, self._identity, self.shared, one.labels)
                self._carriers[one.address] = carrier
                supply, objects = self._supply if one.builds else None, set(answers[one.address]["objects"])
                made = FarPlace(one.shown, one.slots, one.kinds, carrier, self._limits, supply, objects)
                self._places[one.address] = made
                self._new.append(self._places[one.address])
                self.ever.append(self._places[one.address])
        return bad

    def _hello(self, addresses: list[str], timeout: float) -> Mapping[str, Any]:
        depot = self.shared.depot
        probe = depot.write_probe() if depot else _write_probe(self.shared.store)
        told = depot.told() if depot else None
        asking = ThreadPoolExecutor(1, "hello")  # of its own: it may never come back
        try:
            asked = asking.submit(
                self._client.run, hello, self._identity.suite, told, probe, workers=addresses, on_error="return"
            )
            found: Mapping[str, Any] = asked.result(timeout=timeout)
        except TooLate as error:
            what = f"not all workers of {self._connection.shown} answered within {timeout:.0f} s"
            raise InfrastructureError(what, hint=f"asked were {', '.join(addresses)}") from error
        finally:
            asking.shutdown(wait=False)
            if depot:
                depot.remove_probe(probe)
            else:
                (self.shared.store.root / probe).unlink(missing_ok=True)
        return found

    def _unlike(self, told: Told, said: Any) -> str:
        """What is wrong with a worker; empty where nothing is."""
        if not isinstance(said, Mapping):
            return f"has no such kpatch-ci: {' '.join(str(said).split())[:300]}"
        ours, one, to_build = _our_dask(), self._identity, BUILD_ROOM + SPARE
        faults = (
            (said["code"] != one.code, "its kpatch-ci is of another version (another digest of the source)"),
            (said["distributed"] != ours, f"its dask.distributed is {said['distributed']}, here it is {ours}"),
            (
                not said["tools"],
                f"has no tool root of Debian {one.suite} below {said['cache']} (KPATCH_CI_CACHE there)",
            ),
            (said["tools"] != one.tools, f"its tool root differs: {_difference(said['versions'], self._versions)}"),
            (told.slots < 1, f"has no slot: its label `{SLOT}` is {told.labels.get(SLOT)}"),
            (
                told.builds and not said["sources"] and said["free"] < to_build,
                f"has {said['free'] / 1e9:.1f} GB free below {said['cache']}: {to_build / 1e9:.0f} GB at least to build kernels",
            ),
        )
        return next((what for wrong, what in faults if wrong), "; ".join(said["trouble"]))

    def _watch(self) -> None:
        while not self._closing.wait(WATCH):
            try:
                self._compare(self._there())
            except Exception as error:  # whatever a broken connection raises in dask
                if self._closing.is_set():
                    return
                self._lose(
                    list(self._places), f"the scheduler at {self._connection.shown} is gone ({type(error).__name__})"
                )

    def _compare(self, there: Iterable[str]) -> None:
        now = set(there)
        self._lose([a for a in self._places if a not in now], "it left the cluster")
        fresh = sorted(now - set(self._places) - self._refused)
        try:
            for told, why in self._greet(fresh, LATER_HELLO) if fresh else []:
                log.warning("%s has joined, and gets no work: %s", told.shown, why)
        except (
            InfrastructureError
        ) as error:  # no answer, or the store is gone just now: no fault of those that are at work
            self._refused |= set(fresh)
            log.warning("%s: joined, and get no work: %s", ", ".join(fresh), error)

    def _lose(self, addresses: Sequence[str], why: str) -> None:
        for address in addresses:
            with self._lock:
                gone = self._places.pop(address)
                self._new = [one for one in self._new if one is not gone]
            self._carriers[address].lose(why)


def _our_dask() -> str:
    return importlib.metadata.version("distributed")


def _write_probe(store: ArtifactStore) -> str:
    import tempfile  # noqa: PLC0415
    from pathlib import Path  # noqa: PLC0415

    store.root.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=".probe-", dir=store.root)
    open(descriptor, "wb").close()  # noqa: PTH123 (a descriptor)
    return Path(name).name


def _difference(there: Mapping[str, str], here: Mapping[str, str]) -> str:
    """The first packages in which two tool roots differ."""
    unlike = [
        f"{name} is {there.get(name, 'not there')}, here {here.get(name, 'not there')}"
        for name in sorted({*there, *here})
        if there.get(name) != here.get(name)
    ]
    return "; ".join(unlike[:3]) + (f" and {len(unlike) - 3} more" if len(unlike) > 3 else "")


def open_cluster(settings: EngineSettings, supply: Supply, limits: Limits, say: Say) -> Cluster:
    """Connect, try the store, greet the workers. Raises InfrastructureError before anything long has begun."""
    if settings.depot:
        settings.depot.remove_probe(settings.depot.write_probe())
    connection = connect(settings)
    cluster = Cluster(connection, Shared(supply.store, settings.depot), supply, limits)
    cluster.start(wait=FIRST_WORKER if connection.cluster is not None else 5.0)
    places = cluster.places()
    say(f"cluster {settings.shown}: {len(places)} workers, {sum(one.slots for one in places)} slots")
    return cluster
