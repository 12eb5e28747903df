# SPDX-License-Identifier: GPL-2.0-or-later
"""dbench 4.0: clients that replay a file server's load on XFS or ext4. Its figure: throughput in MB/s (1e6 bytes).

dbench looks at its clock once a second and reports what it saw at the last full second before its time limit. A second of
a busy guest costs an emulator many; so dbench runs under a clock lens (qemu/guest/preload/clocklens.c), which makes its
clock ``clock_factor`` times as fast as the guest's. What dbench prints is per second of its clock: the true throughput, the
one reported here, is that times the factor.
"""

from __future__ import annotations

import re

from kpatch_ci.model.workload import Case, Metric
from kpatch_ci.workloads.filesystem import DEFAULT_MIB, FILE_SYSTEMS, MOUNT_POINT, SMALLEST_MIB, filesystem
from kpatch_ci.workloads.null_blk import LATENCY_HELP, null_blk, size_option
from kpatch_ci.workloads.types import TIMEOUT, Kind, Label, Option, ParseError, Step, Workload, last_words, number, text

THROUGHPUT = Metric("throughput", "MB/s", "higher")
BINARY = "/usr/bin/dbench"
LENS = "/lib/kpci/clocklens.so"

_THROUGHPUT = re.compile(
    r"^Throughput (\S+) MB/sec.*?  (\d+) clients  (\d+) procs  max_latency=(\S+) ms\s*$", re.MULTILINE
)
# "failed to create barrier semaphore" is no trouble: dbench says so of every first semaphore, whose id is 0.
_TROUBLE = re.compile(
    r"^(?!Running for |failed to create barrier semaphore)"
    r".*(?:\bfailed\b|\bERROR\b|FAILED|Failed|expected to write|Badly formed|Unknown operation|^dbench: |No space left).*$",
    re.MULTILINE,
)

OPTIONS = (
    Option("fs", Kind.CHOICE, "file system on the device", "xfs", FILE_SYSTEMS, label=Label.ALWAYS),
    Option("clients", Kind.INTEGER, "client processes", 4, maximum=1000, label=Label.ALWAYS),
    Option("time_s", Kind.INTEGER, "dbench -t, seconds of its own clock; the last one is not measured", 4, minimum=2),
    Option(
        "clock_factor",
        Kind.INTEGER,
        "seconds of dbench's clock in one of the guest's; in real time always 1: no lens",
        20,
        maximum=1000,
    ),
    Option("sync", Kind.CHOICE, "how files are opened: O_SYNC or as they are", "open", ("open", "none")),
    Option("loadfile", Kind.PATH, "what the clients replay", "/usr/share/dbench/nofill.txt"),
    size_option(default=DEFAULT_MIB, minimum=SMALLEST_MIB),
    Option("latency_us", Kind.INTEGER, LATENCY_HELP, 1000, minimum=0, maximum=1_000_000),
    TIMEOUT,
)


def _steps(case: Case) -> tuple[Step, ...]:
    factor = number(case, "clock_factor")
    lens = ("/bin/busybox", "env", f"LD_PRELOAD={LENS}", f"KPCI_CLOCK_FACTOR={factor}") if factor > 1 else ()
    sync = ("-s",) if text(case, "sync") == "open" else ()
    dbench = (
        BINARY,
        "-t",
        text(case, "time_s"),
        "-D",
        MOUNT_POINT,
        "-c",
        text(case, "loadfile"),
        *sync,
        text(case, "clients"),
    )
    return (
        *null_blk(number(case, "size_mib"), number(case, "latency_us")),
        *filesystem(text(case, "fs")),
        Step("run", (*lens, *dbench)),
    )


def parse(output: str, case: Case) -> dict[str, float]:
    """MB/s of the guest's clock from dbench's last line. A failed child is an error even where a throughput follows, and so is 0."""
    trouble = _TROUBLE.search(output)
    if trouble:
        raise ParseError(f"dbench says: {trouble[0].strip()}")
    found = _THROUGHPUT.search(output)
    if not found:
        raise ParseError(f"dbench printed no line `Throughput`{last_words(output)}")
    if int(found[2]) != number(case, "clients"):
        raise ParseError(f"dbench ran {found[2]} clients, not {number(case, 'clients')}")
    try:
        rate = float(found[1])
    except ValueError:
        raise ParseError(f"dbench's throughput is {found[1]!r}") from None
    if not 0 < rate < float("inf"):
        raise ParseError(f"dbench measured {found[1]} MB/sec: no full second passed between warm-up and time limit")
    return {THROUGHPUT.name: rate * number(case, "clock_factor")}


DBENCH = Workload("dbench", (THROUGHPUT,), OPTIONS, _steps, parse, real_time={"clock_factor": 1})
"""In real time a second costs a second: under the lens dbench would have a fifth of one, in which a busy emulator gets nothing done."""
