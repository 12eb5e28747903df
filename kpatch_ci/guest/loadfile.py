# SPDX-License-Identifier: GPL-2.0-or-later
"""dbench's loadfile, shortened. Pure.

Debian's client.txt is 26 MB and starts with five filler files of 1 MiB each that every client writes once: on a device of
realistic latency they are all that a short run would see. They are left out; the rest stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

LINES = 20_000
"""More than a client replays in a run."""


def without_fillers(lines: Iterable[bytes], most: int = LINES) -> Iterator[bytes]:
    """The first ``most`` operations, without those on filler files (told by name, then by their handles until closed)."""
    skipped: set[bytes] = set()
    kept = 0
    for line in lines:
        words = line.split()
        if b"filler.00" in line:
            if words[0] == b"NTCreateX":
                skipped.add(words[4])
            continue
        if len(words) > 1 and words[1] in skipped:
            if words[0] == b"Close":
                skipped.discard(words[1])
            continue
        yield line
        kept += 1
        if kept == most:
            return
