# SPDX-License-Identifier: GPL-2.0-or-later
"""Initramfs archives that are the same bytes for the same files: sorted, times pinned, owned by root, renumbered."""

from __future__ import annotations

import os
from pathlib import Path

from kpatch_ci.debian.toolroot import ToolRoot
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.process import run

CPIO_TIMEOUT = 300.0
BLOCK = 512
"""cpio pads to it; the kernel wants a following archive at a multiple of 4."""
_ROOT, _OUT = "/kpci/root", "/kpci/out"


def pack(tools: ToolRoot, root: Path, into: Path) -> None:
    """Write everything below ``root`` to the archive ``into``, uncompressed (newc). Raises InfrastructureError.

    Permissions are those of the files, so whoever makes them sets them; times below ``root`` are set to 0.
    """
    names = sorted(str(p.relative_to(root)) for p in root.rglob("*"))
    for name in names:
        os.utime(root / name, ns=(0, 0), follow_symlinks=False)
    cpio = ["cpio", "--quiet", "--create", "--null", "--format=newc", "--reproducible", "--owner=0:0"]
    argv = tools.argv(
        [*cpio, f"--file={_OUT}/{into.name}"],
        mounts=[(root, _ROOT)],
        write_mounts=[(into.parent, _OUT)],
        cwd=_ROOT,
    )
    done = run(argv, timeout=CPIO_TIMEOUT, stdin="".join(f"{n}\0" for n in names).encode())
    if not done.ok:
        raise InfrastructureError(f"cannot pack {into.name}: {done.explain()}", log=done.output)


def concatenate(parts: list[Path], into: Path) -> None:
    """Join archives: the kernel unpacks one after the other. Each is padded to whole blocks."""
    with into.open("wb") as out:
        for part in parts:
            out.write(whole_blocks(part.read_bytes()))


def whole_blocks(archive: bytes) -> bytes:
    """``archive`` with zeros up to a whole block."""
    return archive + bytes(-len(archive) % BLOCK)


def one_file(name: str, content: bytes) -> bytes:
    """An archive of one regular file, in the format that the kernel reads (Documentation/driver-api/early-userspace/buffer-format.rst)."""
    entries = _entry(name, 0o100444, content) + _entry("TRAILER!!!", 0, b"")
    return whole_blocks(entries)


def _entry(name: str, mode: int, content: bytes) -> bytes:
    # inode, mode, uid, gid, links, time, size, device and special device (major and minor each), length of the name, checksum
    fields = (1, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
    return head + bytes(-len(head) % 4) + content + bytes(-len(content) % 4)
