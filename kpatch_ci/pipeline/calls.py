# SPDX-License-Identifier: GPL-2.0-or-later
"""What a place is asked to do, and what it answers: plain values that survive a trip through JSON.

Paths do not travel. A call names artifacts by kind and digest (``refs``); whoever does it has them in a store of its own, and
puts that store's paths in (``placed``). Logs travel as text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import cattrs.preconf.json

from kpatch_ci.guest import image as guest_image
from kpatch_ci.guest.guests import RawRun
from kpatch_ci.guest.image import GuestImage
from kpatch_ci.kernel import build as kernel_build
from kpatch_ci.kernel.kconfig import Requested
from kpatch_ci.kernel.sent import CHANGES, SOURCE, UNPACK_TIMEOUT, changes_key, source_key
from kpatch_ci.model.boot import BootResult
from kpatch_ci.model.build import BuildResult, Tree
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.model.machine import Machine
from kpatch_ci.store.artifacts import ArtifactStore

NOWHERE = Path("/nonexistent")
"""A path that was left behind."""
CACHE = "@cache@"
"""The cache's directory, in a command that a person may type at either end."""
MAKES = 4
"""Of a build: the configuration, the baseline's objects, the kernel, our modules."""
Ref = tuple[str, str]
"""Kind and key of an artifact."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Wall seconds, as Guests has them."""

    boot: float
    replicate: float
    silence: float


@dataclass(frozen=True, slots=True)
class BootCall:
    """Boot a kernel under a seed, and keep the snapshot where that is done."""

    build: BuildResult
    image: GuestImage
    machine: Machine
    boot_seed: int
    limits: Limits
    memory: bool = False
    """Whether the guest's memory is to be hashed."""


@dataclass(frozen=True, slots=True)
class ReplicateCall:
    """Resume a boot with a job."""

    boot: BootResult
    build: BuildResult
    image: GuestImage
    machine: Machine
    job: str
    name: str
    """Of its log."""
    limits: Limits


@dataclass(frozen=True, slots=True)
class Module:
    """A module of ours, to be built against the kernel: names and texts of its sources."""

    name: str
    files: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class BuildCall:
    """Build a kernel: see BuildRequest. Its source, and what a patch changes of it, are artifacts."""

    key: str
    """Of the build, as whoever asks computes it: it must be the same there."""
    arm: str
    arch: str
    tree: Tree
    tree_id: str
    config: tuple[Requested, ...]
    modules: tuple[Module, ...]
    jobs: int
    """CPUs that builds and guests share there."""
    timeout: float
    """Wall seconds, of each make."""


@dataclass(frozen=True, slots=True)
class BootAnswer:
    """``console`` is what the guest wrote there, empty where it wrote nothing."""

    boot: BootResult
    console: str


@dataclass(frozen=True, slots=True)
class ReplicateAnswer:
    """``console`` is the log of a guest that did not end well."""

    run: RawRun
    console: str


@dataclass(frozen=True, slots=True)
class BuildAnswer:
    """A kernel that was built is an artifact there, to be fetched. ``log`` is what make said of one that was not."""

    build: BuildResult
    log: str


GuestCall = BootCall | ReplicateCall
Call = GuestCall | BuildCall
Answer = BootAnswer | ReplicateAnswer | BuildAnswer
CALLS: dict[str, type[Call]] = {"boot": BootCall, "replicate": ReplicateCall, "build": BuildCall}
ANSWERS: dict[str, type[Answer]] = {"boot": BootAnswer, "replicate": ReplicateAnswer, "build": BuildAnswer}

T = TypeVar("T")

_json = cattrs.preconf.json.make_converter(forbid_extra_keys=True)
_json.register_unstructure_hook(Path, str)
_json.register_structure_hook(Path, lambda value, _: Path(value))


def kind_of(call: Call) -> str:
    """Its name among CALLS."""
    return next(name for name, kind in CALLS.items() if isinstance(call, kind))


def refs(call: Call) -> tuple[Ref, ...]:
    """Artifacts that must be in the store of whoever does it."""
    if isinstance(call, BuildCall):
        source = (SOURCE, source_key(call.tree.tree_id))
        patched = call.tree_id != call.tree.tree_id
        return (source, (CHANGES, changes_key(call.tree.tree_id, call.tree_id))) if patched else (source,)
    return (kernel_build.KIND, call.build.key), (guest_image.KIND, call.image.key)


def build_limit(call: BuildCall) -> float:
    """Wall seconds that a build may take where it is done: unpacking the source, and several makes."""
    return UNPACK_TIMEOUT + MAKES * call.timeout


def placed(call: GuestCall, store: ArtifactStore) -> GuestCall:
    """The call with the paths of ``store``."""
    build = replace(call.build, artifact=store.place(kernel_build.KIND, call.build.key))
    folder = store.place(guest_image.KIND, call.image.key)
    image = replace(call.image, path=folder / guest_image.IMAGE, preload=folder / guest_image.SERIALISER)
    return replace(call, build=build, image=image)


def stripped_build(build: BuildResult) -> BuildResult:
    """What a guest is a function of, without what explains the build and without paths."""
    return replace(build, artifact=None, log=None, warnings=(), compiled={}, differing=None, log_tail="", reproduce="")


def stripped_image(image: GuestImage) -> GuestImage:
    """Without paths."""
    return replace(image, path=NOWHERE, preload=NOWHERE)


def stripped_boot(boot: BootResult) -> BootResult:
    """Without paths."""
    return replace(boot, snapshot=None, console=None)


def encode(value: Call | Answer) -> dict[str, Any]:
    """JSON of a call or an answer. Its kind is among CALLS or ANSWERS, and must be told beside it."""
    found: dict[str, Any] = _json.unstructure(value)
    return found


def decode(kind: type[T], value: object) -> T:
    """A call or an answer. Raises InfrastructureError where it has not that form: what is at the other end is not of our version."""
    try:
        return _json.structure(value, kind)
    except Exception as error:  # cattrs' groups hold any
        what = "; ".join(cattrs.transform_error(error)[:3])
        raise InfrastructureError(f"a {kind.__name__} that cannot be read: {what}") from error


def text_of(path: Path | None, read: Callable[[Path], str] = lambda p: p.read_text(errors="replace")) -> str:
    """A log's text; empty where there is none."""
    return read(path) if path and path.exists() else ""


def kept_log(text: str, path: Path) -> Path | None:
    """Write a log that came from elsewhere; None where it is empty."""
    if not text:
        return None
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path
