# SPDX-License-Identifier: GPL-2.0-or-later
"""Frames over a pair of byte streams: a JSON header and, where there is one, a payload. Both ends show signs of life.

A frame is two lengths (32 bits each, big endian), the header (packed where it is long), the payload.
Whoever starts the other end looks for MARK first: a login shell may print anything before.
"""

from __future__ import annotations

import contextlib
import json
import struct
import threading
import time
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from kpatch_ci.model.errors import InfrastructureError

MARK = b"\nkpatch-ci frames 1\n"
HEAD = struct.Struct(">II")
LARGEST = 64 * 1024 * 1024
"""Bytes of a header or a payload; more is no frame of ours."""
PACKED = 1 << 31
"""In a header's length: it is packed (zlib)."""
WORTH_PACKING = 1024
"""Bytes: a call has ten times that, half of it names of keys."""
BEAT = 2.0
"""Seconds between two signs of life."""
DEAD = 15.0
"""Seconds of silence after which the other end counts as gone."""
Header = dict[str, Any]


class Cut(Exception):
    """The stream ended, or what it brought is no frame."""


def squeezed(data: bytes) -> tuple[bool, bytes]:
    """A piece of a file as it travels, and whether it is packed: where that makes it a tenth smaller."""
    packed = zlib.compress(data, 1)
    return (True, packed) if len(packed) < 0.9 * len(data) else (False, data)


def unsqueezed(header: Mapping[str, Any], payload: bytes) -> bytes:
    """The piece; ``zlib`` of the header says whether it is packed. Raises InfrastructureError where it is not what that says."""
    try:
        return zlib.decompress(payload) if header.get("zlib") else payload
    except zlib.error as error:
        raise InfrastructureError(str(error)) from error


class Pipe(Protocol):
    """A pair of byte streams. ``read`` and ``write`` block; after ``close`` from another thread both end soon. All raise OSError."""

    def read(self, size: int) -> bytes:
        """At most ``size`` bytes; none at the end."""

    def write(self, data: bytes) -> None:
        """All of it."""

    def close(self) -> None:
        """May be called twice."""


class Frames:
    """Frames over a pipe. ``send`` is safe for concurrent threads, ``receive`` is for one."""

    def __init__(self, pipe: Pipe) -> None:
        self.pipe = pipe
        self.sent = self.received = 0
        """Bytes, both with their lengths."""
        self.heard = time.monotonic()
        self._lock = threading.Lock()
        self._kept = b""

    def send(self, header: Mapping[str, Any], payload: bytes = b"") -> None:
        """Send one frame. Raises Cut, InfrastructureError where it is too large to be one."""
        text = json.dumps(header, separators=(",", ":")).encode()
        if max(len(text), len(payload)) > LARGEST:
            raise InfrastructureError(
                f"{max(len(text), len(payload)) >> 20} MiB at once: {LARGEST >> 20} travel at most"
            )
        size = len(text)
        if size > WORTH_PACKING:
            text = zlib.compress(text, 1)
            size = len(text) | PACKED
        data = HEAD.pack(size, len(payload)) + text + payload
        with self._lock:
            try:
                self.pipe.write(data)
            except OSError as error:
                raise Cut(f"cannot send: {str(error) or type(error).__name__}") from error
            self.sent += len(data)

    def receive(self) -> tuple[Header, bytes] | None:
        """The next frame; None where the stream ended between two. Raises Cut."""
        head = self._exactly(HEAD.size, may_end=True)
        if not head:
            return None
        first, following = HEAD.unpack(head)
        sizes = (first & ~PACKED, following)
        if max(sizes) > LARGEST:
            raise Cut(f"a frame of {max(sizes)} bytes: that is none of ours")
        text, payload = (self._exactly(size) for size in sizes)
        try:
            header = json.loads(zlib.decompress(text) if first & PACKED else text)
        except (ValueError, zlib.error) as error:
            raise Cut("a frame that is no JSON") from error
        if not isinstance(header, dict):
            raise Cut("a frame that is no JSON object")
        return header, payload

    def skip_to_mark(self, most: int = 64 * 1024) -> bytes:
        """Read over what a login shell prints, and return it. Raises Cut, with it, where no mark follows."""
        seen = b""
        while MARK not in seen:
            data = self._read(4096)
            seen += data
            if not data or len(seen) > most:
                raise Cut(seen[-500:].decode(errors="replace").strip())
        before, _, self._kept = seen.partition(MARK)
        return before

    def _exactly(self, size: int, *, may_end: bool = False) -> bytes:
        parts, left = [], size
        while left:
            data = self._read(min(left, 256 * 1024))
            if not data:
                if may_end and left == size:
                    return b""
                raise Cut("the connection ended within a frame")
            parts.append(data)
            left -= len(data)
        return b"".join(parts)

    def _read(self, size: int) -> bytes:
        if self._kept:
            data, self._kept = self._kept[:size], self._kept[size:]
        else:
            try:
                data = self.pipe.read(size)
            except OSError as error:
                raise Cut(f"cannot receive: {str(error) or type(error).__name__}") from error
            self.heard = time.monotonic()
        self.received += len(data)
        return data


class Heart:
    """Sends a sign of life every ``beat`` seconds, and calls ``silent`` once where the other end gave none for ``dead`` seconds."""

    def __init__(self, frames: Frames, silent: Callable[[], None], *, beat: float = BEAT, dead: float = DEAD) -> None:
        self._frames, self._silent, self._beat, self._dead = frames, silent, beat, dead
        self._over = threading.Event()
        for work in (self._send, self._watch):  # two: sending blocks where nobody takes it
            threading.Thread(target=work, daemon=True, name="heart").start()

    def stop(self) -> None:
        """No more of it."""
        self._over.set()

    def _send(self) -> None:
        with contextlib.suppress(Cut):
            while not self._over.wait(self._beat):
                self._frames.send({"op": "beat"})

    def _watch(self) -> None:
        while not self._over.wait(min(self._beat, self._dead / 4)):
            if time.monotonic() - self._frames.heard > self._dead:
                self._over.set()
                self._silent()
