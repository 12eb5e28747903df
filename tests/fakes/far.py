# SPDX-License-Identifier: GPL-2.0-or-later
"""Both ends of a connection in one process: a socket pair, a worker whose guests are made up, and the artifacts of a call."""

from __future__ import annotations

import contextlib
import random
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from kpatch_ci import process
from kpatch_ci.debian.toolroot import ToolRoot
from kpatch_ci.guest.guests import Guests, RawRun
from kpatch_ci.guest.image import GuestImage
from kpatch_ci.guest.machine import load_machine
from kpatch_ci.model.boot import BootResult
from kpatch_ci.model.build import BuildResult
from kpatch_ci.model.machine import Machine
from kpatch_ci.model.status import Status
from kpatch_ci.pipeline.calls import BootCall, Limits, ReplicateCall, stripped_boot, stripped_build, stripped_image
from kpatch_ci.pipeline.far.frames import Frames
from kpatch_ci.pipeline.far.link import Link
from kpatch_ci.pipeline.far.server import Server
from kpatch_ci.pipeline.worker import Worker
from kpatch_ci.store.artifacts import ArtifactStore
from kpatch_ci.store.parcels import Incoming

LIMITS = Limits(60.0, 120.0, 30.0)
MACHINE = load_machine(Path(__file__).resolve().parents[2] / "qemu" / "arm64-6+2.yaml")
KERNEL = random.Random(1).randbytes(300_000).hex()  # noqa: S311
"""It cannot be packed much, as a real one."""
BUILD_KEY, IMAGE_KEY = "b" * 64, "1" * 64
TOOLS = ToolRoot(Path("/none"), "trixie", "f" * 64, {"qemu-system-arm": "1:10.0.13"})


class SocketPipe:
    """See Pipe. ``hurt`` may change what is written."""

    def __init__(self, end: socket.socket) -> None:
        self.end = end
        self.hurt: Callable[[bytes], bytes] = lambda data: data

    def read(self, size: int) -> bytes:
        return self.end.recv(size)

    def write(self, data: bytes) -> None:
        self.end.sendall(self.hurt(data))

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.end.shutdown(socket.SHUT_RDWR)
        self.end.close()


@dataclass
class MadeUpGuests:
    """Boots and replicates at once, or when ``gate`` is opened."""

    said: list[str] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)
    fails: Exception | None = None
    text: str = ""

    def boot(self, build: BuildResult, image: GuestImage, machine: Machine, boot_seed: int, logs: Path) -> BootResult:
        assert build.artifact is not None
        self.said.append((build.artifact / "image").read_text())
        console = logs / "console"
        console.parent.mkdir(parents=True, exist_ok=True)
        console.write_text("booted\n")
        return boot(boot_seed, console=console)

    def replicate(self, boot: BootResult, *_: Any, logs: Path, name: str) -> RawRun:
        self.said.append(name)
        if self.fails:
            raise self.fails
        self.gate.wait(20)
        return RawRun(Status.PASSED, f"seed {boot.boot_seed}\n{self.text}", 0.5)


class MadeUpWorker(Worker):
    """A worker without QEMU."""

    def __init__(self, cache: Path, tools: ToolRoot = TOOLS) -> None:
        super().__init__(cache, tools)
        self.made_up = MadeUpGuests()
        self.made_up.gate.set()

    def guests(self, limits: Limits) -> Guests:
        assert limits == LIMITS
        return cast("Guests", self.made_up)


def boot(seed: int, console: Path | None = None) -> BootResult:
    return BootResult(
        Status.PASSED,
        "baseline",
        "arm64",
        MACHINE.name,
        seed,
        "c" * 64,
        1.0,
        False,
        said_digest="5" * 64,
        console=console,
        reproduce="qemu /there/x",
    )


def here(root: Path) -> ArtifactStore:
    """Our store, with the kernel and the guest image that calls name."""
    store = ArtifactStore(root / "store")

    def kernel(place: Path) -> dict[str, Any]:
        (place / "image").write_text(KERNEL)
        (place / "modules").mkdir()
        (place / "modules" / "x.ko").write_bytes(bytes(range(256)) + random.Random(2).randbytes(500_000))  # noqa: S311
        (place / "empty").write_bytes(b"")
        return {"modules": ["x.ko"]}

    def image(place: Path) -> dict[str, Any]:
        (place / "image.cpio").write_text("guest")
        (place / "qemuserial.so").write_text("so")
        (place / "qemuserial.so").chmod(0o755)
        return {}

    store.put("build", BUILD_KEY, kernel)
    store.put("guest-image", IMAGE_KEY, image)
    return store


BUILD = stripped_build(BuildResult(Status.PASSED, "baseline", "arm64", "t" * 40, BUILD_KEY, 1.0, 1, False))
IMAGE = stripped_image(GuestImage("arm64", Path("/x"), "d" * 64, {}, IMAGE_KEY, Path("/y"), "p" * 64))


def boot_call(seed: int = 1) -> BootCall:
    return BootCall(BUILD, IMAGE, MACHINE, seed, LIMITS)


def replicate_call(seed: int = 1, name: str = "n") -> ReplicateCall:
    return ReplicateCall(stripped_boot(boot(seed)), BUILD, IMAGE, MACHINE, "run\tx\n", name, LIMITS)


@dataclass
class Ends:
    """A link, and the server at its other end."""

    link: Link
    ours: SocketPipe
    theirs: SocketPipe
    worker: MadeUpWorker
    serving: threading.Thread


@contextlib.contextmanager
def connected(cache: Path, *, dead: float = 10.0, tools: ToolRoot = TOOLS) -> Iterator[Ends]:
    """Both ends, at work."""
    ours, theirs = (SocketPipe(end) for end in socket.socketpair())
    worker = MadeUpWorker(cache, tools)
    server = Server(worker, Incoming(worker.store), Frames(theirs), {})
    serving = threading.Thread(target=lambda: server.serve(beat=0.05, dead=dead))
    serving.start()
    link = Link("far", Frames(ours), beat=0.05, dead=dead)
    try:
        yield Ends(link, ours, theirs, worker, serving)
    finally:
        worker.made_up.gate.set()
        link.close()
        theirs.close()
        serving.join(10)
        process.go_on()
