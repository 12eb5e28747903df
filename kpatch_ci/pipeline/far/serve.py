# SPDX-License-Identifier: GPL-2.0-or-later
"""Sets up a server on this machine's cache, says what this machine is, and serves until the connection ends."""

from __future__ import annotations

import contextlib
import logging
import os
import platform
import shutil
import signal
import socket
import sys
import time
from pathlib import Path
from typing import IO, Any

from kpatch_ci import process
from kpatch_ci.debian.toolroot import ToolRoot, check_sandbox, find_toolroot
from kpatch_ci.debian.transport import contents_digest, unpack
from kpatch_ci.kernel.build import default_jobs
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.pipeline.far.frames import Cut, Frames
from kpatch_ci.pipeline.far.server import Server, Task
from kpatch_ci.pipeline.worker import Worker, code_version, holdings
from kpatch_ci.store.artifacts import ArtifactStore
from kpatch_ci.store.cache import use_cache
from kpatch_ci.store.parcels import Incoming

FORGET_CODE = 30 * 86400.0


class Streams:
    """Two unbuffered file objects as a pipe."""

    def __init__(self, source: IO[bytes], sink: IO[bytes]) -> None:
        self._source, self._sink = source, sink

    def read(self, size: int) -> bytes:
        """See Pipe."""
        return self._source.read(size)

    def write(self, data: bytes) -> None:
        """See Pipe."""
        view = memoryview(data)
        while view:
            view = view[self._sink.write(view) :]

    def close(self) -> None:
        """Nobody is there: a read that blocks cannot be ended otherwise."""
        end()


def end() -> None:
    """End every child, and this process."""
    with contextlib.suppress(Exception):
        process.kill_all()
    os._exit(0)


def forget_old_code(cache: Path, *, now: float, after: float = FORGET_CODE) -> None:
    """Remove versions of our code that nobody has started for a month."""
    for place in (cache / "code").glob("*"):
        if now - place.stat().st_mtime > after:
            shutil.rmtree(place, ignore_errors=True)


def hello(cache: Path, suite: str, tools: ToolRoot | None) -> dict[str, Any]:
    """What this machine is."""
    return {
        "op": "hello",
        "code": code_version(),
        "host": socket.gethostname(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "cores": default_jobs(),
        **holdings(cache),
        "cache": str(cache),
        "suite": suite,
        "tools": tools.fingerprint if tools else None,
        "versions": dict(tools.versions) if tools else {},
        "sandbox": _sandbox(tools) if tools else "",
    }


def _sandbox(tools: ToolRoot) -> str:
    try:
        check_sandbox(tools)
    except InfrastructureError as error:
        return str(error)
    return ""


def serve(cache: Path, suite: str, source: IO[bytes], sink: IO[bytes]) -> None:
    """Never returns."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(message)s")
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, lambda *_: end())
    frames = Frames(Streams(source, sink))
    try:
        use_cache(cache)
        forget_old_code(cache, now=time.time())
        tools = find_toolroot(cache, suite)
        frames.send(hello(cache, suite, tools))
        store = ArtifactStore(cache / "store")
        tasks: dict[str, Task] = {
            "tools": lambda _: {"contents": contents_digest(tools.path.resolve()) if tools else None},
            "unpack": lambda header: {"tools": unpack(cache, store, str(header["key"])).fingerprint},
        }
        Server(Worker(cache, tools) if tools else None, Incoming(store), frames, tasks).serve()
    except Cut:
        pass
    except InfrastructureError as error:
        with contextlib.suppress(Cut):
            frames.send({"op": "hello", "problem": error.what})
    end()
