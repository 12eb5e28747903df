# SPDX-License-Identifier: GPL-2.0-or-later
"""Atomic writes: temporary file beside the target, fsync, rename. A reader sees the old or the new, never a part."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kpatch_ci.model.errors import InfrastructureError


@contextmanager
def disk_errors(where: Path) -> Iterator[None]:
    """Turn a full or read-only disk into an InfrastructureError that names the place."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise InfrastructureError(
                f"no space left on the disk that holds {where}",
                hint="free some, or set KPATCH_CI_CACHE to a larger disk; `./kpatch-ci clean` shows what the cache holds",
            ) from error
        if error.errno in (errno.EROFS, errno.EACCES):
            raise InfrastructureError(f"cannot write below {where}: {error.strerror}") from error
        raise


SPARE = 64 * 1024 * 1024
"""Bytes that must be free for a failure to be blamed on anything but the disk."""


def require_space(where: Path) -> None:
    """After something failed: raise InfrastructureError when the disk that holds ``where`` is (nearly) full."""
    there = next(place for place in (where, *where.absolute().parents) if place.exists())
    if shutil.disk_usage(there).free < SPARE:
        with disk_errors(where):
            raise OSError(errno.ENOSPC, "nearly full")


def write_bytes(path: Path, data: bytes) -> None:
    """Write ``data`` to ``path`` atomically; makes the directory. Raises InfrastructureError on a full disk."""
    with disk_errors(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        temporary = Path(name)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            temporary.chmod(0o644)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def write_text(path: Path, text: str) -> None:
    """Write ``text`` (UTF-8) to ``path`` atomically."""
    write_bytes(path, text.encode())
