# SPDX-License-Identifier: GPL-2.0-or-later
"""Case labels beside each other."""

from __future__ import annotations

from kpatch_ci.report.labels import fitted, split_labels

LONG = [f"rw=write,bs=4k,fs={fs},oflag=direct+dsync,latency_us=100" for fs in ("xfs", "ext4")]


def test_what_all_cases_share_is_said_once() -> None:
    assert split_labels(LONG) == ("rw=write,bs=4k,oflag=direct+dsync,latency_us=100", ["fs=xfs", "fs=ext4"])


def test_nothing_shared_leaves_labels_as_they_are() -> None:
    assert split_labels(["rw=read,bs=1M", "rw=write,bs=4k"]) == ("", ["rw=read,bs=1M", "rw=write,bs=4k"])
    assert split_labels([]) == ("", [])


def test_a_lone_case_that_is_too_long_is_named_by_its_metric() -> None:
    assert fitted(["groups=8"], 20, "time") == ("", ["groups=8"], [])
    assert fitted(LONG[:1], 20, "throughput") == (LONG[0], ["throughput"], [])


def test_labels_that_do_not_fit_are_numbered_and_explained() -> None:
    assert fitted(["fs=xfs,x=1", "fs=ext4,y=2,z=3"], 12, "") == (
        "",
        ["#1", "#2"],
        ["#1: fs=xfs,x=1", "#2: fs=ext4,y=2,z=3"],
    )
