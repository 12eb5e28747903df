# SPDX-License-Identifier: GPL-2.0-or-later
"""Every output that was recorded from the real tools (tests/data/outputs), failing runs included."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpatch_ci.workloads import WORKLOADS, ParseError, make_case

OUTPUTS = Path(__file__).parents[2] / "data" / "outputs"

Raw = dict[str, object]
GOOD: dict[str, tuple[Raw, float]] = {
    "dd-4k-ok": ({"bs": "4k", "count": 2000}, 8192000 / 0.116101 / 1e6),
    "dd-read-ok": ({}, 67108864 / 0.0567897 / 1e6),
    "dd-write-ok": ({"rw": "write"}, 67108864 / 0.115874 / 1e6),
    "dd-file-dsync-ok": ({"rw": "write", "bs": "4k", "fs": "xfs", "count": 300}, 1228800 / 0.11459 / 1e6),
    "hackbench-ok": ({"groups": 2}, 0.201),
    "hackbench-threads": ({"groups": 2, "mode": "thread"}, 0.103),
    "dbench-ok": ({"clients": 8, "clock_factor": 20}, 5.52168 * 20),
    "dbench-one-client": ({"clients": 1, "clock_factor": 20}, 0.953327 * 20),
    "dbench-unclocked-ok": ({"clients": 1, "clock_factor": 1}, 2.55584),
}
BAD: dict[str, tuple[Raw, str]] = {
    "dd-bad-operand": ({}, "unrecognized operand 'frobnicate=1'"),
    "dd-missing-file": ({}, "failed to open '/nope': No such file or directory"),
    "dd-no-space": ({"rw": "write"}, "error writing '/dev/nullb0': No space left on device"),
    "dd-partial-block": ({"bs": "3M", "count": 11}, "copied 33554432 of 34603008 bytes"),
    "dd-short-read": ({}, "copied 33554432 of 67108864 bytes"),
    "dd-unaligned-direct": ({}, "error reading '/dev/nullb0': Invalid argument"),
    "hackbench-bad-option": ({}, "unrecognized option '--nonsense'"),
    "hackbench-cannot-fork": ({}, r"fork\(\) \(error: Resource temporarily unavailable\)"),
    "hackbench-zero-loops": ({}, "requires an integer > 0"),
    "dbench-missing-directory": ({}, "open /nope/clients/client0 failed"),
    "dbench-missing-loadfile": ({}, "error opening '/nope.txt'"),
    "dbench-no-space": ({}, "wrote 20480 bytes, expected to write 63488"),
    "dbench-t1-no-throughput": ({"clients": 1}, "measured 0 MB/sec"),
    "dbench-unknown-option": ({}, "no line `Throughput`: Invalid option --run-once"),
    "dbench-unwritable-directory": ({}, "open /mnt/clients/client0 failed"),
}


def parse(name: str, raw: Raw, kind: str = "") -> dict[str, float]:
    kind = kind or name.split("-", maxsplit=1)[0]
    return WORKLOADS[kind].parse((OUTPUTS / f"{name}.txt").read_text(), make_case(kind, raw))


@pytest.mark.parametrize("name", GOOD)
def test_a_run_that_went_well_gives_its_figure(name: str) -> None:
    raw, figure = GOOD[name]
    assert list(parse(name, raw).values()) == [pytest.approx(figure)]


@pytest.mark.parametrize("name", BAD)
def test_a_run_that_went_wrong_gives_the_reason(name: str) -> None:
    raw, reason = BAD[name]
    with pytest.raises(ParseError, match=reason):
        parse(name, raw)


@pytest.mark.parametrize("kind", WORKLOADS)
def test_what_another_program_printed_is_no_figure(kind: str) -> None:
    others = [p.stem for p in OUTPUTS.glob("*.txt") if not p.stem.startswith(kind)]
    assert len(others) > 8
    for name in others:
        with pytest.raises(ParseError):
            parse(name, {}, kind)


def test_no_recorded_output_of_a_workload_is_left_out() -> None:
    recorded = {p.stem for p in OUTPUTS.glob("*.txt") if p.stem.split("-")[0] in WORKLOADS}
    assert recorded == {*GOOD, *BAD}
