# SPDX-License-Identifier: GPL-2.0-or-later
"""CPU numbers as the kernel writes them: ``0-5`` or ``0,2-3``."""

from __future__ import annotations

import re

FULL_CAPACITY = 1024
CAPACITY_ARCHES = frozenset({"arm64"})
"""Architectures whose firmware tables can say how fast a CPU is."""
_SPAN = re.compile(r"(\d{1,3})(?:-(\d{1,3}))?")


def parse_cpus(text: str) -> tuple[int, ...]:
    """CPU numbers of a list as the kernel writes it: ``0-5`` or ``0,2-3``. Raises ValueError."""
    cpus: list[int] = []
    for part in text.split(","):
        match = _SPAN.fullmatch(part.strip())
        if match is None or int(match[2] or match[1]) < int(match[1]):
            raise ValueError("CPUs are a list like [0, 1] or text like 0-5 or 0,2-3")
        cpus.extend(range(int(match[1]), int(match[2] or match[1]) + 1))
    return tuple(cpus)


def format_cpus(cpus: tuple[int, ...]) -> str:
    """CPU numbers as the kernel lists them: ``0-5`` or ``0,2-3``."""
    spans: list[list[int]] = []
    for cpu in sorted(cpus):
        if spans and cpu == spans[-1][1] + 1:
            spans[-1][1] = cpu
        else:
            spans.append([cpu, cpu])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)
