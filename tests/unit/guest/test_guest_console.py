# SPDX-License-Identifier: GPL-2.0-or-later
"""Crash lines are found in real and realistic consoles, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpatch_ci.guest.console import find_crash, find_warnings

CONSOLES = Path(__file__).parents[2] / "data" / "consoles"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("arm64-sysrq-panic.log", "Kernel panic - not syncing: sysrq triggered crash"),
        ("x86_64-null-pointer.log", "BUG: kernel NULL pointer dereference, address: 0000000000000018"),
        ("arm64-oops.log", "Unable to handle kernel paging request"),
        ("soft-lockup.log", "soft lockup - CPU#2 stuck for 26s! [hackbench:88]"),
        ("hung-task.log", "INFO: task dd:64 blocked for more than 120 seconds."),
        ("rcu-stall.log", "rcu_sched self-detected stall on CPU"),
        ("no-init.log", "No working init found"),
        ("out-of-memory.log", "Out of memory: Killed process 412 (hackbench)"),
    ],
)
def test_the_first_line_that_says_so_is_returned(name: str, words: str) -> None:
    found = find_crash((CONSOLES / name).read_text())
    assert found is not None
    assert words in found
    assert "\n" not in found


@pytest.mark.parametrize("name", ["arm64-clean.log", "x86_64-clean.log", "warning-only.log"])
def test_a_boot_that_went_well_holds_no_crash(name: str) -> None:
    assert find_crash((CONSOLES / name).read_text()) is None


@pytest.mark.parametrize(
    "line",
    [
        "kernel BUG at fs/xfs/xfs_log.c:123!",
        "general protection fault, probably for non-canonical address 0xdead: 0000 [#1] SMP",
        "invalid opcode: 0000 [#1] SMP",
        "Internal error: undefined instruction: 0000000002000000 [#1] SMP",
        "---[ end Kernel panic - not syncing: Attempted to kill init! exitcode=0x0000000b ]---",
        "VFS: Unable to mount root fs on unknown-block(0,0)",
        "BUG: workqueue lockup - pool cpus=0 node=0 flags=0x0 nice=0 stuck for 31s!",
        "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
        "Kernel stack is corrupted in: foo",
    ],
)
def test_each_kind_of_crash_is_known(line: str) -> None:
    assert find_crash(f"[    1.000000] {line}\n") == f"[    1.000000] {line}"


def test_an_empty_console_holds_no_crash() -> None:
    assert find_crash("") is None


def test_complaints_are_told_once_without_what_varies() -> None:
    text = (
        "[    0.100000] WARNING: CPU: 3 PID: 17 at kernel/sched/fair.c:100 foo+0x1c/0x40\n"
        "[    0.200000] WARNING: CPU: 5 PID: 99 at kernel/sched/fair.c:100 foo+0x1c/0x40\n"
        "[    0.300000] EXT4-fs warning: none of our business\n"
        "[    0.400000] INFO: possible recursive locking detected\n"
    )
    assert find_warnings(text) == (
        "WARNING:   at kernel/sched/fair.c:100 foo",
        "INFO: possible recursive locking detected",
    )
    assert find_warnings(text) == find_warnings(text.replace("0.1", "0.7").replace("PID: 17", "PID: 18"))
