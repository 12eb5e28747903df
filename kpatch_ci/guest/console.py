# SPDX-License-Identifier: GPL-2.0-or-later
"""What a console says when a guest is lost. The console is for people and for this; samples never pass through it."""

from __future__ import annotations

import re

_CRASHES = (
    r"Kernel panic - not syncing",
    r"end Kernel panic",
    r"Oops(?::| -)",
    r"\bBUG: ",
    r"kernel BUG at ",
    r"Unable to handle kernel ",
    r"general protection fault",
    r"invalid opcode: ",
    r"divide error: ",
    r"double fault: ",
    r"Internal error: ",
    r"(?:soft|hard) lockup",
    r"INFO: task .{1,200} blocked for more than",
    r"(?:rcu|srcu)\S*:? (?:INFO: )?.{0,80}(?:detected|self-detected) stalls?",
    r"self-detected stall on CPU",
    r"Out of memory(?: and no killable processes|: Killed process| \(oom_kill_allocating_task\))",
    r"Attempted to kill init",
    r"VFS: Unable to mount root fs",
    r"No working init found",
    r"Bad mode in .{1,60} handler",
    r"Unhandled fault",
    r"Kernel stack (?:overflow|is corrupted)",
    r"Triple fault",
    r": [0-9a-f]{4} \[#\d+\] ",
)
"""A line that holds one of these is the last that matters: what comes after it measures nothing."""
_CRASH = re.compile("|".join(f"(?:{c})" for c in _CRASHES))
_HARMLESS = re.compile(r"WARNING: |Command line: |Kernel command line: |printk: |oops_limit|panic=")
"""Lines that may speak of such things without being one."""


def find_crash(text: str) -> str | None:
    """The first line that says that the guest is lost, without its newline; None where there is none."""
    for line in text.splitlines():
        if _CRASH.search(line) and not _HARMLESS.search(line):
            return line.strip()
    return None


_WARNING = re.compile(r"\bWARNING: |\bINFO: (?:possible|inconsistent|suspicious)|\bBUG: |\bCall trace:|\bCall Trace:")
_VARYING = re.compile(r"^\[ *\d+\.\d+\] |0x[0-9a-f]+|\bCPU: \d+|\bPID: \d+|\+0x\S+")


def find_warnings(text: str) -> tuple[str, ...]:
    """Lines in which the kernel complains without dying (WARN, lockdep and the like), once each, without what varies."""
    found = dict.fromkeys(_VARYING.sub("", line).strip() for line in text.splitlines() if _WARNING.search(line))
    return tuple(found)
