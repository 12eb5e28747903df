# SPDX-License-Identifier: GPL-2.0-or-later
"""How long intake takes for a large mbox, in seconds of this machine's CPU and as a multiple of what git mailsplit and mailinfo take.

python -m tests.bench.intake [PATCHES]
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from random import Random

from kpatch_ci.series.intake import read_series
from tests.fakes.generated_mails import hunk

FILES = 4
HUNKS = 5
REPEATS = 5


def write_mbox(path: Path, count: int) -> int:
    """An mbox of ``count`` patches as git format-patch makes them; its size in bytes."""
    chance = Random(1)  # noqa: S311 (which lines a patch has)
    path.write_bytes(b"".join(patch(chance, number, count) for number in range(1, count + 1)))
    return path.stat().st_size


def patch(chance: Random, number: int, count: int) -> bytes:
    """One numbered patch of several files."""
    diff = b"".join(
        b"diff --git a/%s b/%s\nindex 1111111..2222222 100644\n--- a/%s\n+++ b/%s\n" % ((name,) * 4)
        + b"".join(hunk(chance, 1 + 100 * place) for place in range(HUNKS))
        for name in (b"drivers/lamp/lamp%d.c" % file for file in range(FILES))
    )
    head = (
        f"From {number:040x} Mon Sep 17 00:00:00 2001\nFrom: Ada Example <ada@lamps.example>\n"
        f"Date: Mon, 5 Jan 2026 10:00:00 +0100\nSubject: [PATCH {number}/{count}] lamp: Change {number}\n"
        f"Message-ID: <{number}@lamps.example>\nIn-Reply-To: <0@lamps.example>\n\n"
    )
    words = "A lamp that is on shall be bright.\n" * 20 + "\nSigned-off-by: Ada Example <ada@lamps.example>\n---\n"
    return f"{head}{words}\n".encode() + diff + b"-- \n2.39.5\n\n"


def measure(mbox: Path, count: int) -> list[tuple[float, float]]:
    """Wall and CPU seconds of intake, the quickest first."""
    found = []
    for _ in range(REPEATS):
        wall, cpu = time.monotonic(), time.process_time()
        patches, account = read_series([mbox])
        found.append((time.monotonic() - wall, time.process_time() - cpu))
        if (len(patches), account.notes) != (count, ()):
            raise SystemExit(f"{len(patches)} of {count} patches: {account.notes}")
    return sorted(found)


def main(count: int) -> None:
    """Make, read, print."""
    with tempfile.TemporaryDirectory(prefix="kpatch-ci-bench-") as scratch:
        mbox = Path(scratch) / "lamps.mbox"
        size = write_mbox(mbox, count)
        found = measure(mbox, count)
    best, worst = found[0], found[-1]
    print(
        f"{count} patches, {size / 1e6:.1f} MB, {REPEATS} times: wall {best[0]:.2f} to {worst[0]:.2f} s, CPU {best[1]:.2f} s"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
