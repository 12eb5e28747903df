# SPDX-License-Identifier: GPL-2.0-or-later
"""Outputs of the tools, good and bad, to figures or reasons."""

from __future__ import annotations

import pytest

from kpatch_ci.workloads import WORKLOADS, ParseError, make_case

DD_OK = "64+0 records in\n64+0 records out\n67108864 bytes (67 MB, 64 MiB) copied, 0.345 s, 195 MB/s\n"
HB_HEAD = (
    "Running in process mode with 8 groups using 40 file descriptors each (== 320 tasks)\n"
    "Each sender will pass 50 messages of 100 bytes\n"
)
DB_OK = """dbench version 4.00 - Copyright Andrew Tridgell 1999-2004

Running for 2 seconds with load '/usr/share/dbench/client.txt' and minimum warmup 0 secs
4 of 4 processes prepared for launch   0 sec
releasing clients
   4       310   123.40 MB/sec  execute   1 sec  latency 1.203 ms
   4  cleanup   2 sec

 Operation      Count    AvgLat    MaxLat
 ----------------------------------------
 NTCreateX      10561     0.042     8.283

Throughput 123.4 MB/sec  4 clients  4 procs  max_latency=1.203 ms
"""


def parse(kind: str, output: str, **raw: object) -> dict[str, float]:
    return WORKLOADS[kind].parse(output, make_case(kind, raw))


def test_dd_gives_bytes_over_seconds_at_full_precision() -> None:
    assert parse("dd", DD_OK) == {"throughput": 67108864 / 0.345 / 1e6}
    tiny = "1+0 records in\n1+0 records out\n512 bytes copied, 3.2519e-05 s, 15.7 MB/s\n"
    assert parse("dd", tiny, bs=512, count=1) == {"throughput": pytest.approx(15.7446416)}


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("", "no line with bytes and seconds"),
        ("dd: failed to open '/dev/nullb0': No such file or directory\n", "dd: failed to open '/dev/nullb0'"),
        ("/usr/bin/dd: error reading '/dev/nullb0': Input/output error\n" + DD_OK, "Input/output error"),
        (DD_OK.replace("67108864", "1221"), "copied 1221 of 67108864 bytes"),
        (DD_OK.replace("64+0 records out", "60+9 records out"), "9 partial records"),
        (DD_OK.replace("0.345", "0"), "took 0 s"),
        (DD_OK.replace("0.345", "0.3.4"), r"took 0\.3\.4 s"),
        (DD_OK.split("copied", maxsplit=1)[0], "no line"),
    ],
)
def test_dd_that_did_not_copy_everything_is_an_error(output: str, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        parse("dd", output)


def test_hackbench_gives_its_time() -> None:
    assert parse("hackbench", HB_HEAD + "Time: 0.207\n") == {"time": 0.207}
    threaded = HB_HEAD.replace("process", "threaded") + "Time: 12.040\n"
    assert parse("hackbench", threaded, mode="thread") == {"time": 12.04}


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("", "no line `Time: `"),
        (HB_HEAD, "no line `Time: `"),
        (HB_HEAD + "fork() (error: Resource temporarily unavailable)\n", "hackbench says: fork.. .error: Resource"),
        (HB_HEAD + "Creating fdpair (error: Too many open files)\nTime: 0.207\n", "Creating fdpair"),
        (HB_HEAD + "SERVER: read (error: Bad address)\n", "SERVER: read"),
        (HB_HEAD + "Time: 0.000\n", "less than the 1 ms"),
        (HB_HEAD + "Time: 0.2", "no line"),
        (HB_HEAD + "Time: 0.207\nTime: 0.207\n", "2 lines"),
        (HB_HEAD.replace("8 groups", "4 groups") + "Time: 0.207\n", "ran 4 groups in process mode, not groups=8"),
        (HB_HEAD.replace("process", "threaded") + "Time: 0.207\n", "threaded mode"),
    ],
)
def test_hackbench_in_trouble_is_an_error(output: str, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        parse("hackbench", output)


def test_dbench_gives_its_throughput_per_second_of_the_guest_s_clock() -> None:
    assert parse("dbench", DB_OK, clock_factor=1) == {"throughput": 123.4}
    assert parse("dbench", DB_OK, clock_factor=20) == {"throughput": 2468.0}
    large = DB_OK.replace("Throughput 123.4", "Throughput 1.234e+03")
    assert parse("dbench", large, clock_factor=1) == {"throughput": 1234.0}


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("", "no line `Throughput`"),
        (DB_OK.split("Throughput", maxsplit=1)[0], "no line `Throughput`"),
        (DB_OK.replace("Throughput 123.4", "Throughput 0"), "no full second passed"),
        (DB_OK.replace("Throughput 123.4", "Throughput nan"), "measured nan"),
        (DB_OK.replace("Throughput 123.4", "Throughput x"), "'x'"),
        (DB_OK.replace("4 clients", "3 clients"), "ran 3 clients, not 4"),
        ("[311] write failed on handle 9939 (No space left on device)\n" + DB_OK, "write failed on handle 9939"),
        ("[311] unlink ./clients/client0/x failed (Read-only file system) - expected NT_STATUS_OK\n", "unlink"),
        ("(311) ERROR: handle 9939 was not found\n" + DB_OK, "handle 9939 was not found"),
        ("ERROR: child 3 failed at line 311\n" + DB_OK, "child 3 failed at line 311"),
        (DB_OK + "Child failed with status 1\n", "Child failed with status 1"),
        ("FAILED TO START 4 CLIENTS (started 3)\n" + DB_OK, "FAILED TO START 4 CLIENTS"),
        ("dbench: error opening '/nope': No such file or directory\n", "error opening"),
    ],
)
def test_dbench_with_a_failed_child_is_an_error_and_never_a_zero(output: str, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        parse("dbench", output)


def test_a_load_file_may_be_called_failed() -> None:
    assert parse("dbench", DB_OK.replace("/usr/share/dbench/client.txt", "/a/failed ERROR")) == {"throughput": 2468.0}
