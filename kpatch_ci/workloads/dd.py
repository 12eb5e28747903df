# SPDX-License-Identifier: GPL-2.0-or-later
"""dd (coreutils): direct sequential reads or writes of a raw null_blk device, or of a file on it.

Its figure: throughput in MB/s (1e6 bytes). A file that is written is new: each write extends it, so that with ``dsync``
each has to wait for the file system's log.
"""

from __future__ import annotations

import re

from kpatch_ci.model.workload import Case, Metric, Scalar
from kpatch_ci.workloads.filesystem import DEFAULT_MIB, FILE_SYSTEMS, MOUNT_POINT, SMALLEST_MIB, filesystem
from kpatch_ci.workloads.null_blk import DEVICE, LATENCY_HELP, SECTOR, null_blk, size_option
from kpatch_ci.workloads.sizes import MIB, size_bytes
from kpatch_ci.workloads.types import (
    TIMEOUT,
    Kind,
    Label,
    Option,
    ParseError,
    Step,
    Values,
    Workload,
    last_words,
    number,
    text,
)

THROUGHPUT = Metric("throughput", "MB/s", "higher")
FILE = f"{MOUNT_POINT}/file"
BINARY = "/usr/bin/dd"
"""By its path: busybox's sh would run its own applet before it looks into PATH."""

_FLAGS = ("direct", "dsync", "sync")
_TARGET_BYTES, _FEWEST, _MOST = 64 * MIB, 16, 1024
_ROOM_MIB = 128
"""For what a file system keeps of its device, its log above all: XFS 86 MiB of 320."""
_COPIED = re.compile(r"^(\d+) bytes?(?: \([^)]*\))? copied, ([0-9.e+-]+) s, ", re.MULTILINE)
_COMPLAINT = re.compile(r"^(?:/usr/bin/)?dd: .*$", re.MULTILINE)
_RECORDS = re.compile(r"^(\d+)\+(\d+) records out$", re.MULTILINE)

OPTIONS = (
    Option("rw", Kind.CHOICE, "read the device or write it", "read", ("read", "write"), label=Label.ALWAYS),
    Option("bs", Kind.SIZE, "bytes a request, a multiple of 512", "1M", label=Label.ALWAYS),
    Option(
        "fs", Kind.CHOICE, "a file on this file system, not the raw device", choices=FILE_SYSTEMS, label=Label.GIVEN
    ),
    Option("iflag", Kind.FLAGS, "how to read (rw=read); direct unless given", choices=_FLAGS, label=Label.GIVEN),
    Option("oflag", Kind.FLAGS, "how to write (rw=write); direct unless given", choices=_FLAGS, label=Label.GIVEN),
    Option("latency_us", Kind.INTEGER, LATENCY_HELP, 5000, minimum=0, maximum=1_000_000, label=Label.GIVEN),
    Option("count", Kind.INTEGER, "requests; unless given 64 MiB of them, but 16 at least and 1024 at most"),
    size_option(default=None),
    TIMEOUT,
)


def _complete(values: Values) -> dict[str, Scalar]:
    """count and size_mib from the block size, unless given."""
    block = size_bytes(str(values["bs"]))
    if block % SECTOR:
        raise ValueError(f"bs={values['bs']} is no multiple of {SECTOR} bytes, as direct I/O needs")
    stray = "oflag" if values["rw"] == "read" else "iflag"
    if stray in values:
        raise ValueError(f"{stray} has no place in rw={values['rw']}; give {'iflag' if stray == 'oflag' else 'oflag'}")
    count = int(values.get("count", min(max(_TARGET_BYTES // block, _FEWEST), _MOST)))
    needed = -(-count * block // MIB) + (_ROOM_MIB if "fs" in values else 0)
    size = int(values.get("size_mib", max(needed, DEFAULT_MIB) if "fs" in values else needed))
    if size < needed:
        raise ValueError(f"{count} requests of {values['bs']} need size_mib={needed} or more, not {size}")
    if "fs" in values and size < SMALLEST_MIB:
        raise ValueError(f"a file system needs size_mib={SMALLEST_MIB} or more, not {size}")
    return {"count": count, "size_mib": size}


def _steps(case: Case) -> tuple[Step, ...]:
    settings = dict(case.settings)
    target = FILE if "fs" in settings else DEVICE
    read = settings["rw"] == "read"
    flags = str(settings.get("iflag" if read else "oflag", "direct")).replace("+", ",")
    write = _dd(case, "/dev/zero", target, "oflag=direct" if read else f"oflag={flags}")
    prepared = filesystem(str(settings["fs"])) if "fs" in settings else ()
    if read and prepared:
        prepared = (*prepared, Step("prep", write))
    return (
        *null_blk(number(case, "size_mib"), number(case, "latency_us")),
        *prepared,
        Step("run", _dd(case, target, "/dev/null", f"iflag={flags}") if read else write),
    )


def _dd(case: Case, source: str, target: str, flags: str) -> tuple[str, ...]:
    count = f"count={number(case, 'count')}"
    return (BINARY, f"if={source}", f"of={target}", f"bs={text(case, 'bs')}", count, flags)


def parse(output: str, case: Case) -> dict[str, float]:
    """Bytes / seconds / 1e6 from dd's last line, at its full precision (the rate that it prints itself is rounded)."""
    matches = list(_COPIED.finditer(output))
    complaint = _COMPLAINT.search(output)
    if complaint:
        raise ParseError(complaint[0])
    if not matches:
        raise ParseError(f"dd printed no line with bytes and seconds{last_words(output)}")
    copied, seconds = int(matches[-1][1]), _seconds(matches[-1][2])
    asked = number(case, "count") * size_bytes(text(case, "bs"))
    if copied != asked:
        raise ParseError(f"dd copied {copied} of {asked} bytes")
    records = _RECORDS.search(output)
    if records and int(records[2]):
        raise ParseError(f"dd wrote {records[2]} partial records")
    return {THROUGHPUT.name: copied / seconds / 1e6}


def _seconds(word: str) -> float:
    try:
        seconds = float(word)
    except ValueError:
        seconds = 0.0
    if seconds <= 0:
        raise ParseError(f"dd took {word} s, which gives no rate")
    return seconds


DD = Workload("dd", (THROUGHPUT,), OPTIONS, _steps, parse, _complete)
