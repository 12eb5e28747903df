# SPDX-License-Identifier: GPL-2.0-or-later
"""What Kbuild's Makefiles say of a file before anything is built."""

from __future__ import annotations

import pytest

from kpatch_ci.kernel.kbuild import conditions, not_built

TREE = {
    "drivers/Makefile": "obj-y += base/\nobj-$(CONFIG_NET) += net/\n",
    "drivers/net/Makefile": "obj-$(CONFIG_E1000) += e1000.o # a comment\nobj-$(CONFIG_HW) += hw/\nobj-y += always.o\n"
    "e1000-objs := e1000_main.o \\\n\te1000_hw.o\ne1000-$(CONFIG_DEBUG) += e1000_debug.o\n"
    "ifdef CONFIG_X\nobj-y += perhaps.o\nendif\nobj-$(CONFIG_A) += two.o\nobj-$(CONFIG_B) += two.o\n",
    "fs/xfs/Makefile": "obj-$(CONFIG_XFS_FS) += xfs.o\nxfs-y += $(addprefix libxfs/, \\\n xfs_ag.o \\\n xfs_bmap.o \\\n )\n",
    "fs/Makefile": "obj-$(CONFIG_XFS_FS) += xfs/\n",
    "kernel/sched/Makefile": "obj-y += build_policy.o\n",
    "kernel/Makefile": "obj-y += sched/ fork.o\n",
    "arch/arm64/Kbuild": "obj-$(CONFIG_KVM) += kvm/\n",
    "arch/arm64/kvm/Makefile": "obj-$(CONFIG_KVM) += kvm.o\nkvm-y += arm.o\n",
}


@pytest.mark.parametrize(
    ("path", "ways"),
    [
        ("drivers/net/e1000_hw.c", [{"E1000", "NET"}]),
        ("drivers/net/e1000_debug.c", [{"DEBUG", "E1000", "NET"}]),
        ("drivers/net/always.c", [{"NET"}]),
        ("drivers/net/two.c", [{"A", "NET"}, {"B", "NET"}]),
        ("fs/xfs/libxfs/xfs_bmap.c", [{"XFS_FS"}]),
        ("kernel/fork.c", [set()]),
        ("arch/arm64/kvm/arm.c", [{"KVM"}]),
    ],
)
def test_the_symbols_on_the_way_to_an_object_are_found(path: str, ways: list[set[str]]) -> None:
    assert [set(way) for way in conditions(path, TREE.get) or ()] == ways


@pytest.mark.parametrize("path", ["kernel/sched/fair.c", "drivers/net/perhaps.c", "drivers/char/tty.c", "top.c"])
def test_of_what_is_not_plain_nothing_is_said(path: str) -> None:
    """Included by another file, below an ifdef, in a folder or a place that no Makefile names."""
    assert conditions(path, TREE.get) is None
    assert not_built([path], TREE.get, {}) == ()


def test_a_file_is_left_out_only_where_every_way_lacks_a_symbol() -> None:
    paths = ["drivers/net/two.c", "drivers/net/e1000_hw.c", "drivers/net/e1000.h", "kernel/fork.c"]
    assert not_built(paths, TREE.get, {"NET": "y", "B": "m", "E1000": "y"}) == ()
    found = {one.path: one.missing for one in not_built(paths, TREE.get, {"NET": "n", "B": "y", "E1000": "m"})}
    assert found == {"drivers/net/two.c": ("NET",), "drivers/net/e1000_hw.c": ("NET",)}
