# SPDX-License-Identifier: GPL-2.0-or-later
"""A host that is kept busy on purpose: loops that want a CPU each, to see what a loaded machine does to figures."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from kpatch_ci.process import Process

LOOP = "import os, sys\nwhile os.getppid() == int(sys.argv[1]):\n    for _ in range(1_000_000): pass"
"""Ends by itself when whoever started it is gone, however that ended."""


def overload() -> int:
    """One loop more than there are CPUs: somebody always waits."""
    return len(os.sched_getaffinity(0)) + 1


@contextmanager
def busy(loops: int) -> Iterator[list[Process]]:
    """Keep ``loops`` CPUs busy inside the block. Raises InfrastructureError when the loops cannot be started."""
    argv = [sys.executable, "-S", "-c", LOOP, str(os.getpid())]
    with ExitStack() as stack:
        yield [stack.enter_context(Process(argv)) for _ in range(loops)]
