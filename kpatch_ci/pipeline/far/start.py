# SPDX-License-Identifier: GPL-2.0-or-later
"""The first thing that runs at the other end. It is sent as text, so it uses nothing but Python's standard library.

It looks whether it has the code that is wanted, byte for byte, asks for it where not, and hands over to that.
Arguments: the working directory, the code's digest, the tool root's suite.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import struct
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import IO, Any

HEAD = struct.Struct(">II")
OLDEST = (3, 11)


def digest_of(root: Path) -> str:
    """Of names and contents of all Python files below a directory: see far.bundle."""
    files = {path.relative_to(root).as_posix(): path for path in root.rglob("*.py")}
    state = hashlib.sha256()
    for name in sorted(files):
        data = files[name].read_bytes()
        state.update(f"{name}\0{len(data)}\0".encode())
        state.update(data)
    return state.hexdigest()


def put(data: bytes, place: Path) -> None:
    """Unpack beside the place, and rename: whole or absent."""
    place.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=".new-", dir=place.parent))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        archive.extractall(work)
    shutil.rmtree(place, ignore_errors=True)
    try:
        work.replace(place)
    except OSError:  # another process was faster
        shutil.rmtree(work, ignore_errors=True)


def send(sink: IO[bytes], header: dict[str, Any]) -> None:
    """One frame."""
    text = json.dumps(header).encode()
    sink.write(HEAD.pack(len(text), 0) + text)


def exactly(source: IO[bytes], size: int) -> bytes:
    """So many bytes; nobody is there when they do not come."""
    parts = []
    while size:
        parts.append(source.read(min(size, 1 << 20)))
        if not parts[-1]:
            sys.exit(1)
        size -= len(parts[-1])
    return b"".join(parts)


def fetch(source: IO[bytes], sink: IO[bytes], place: Path, wanted: str) -> None:
    """Take the code, and check it."""
    sizes = HEAD.unpack(exactly(source, HEAD.size))
    exactly(source, sizes[0])
    data = exactly(source, sizes[1])
    try:
        put(data, place)
        problem = "" if digest_of(place) == wanted else "the code that arrived is not the code that was sent"
    except OSError as error:
        problem = f"cannot write below {place.parent}: {error.strerror}"
    send(sink, {"problem": problem})
    if problem:
        sys.exit(1)


def main() -> None:
    """Get the code and hand over."""
    work, wanted, suite = sys.argv[1:4]
    source, sink = os.fdopen(os.dup(0), "rb", buffering=0), os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # whatever prints must not end up among the frames
    sink.write(b"\nkpatch-ci frames 1\n")
    cache = Path(work).expanduser().absolute()
    place = cache / "code" / wanted[:24]
    fits = sys.version_info[:2] >= OLDEST
    there = fits and digest_of(place) == wanted
    send(sink, {"python": list(sys.version_info[:3]), "code": there})
    if not fits:
        sys.exit(1)
    if not there:
        fetch(source, sink, place, wanted)
    os.utime(place)
    sys.path.insert(0, str(place))
    from kpatch_ci.pipeline.far.serve import serve  # noqa: PLC0415 (it came just now)

    serve(cache, suite, source, sink)


if __name__ == "__main__":
    main()
