# SPDX-License-Identifier: GPL-2.0-or-later
"""An initramfs whose length the boot seed draws, and the archive that makes it so."""

from __future__ import annotations

from pathlib import Path

from kpatch_ci.guest import cpio
from kpatch_ci.guest.stretch import MOST, NAME, size_of, stretched


def entries(archive: bytes) -> list[tuple[str, int, bytes]]:
    """Name, mode and content of each entry, as the kernel's unpacker reads them: fields of 8 hex digits after the magic."""
    found, at = [], 0
    while at < len(archive):
        if archive[at] == 0:
            at += 1
            continue
        assert archive[at : at + 6] == b"070701"
        fields = [int(archive[at + 6 + 8 * i : at + 14 + 8 * i], 16) for i in range(13)]
        size, length = fields[6], fields[11]
        name = archive[at + 110 : at + 110 + length - 1].decode()
        begin = (at + 110 + length + 3) // 4 * 4
        found.append((name, fields[1], archive[begin : begin + size]))
        at = (begin + size + 3) // 4 * 4
    return found


def test_an_archive_of_one_file_is_read_back() -> None:
    for size in (0, 1, 3, 4, 1000):
        content = bytes(range(256)) * 4
        made = cpio.one_file("some.name", content[:size])
        assert len(made) % cpio.BLOCK == 0
        assert entries(made) == [("some.name", 0o100444, content[:size]), ("TRAILER!!!", 0, b"")]


def test_sizes_are_drawn_by_the_boot_seed_alone_over_the_whole_range() -> None:
    sizes = [size_of(seed) for seed in range(1, 2001)]
    assert sizes == [size_of(seed) for seed in range(1, 2001)]
    assert len(set(sizes)) > 1990
    assert 0 <= min(sizes) < MOST / 500
    assert MOST * 499 / 500 < max(sizes) < MOST
    assert abs(sum(sizes) / len(sizes) / MOST - 0.5) < 0.03


def test_what_was_there_is_still_there_in_front(tmp_path: Path) -> None:
    initrd = tmp_path / "image"
    initrd.write_bytes(cpio.one_file("init", b"#!"))
    one = stretched(initrd, 1, tmp_path).read_bytes()
    names = [(name, len(content)) for name, _, content in entries(one)]
    assert names == [("init", 2), ("TRAILER!!!", 0), (NAME, size_of(1)), ("TRAILER!!!", 0)]
    assert stretched(initrd, 2, tmp_path).read_bytes() != one
    assert stretched(initrd, 1, tmp_path).read_bytes() == one, "a resume needs the same bytes as the boot"
    assert initrd.read_bytes() == cpio.one_file("init", b"#!")
