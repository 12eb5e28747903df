# SPDX-License-Identifier: GPL-2.0-or-later
"""What of a patch is in the kernel at all."""

from __future__ import annotations

from kpatch_ci.kernel.prove import prove_in_guest, prove_sources
from kpatch_ci.model.series import Adds


def test_files_of_another_architecture_do_not_fail_a_patch_that_is_built() -> None:
    proofs = prove_sources({"kernel/sched/fair.c": True, "arch/x86/kernel/smp.c": False})
    assert [(p.name, p.holds) for p in proofs] == [("kernel/sched/fair.c", True)]


def test_a_patch_of_which_nothing_is_built_is_not_proven() -> None:
    assert [p.holds for p in prove_sources({"drivers/a.c": False, "drivers/a.h": False})] == [False, False]
    assert prove_sources({}) == ()


def test_a_guest_tells_a_new_sysctl_from_one_of_the_same_last_name() -> None:
    adds = Adds(sysctls=("kernel/new/enabled", "net/core/x"), sched_features=("WA_NEW",))
    base = {"sysctls": ["old/enabled"], "features": ["WA_IDLE"]}
    patched = {"sysctls": ["old/enabled", "new/enabled"], "features": ["WA_IDLE", "NO_WA_NEW"]}
    assert [(p.name, p.holds) for p in prove_in_guest(adds, base, patched)] == [
        ("kernel/new/enabled", True),
        ("WA_NEW", True),
    ]
    assert prove_in_guest(adds, {}, patched) == (), "without a boot of both arms there is nothing to look at"
