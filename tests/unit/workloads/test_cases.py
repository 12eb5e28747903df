# SPDX-License-Identifier: GPL-2.0-or-later
"""From pipeline.yaml's words to cases."""

from __future__ import annotations

import pytest

from kpatch_ci.model.errors import UserError, UserErrors
from kpatch_ci.workloads import WORKLOADS, expand, make_case
from kpatch_ci.workloads.types import Label


def test_defaults_give_the_labels_that_other_tools_rely_on() -> None:
    assert make_case("hackbench", {"groups": 8}).label == "groups=8"
    assert make_case("dbench", {"clients": 4, "fs": "xfs"}).label == "fs=xfs,clients=4"
    assert make_case("dd", {}).label == "rw=read,bs=1M"


def test_what_differs_from_the_default_shows_for_hackbench() -> None:
    case = make_case("hackbench", {"transport": "socket", "mode": "thread", "groups": 2})
    assert case.label == "groups=2,mode=thread,transport=socket"
    assert make_case("hackbench", {"mode": "process", "transport": "pipe"}).label == "groups=8"


def test_dd_shows_latency_and_flags_only_where_they_are_given() -> None:
    case = make_case("dd", {"rw": "write", "bs": "4k", "oflag": "direct,dsync", "latency_us": 500})
    assert case.label == "rw=write,bs=4k,oflag=direct+dsync,latency_us=500"
    assert make_case("dd", {}).get("latency_us") == 5000


def test_dd_shows_a_file_system_only_where_it_is_given() -> None:
    case = make_case("dd", {"oflag": "direct+dsync", "fs": "xfs", "bs": "4k", "rw": "write"})
    assert case.label == "rw=write,bs=4k,fs=xfs,oflag=direct+dsync"
    labels = [c.label for c in expand("dd", {"fs": ["xfs", "ext4"]})]
    assert labels == ["rw=read,bs=1M,fs=xfs", "rw=read,bs=1M,fs=ext4"]


@pytest.mark.parametrize(("bs", "count", "size_mib"), [("4k", 1024, 320), ("1M", 192, 320), ("1M", 300, 428)])
def test_dd_leaves_room_for_the_file_system(bs: str, count: int, size_mib: int) -> None:
    assert make_case("dd", {"fs": "xfs", "bs": bs, "count": count}).get("size_mib") == size_mib


@pytest.mark.parametrize(
    ("bs", "count", "size_mib"), [("1M", 64, 64), ("64k", 1024, 64), ("4k", 1024, 4), ("16M", 16, 256)]
)
def test_dd_derives_count_and_device_size_from_the_block_size(bs: str, count: int, size_mib: int) -> None:
    case = make_case("dd", {"bs": bs})
    assert (case.get("count"), case.get("size_mib")) == (count, size_mib)


def test_hackbench_does_the_same_work_at_any_number_of_groups() -> None:
    loops = {g: make_case("hackbench", {"groups": g, "work": 400}).get("loops") for g in (1, 8, 16, 900)}
    assert loops == {1: 400, 8: 50, 16: 25, 900: 1}
    assert make_case("hackbench", {"groups": 8, "loops": 7}).get("loops") == 7


def test_lists_mean_the_product_and_the_first_key_varies_slowest() -> None:
    labels = [c.label for c in expand("dbench", {"fs": ["xfs", "ext4"], "clients": [1, 4, 8]})]
    assert labels == [f"fs={fs},clients={n}" for fs in ("xfs", "ext4") for n in (1, 4, 8)]
    labels = [c.label for c in expand("dbench", {"clients": [1, 4], "fs": ["xfs", "ext4"], "time_s": 3})]
    assert labels == [f"fs={fs},clients={n}" for n in (1, 4) for fs in ("xfs", "ext4")]


@pytest.mark.parametrize(
    ("kind", "raw", "message"),
    [
        ("fio", {}, r"unknown workload 'fio' \(one of dd, hackbench, dbench\)"),
        ("dd", {"rw": "append"}, r"dd: rw cannot be 'append' \(one of read, write\)"),
        ("dd", {"bs": "1X"}, r"bs cannot be '1X' \(bytes such as 512, 4k or 1M\)"),
        ("dd", {"bs": 1000}, "bs=1000 is no multiple of 512"),
        ("dd", {"rw": "write", "iflag": "direct"}, "iflag has no place in rw=write; give oflag"),
        ("dd", {"oflag": "direct"}, "oflag has no place in rw=read; give iflag"),
        ("dd", {"iflag": "direct+fast"}, "one or more of direct, dsync, sync, joined by"),
        ("dd", {"size_mib": 8}, "64 requests of 1M need size_mib=64 or more, not 8"),
        ("dd", {"fs": "btrfs"}, r"dd: fs cannot be 'btrfs' \(one of xfs, ext4\)"),
        ("dd", {"fs": "xfs", "size_mib": 200}, "a file system needs size_mib=300 or more, not 200"),
        ("dd", {"fs": "ext4", "bs": "1M", "count": 300, "size_mib": 350}, "need size_mib=428 or more, not 350"),
        ("hackbench", {"group": 8}, "unknown key 'group' .did you mean 'groups'. valid: groups, mode"),
        ("hackbench", {"groups": True}, r"groups cannot be True \(a whole number from 1 to 1000\)"),
        ("hackbench", {"groups": 0}, "groups cannot be 0"),
        ("hackbench", {"groups": "8"}, "groups cannot be '8'"),
        ("dbench", {"clients": 1.5}, "clients cannot be 1.5"),
        ("dbench", {"fs": "btrfs"}, r"one of xfs, ext4"),
        ("dbench", {"size_mib": 100}, "a whole number from 300"),
        ("dbench", {"time_s": 1}, "a whole number from 2"),
        ("dbench", {"loadfile": "a b"}, "an absolute path"),
    ],
)
def test_what_cannot_be_names_the_key_and_what_would_be_right(kind: str, raw: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        make_case(kind, raw)


def test_every_error_comes_at_once_with_its_place() -> None:
    lines = {"rw": "p.yaml:3", "colour": "p.yaml:4"}
    with pytest.raises(UserErrors) as caught:
        expand("dd", {"rw": ["read", "erase", "append"], "colour": "red"}, lines.get)
    assert sorted(str(e).split(": ")[0] for e in caught.value.errors) == ["p.yaml:3", "p.yaml:3", "p.yaml:4"]


def test_an_empty_list_and_two_cases_of_one_label_are_errors() -> None:
    with pytest.raises(UserError, match="clients has no values"):
        expand("dbench", {"clients": []})
    with pytest.raises(UserError, match="two cases are called 'groups=8'"):
        expand("hackbench", {"groups": 8, "loops": [10, 20]})


@pytest.mark.parametrize("kind", WORKLOADS)
def test_options_are_documented_and_told_apart(kind: str) -> None:
    workload = WORKLOADS[kind]
    assert workload.name == kind
    assert all(o.help and o.valid for o in workload.options)
    assert all(o.label is not Label.NEVER for o in workload.settings)
    assert {*workload.settings, *workload.params} == set(workload.options)
    assert workload.metrics[0].better in ("lower", "higher")
