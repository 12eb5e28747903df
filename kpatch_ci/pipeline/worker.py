# SPDX-License-Identifier: GPL-2.0-or-later
"""Does calls with a cache and a tool root of its own: what stands at the other end of a place.

It holds no opinion: what it is called with is what it does, with the code of its own version. Whoever calls it has compared
versions and tool roots before.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import threading
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import kpatch_ci
from kpatch_ci.debian.toolroot import ToolRoot
from kpatch_ci.guest.guests import Guests
from kpatch_ci.kernel import build as kernel_build
from kpatch_ci.kernel.sent import SOURCE, has_source
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.model.status import Status
from kpatch_ci.pipeline.building import Building
from kpatch_ci.pipeline.calls import (
    CACHE,
    Answer,
    BootAnswer,
    BootCall,
    BuildCall,
    Call,
    Limits,
    ReplicateAnswer,
    ReplicateCall,
    placed,
    refs,
    stripped_boot,
    text_of,
)
from kpatch_ci.pipeline.places import with_memory
from kpatch_ci.pipeline.turns import Turns
from kpatch_ci.store.artifacts import ArtifactStore
from kpatch_ci.store.atomic import require_space
from kpatch_ci.store.keyed import Locks
from kpatch_ci.store.parcels import Parcel


@lru_cache(maxsize=1)
def code_version() -> str:
    """Digest of this package's source: two ends of one version do the same."""
    root = Path(kpatch_ci.__file__).parent
    state = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        state.update(f"{path.relative_to(root)}\0".encode())
        state.update(path.read_bytes())
    return state.hexdigest()


def holdings(cache: Path) -> dict[str, Any]:
    """What of builds is there, and the bytes that are free."""
    return {
        "free": shutil.disk_usage(cache).free,
        "sources": sorted(place.name for place in (cache / "src").glob("[0-9a-f]*") if place.is_dir()),
        "objects": sorted(place.parent.name for place in (cache / "out").glob("*/vmlinux")),
    }


class Worker:
    """Safe for concurrent threads. ``cache`` holds its store, its tool root and its guests' working directories."""

    def __init__(self, cache: Path, tools: ToolRoot) -> None:
        self.cache, self.tools = cache, tools
        self.store = ArtifactStore(cache / "store")
        self.turns = Turns(cache / "work")
        self._building = Building(cache, self.store, tools, self.turns)
        self._guests: dict[Limits, Guests] = {}
        self._lock = threading.Lock()
        self._booting = Locks()
        self._booted: set[str] = set()

    def missing(self, call: Call) -> list[tuple[str, str]]:
        """Of the artifacts that a call needs, those that are not in the store; of what is unpacked or built already nothing is missing."""
        if isinstance(call, BuildCall) and self.store.get(kernel_build.KIND, call.key, verify=False):
            return []
        missing = [ref for ref in refs(call) if self.store.get(*ref, verify=False) is None]
        if isinstance(call, BuildCall) and has_source(self.cache, call.tree.tree_id):
            missing = [ref for ref in missing if ref[0] != SOURCE]
        return missing

    def is_used_up(self, parcel: Parcel) -> bool:
        """Whether an artifact is not needed any more: what is made of it is here."""
        return parcel.kind == SOURCE and has_source(self.cache, str(parcel.manifest["meta"].get("tree_id")))

    def do(self, call: Call) -> Answer:
        """Do a call. Raises InfrastructureError where an artifact is not there, or this machine fails."""
        lacking = self.missing(call)
        if lacking:
            raise InfrastructureError(f"artifact {'/'.join(lacking[0])} is not in {self.store.root}")
        with tempfile.TemporaryDirectory(prefix="kpatch-ci-logs-") as name:
            logs = Path(name)
            if isinstance(call, BuildCall):
                return self._building.do(call, logs)
            guest = placed(call, self.store)
            with self.turns.one():
                return self._boot(guest, logs) if isinstance(guest, BootCall) else self._replicate(guest, logs)

    def _boot(self, call: BootCall, logs: Path) -> BootAnswer:
        boot = self.guests(call.limits).boot(call.build, call.image, call.machine, call.boot_seed, logs)
        self._blame(boot.status)
        boot = replace(boot, reproduce=boot.reproduce.replace(str(self.cache), CACHE))
        boot = with_memory(boot, call.machine) if call.memory else boot
        return BootAnswer(stripped_boot(boot), text_of(boot.console))

    def _replicate(self, call: ReplicateCall, logs: Path) -> ReplicateAnswer:
        self._booted_once(call, logs)
        run = self.guests(call.limits).replicate(
            call.boot, call.build, call.image, call.machine, call.job, logs=logs, name="run"
        )
        self._blame(run.status)
        return ReplicateAnswer(replace(run, console=None), text_of(run.console))

    def _booted_once(self, call: ReplicateCall, logs: Path) -> None:
        """Where several replicates of a boot that this machine has not made come at once, the first of them boots."""
        if call.machine.real_time:
            return
        with self._booting.of(call.boot.key):
            if call.boot.key not in self._booted:
                self.guests(call.limits).boot(call.build, call.image, call.machine, call.boot.boot_seed, logs)
                self._booted.add(call.boot.key)

    def _blame(self, status: Status) -> None:
        """A guest whose files find no room does not end well, and no kernel is to blame. Raises InfrastructureError."""
        if status is not Status.PASSED:
            require_space(self.cache)

    def guests(self, limits: Limits) -> Guests:
        """Guests with these time limits; what one of them has verified it does not hash again."""
        with self._lock:
            if limits not in self._guests:
                self._guests[limits] = Guests(
                    self.cache,
                    self.store,
                    self.tools,
                    boot_timeout=limits.boot,
                    replicate_timeout=limits.replicate,
                    silence_timeout=limits.silence,
                )
            return self._guests[limits]
