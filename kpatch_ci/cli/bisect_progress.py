# SPDX-License-Identifier: GPL-2.0-or-later
"""Progress of a bisection: lines, for its graph is a new one at every step. What each step found is said by the bisection itself."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich.console import Console

from kpatch_ci.cli.progress import HEARTBEAT, summary
from kpatch_ci.model.status import Status
from kpatch_ci.pipeline.engine import Node
from kpatch_ci.report.clean import one_line

SHOWN = {"boot": "boots", "run": "runs"}


class StepProgress:
    """A line when a kernel is built, when anything fails, and now and then while nothing ends."""

    def __init__(self, console: Console, *, quiet: bool = False) -> None:
        self._console, self._quiet = console, quiet
        self._began = self._spoke = time.monotonic()
        self._total: Counter[str] = Counter()
        self._done: Counter[str] = Counter()
        self._running: dict[str, None] = {}

    def planned(self, nodes: Sequence[Node]) -> None:
        """A new graph: count anew."""
        self._total, self._done = Counter(n.kind for n in nodes), Counter()
        self._running = {}

    def started(self, node: Node) -> None:
        """Say it of what takes long."""
        self._running[node.name] = None
        if node.kind in ("build", "image"):
            self.say(f"{node.name} ...")

    def finished(self, node: Node, value: Any, seconds: float, known: bool) -> None:
        """Count; say it of builds and of what failed."""
        self._running.pop(node.name, None)
        self._done[node.kind] += 1
        bad = getattr(value, "status", Status.PASSED) in (Status.FAILED, Status.ERROR)
        if bad or (node.kind == "build" and not known):
            self.say(f"{node.name}: {summary(value, seconds, known)}")
        self.tick()

    def note(self, text: str) -> None:
        """Say it."""
        self.say(text)

    def tick(self) -> None:
        """A heartbeat."""
        if time.monotonic() - self._spoke >= HEARTBEAT:
            counts = [f"{SHOWN[k]} {self._done[k]}/{self._total[k]}" for k in SHOWN if self._total[k]]
            now = ", ".join(list(self._running)[:2]) or "waiting"
            self.say(", ".join([*counts, f"now {now}"]))

    def say(self, text: str) -> None:
        """One line with the time since the start."""
        self._spoke = time.monotonic()
        elapsed = int(self._spoke - self._began)
        if not self._quiet:
            line = f"[{elapsed // 60:3d}:{elapsed % 60:02d}] {one_line(text)}"
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)
