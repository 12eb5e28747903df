# SPDX-License-Identifier: GPL-2.0-or-later
"""Which of two nights' conditions a difference is put down to."""

from __future__ import annotations

import pytest

from kpatch_ci.model.history import Cause, Condition, Limit
from kpatch_ci.stats.attribution import cause_words, causes
from kpatch_ci.stats.limits import LIMITS, limit_for

BEFORE = {str(c): "old" for c in Condition}


def named(*changed: Condition, of_host: bool = False) -> list[str]:
    after = {**BEFORE, **{str(c): "new" for c in changed}}
    return [cause.what for cause in causes(BEFORE, after, of_host=of_host)]


@pytest.mark.parametrize("one", [c for c in Condition if c is not Condition.HOST])
def test_each_alone(one: Condition) -> None:
    assert named(one) == [one]


@pytest.mark.parametrize("one", [Condition.KERNEL, Condition.SERIES, Condition.CONFIG, Condition.COMPILER])
def test_the_image_follows_from_what_goes_into_it(one: Condition) -> None:
    assert named(one, Condition.IMAGE) == [one]


def test_what_follows_is_not_named() -> None:
    assert named(Condition.KERNEL, Condition.PATCHED_TREE, Condition.IMAGE) == [Condition.KERNEL]
    assert named(Condition.SERIES, Condition.PATCHED_TREE, Condition.IMAGE) == [Condition.SERIES]
    assert named(Condition.COMPILER, Condition.TOOLS, Condition.IMAGE) == [Condition.COMPILER]
    assert named(Condition.MACHINE, Condition.MACHINE_FILE, Condition.QEMU_ARGV) == [Condition.MACHINE]


def test_all_that_could_be_it_are_named() -> None:
    assert named(Condition.KERNEL, Condition.QEMU, Condition.IMAGE) == [Condition.KERNEL, Condition.QEMU]


def test_a_kernel_that_is_the_same_image_is_not_it() -> None:
    assert named(Condition.KERNEL, Condition.QEMU) == [Condition.QEMU]
    assert named(Condition.KERNEL) == [Condition.KERNEL]


def test_the_host_only_where_it_matters() -> None:
    assert named(Condition.HOST) == []
    assert named(Condition.HOST, of_host=True) == [Condition.HOST]


def test_what_is_not_known_of_both_is_no_cause() -> None:
    without = {k: v for k, v in BEFORE.items() if k != Condition.WORKLOAD}
    assert causes(without, BEFORE, of_host=True) == ()


def test_words() -> None:
    assert cause_words(Cause("compiler", "14.2", "14.3")) == "compiler 14.2 -> 14.3"
    assert cause_words(Cause("kernel image", "a" * 64, "b" * 64)) == "kernel image aaaaaaaaaaaa -> bbbbbbbbbbbb"
    assert cause_words(Cause("QEMU's arguments", "x " * 100, "y " * 100)) == "QEMU's arguments"


def test_the_most_particular_limit_counts() -> None:
    own = {"time": Limit("time", percent=4), "dd.time": Limit("dd.time", percent=5)}
    assert limit_for(own, "dd", "time").percent == 5
    assert limit_for(own, "hackbench", "time").percent == 4
    assert limit_for(own, "hackbench", "throughput") == LIMITS["default"]
    assert limit_for({"default": Limit("default", percent=9)}, "hackbench", "migrations") == LIMITS["migrations"]


def test_a_limit_of_both_kinds_needs_both() -> None:
    both = Limit("migrations", percent=10, amount=20)
    assert not both.crossed(10, 25)
    assert not both.crossed(1000, 1050)
    assert both.crossed(100, 121)
    assert both.crossed(0, 21)
    assert both.words == "migrations: 10 % and 20"
