# SPDX-License-Identifier: GPL-2.0-or-later
"""Progress of a run: bars and a line a stage on a terminal, plain lines elsewhere (no colour, no spinner)."""

from __future__ import annotations

import heapq
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from kpatch_ci.model.boot import BootResult
from kpatch_ci.model.build import BuildResult
from kpatch_ci.model.each import CheckResult, EachResult
from kpatch_ci.model.series import ApplyResult
from kpatch_ci.model.status import Status
from kpatch_ci.pipeline.engine import Node
from kpatch_ci.report.clean import one_line

HEARTBEAT = 30.0
"""Seconds between plain lines while nothing ends."""
SHOWN = 6
"""Stages at work that a bar may name: a line has room for no more, and a cluster has a thousand."""
ENOUGH = 10
"""Stages of a kind that must have ended before its pace says anything."""
KINDS = ("apply", "image", "build", "each", "check", "boot", "run")
TITLES = {"apply": "apply", "image": "guest image", "build": "build", "boot": "boot", "run": "measure"}
TITLES |= {"each": "each patch", "check": "check"}


def summary(value: Any, seconds: float, known: bool) -> str:
    """One line of what a stage gave."""
    if known and not isinstance(value, ApplyResult):
        return "reused"
    if value is None:
        return "skipped (what it needs failed, or it is the baseline's image)"
    took = f"{seconds:.1f} s"
    status = getattr(value, "status", Status.PASSED)
    if isinstance(value, ApplyResult):
        odd = "".join(f"; {warning}" for warning in value.warnings)
        return f"{value.method or status} ({took}){odd}" if status is Status.PASSED else f"FAILED: {value.reason}"
    if status is not Status.PASSED:
        return f"{str(status).upper()}: {getattr(value, 'reason', '')}"
    return ", ".join([*_words(value), took])


def _words(value: Any) -> list[str]:
    if isinstance(value, BuildResult):
        return [f"{value.objects} objects"]
    if isinstance(value, EachResult):
        return [f"{len(value.patches)} of {len(value.patches)} patches build"]
    if isinstance(value, CheckResult):
        return [f"{len(value.findings)} new findings"]
    return ["up"] if isinstance(value, BootResult) else []


class PlainProgress:
    """For logs and pipes: a line when a stage other than a replicate starts or ends, and a heartbeat."""

    def __init__(self, console: Console, *, verbose: bool = False) -> None:
        self._console, self._verbose = console, verbose
        self._total: Counter[str] = Counter()
        self._done: Counter[str] = Counter()
        self._reused: Counter[str] = Counter()
        self._running: dict[str, float] = {}
        self._began = self._spoke = time.monotonic()
        self._began_kind: dict[str, float] = {}

    def planned(self, nodes: Sequence[Node]) -> None:
        """Say what is ahead; a second time, what is more."""
        more = Counter(n.kind for n in nodes)
        self._total.update(more)
        ahead = ", ".join(f"{more[k]} {TITLES[k]}" for k in KINDS if more[k])
        self._say(f"stages: {ahead}")

    def started(self, node: Node) -> None:
        """Remember, and say it for long stages."""
        self._running[node.name] = time.monotonic()
        self._began_kind.setdefault(node.kind, time.monotonic())
        if node.kind in ("build", "each", "check", "image") or self._verbose:
            self._say(f"{node.name} ...")

    def finished(self, node: Node, value: Any, seconds: float, known: bool) -> None:
        """Count, and say it where a person would want to know."""
        self._running.pop(node.name, None)
        self._done[node.kind] += 1
        self._reused[node.kind] += known
        bad = getattr(value, "status", Status.PASSED) in (Status.FAILED, Status.ERROR)
        if bad or self._verbose or (not known and node.kind != "run"):
            self._say(f"{node.name}: {summary(value, seconds, known)}")
        if self._done[node.kind] == self._total[node.kind]:
            self._say(self._counts(node.kind))
        else:
            self.tick()

    def tick(self) -> None:
        """A heartbeat now and then."""
        if time.monotonic() - self._spoke >= HEARTBEAT:
            doing = ", ".join(sorted(self._running)[:2]) or "waiting"
            kind = next((k for k in KINDS if self._done[k] < self._total[k]), "run")
            left = self.remaining()
            self._say(f"{self._counts(kind)}; now {doing}" + (f"; about {left / 60:.0f} min left" if left > 60 else ""))

    def note(self, text: str) -> None:
        """Say it."""
        self._say(text)

    def remaining(self) -> float:
        """Seconds of wall time left for the kind of stage that is at work: what is left of it, at its pace so far."""
        kind = next((k for k in KINDS if self._done[k] < self._total[k] and k in self._began_kind), None)
        if kind is None:
            return 0.0
        measured = self._done[kind] - self._reused[kind]
        elapsed = time.monotonic() - self._began_kind[kind]
        return (self._total[kind] - self._done[kind]) * elapsed / measured if measured >= ENOUGH else 0.0

    def _counts(self, kind: str) -> str:
        reused = f" ({self._reused[kind]} reused)" if self._reused[kind] else ""
        return f"{TITLES[kind]}: {self._done[kind]}/{self._total[kind]}{reused}"

    def _say(self, text: str) -> None:
        self._spoke = time.monotonic()
        elapsed = int(self._spoke - self._began)
        self._console.print(  # a patch's subject may be in it: no escape sequence reaches the terminal
            f"[{elapsed // 60:3d}:{elapsed % 60:02d}] {one_line(text)}", markup=False, highlight=False, soft_wrap=True
        )

    def __enter__(self) -> PlainProgress:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class LiveProgress(PlainProgress):
    """For terminals: a bar a kind of stage with what is at work now; stages that end are printed above."""

    def __init__(self, console: Console, *, verbose: bool = False) -> None:
        super().__init__(console, verbose=verbose)
        self._bars = Progress(
            TextColumn("{task.description:<11}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[now]}", markup=False),
            console=console,
            transient=True,
        )
        self._tasks: dict[str, TaskID] = {}

    def planned(self, nodes: Sequence[Node]) -> None:
        super().planned(nodes)
        for kind in KINDS:
            if kind in self._tasks:
                self._bars.update(self._tasks[kind], total=self._total[kind])
            elif self._total[kind]:
                self._tasks[kind] = self._bars.add_task(TITLES[kind], total=self._total[kind], now="")

    def started(self, node: Node) -> None:
        super().started(node)
        self._show(node.kind)

    def finished(self, node: Node, value: Any, seconds: float, known: bool) -> None:
        super().finished(node, value, seconds, known)
        self._bars.update(self._tasks[node.kind], completed=self._done[node.kind])
        self._show(node.kind)

    def tick(self) -> None:
        """The bars move by themselves."""

    def _show(self, kind: str) -> None:
        of_kind = (name for name in self._running if name.startswith(f"{kind} "))
        now = ", ".join(n.split(" ", 1)[1] for n in heapq.nsmallest(SHOWN, of_kind))
        left = self.remaining()
        text = (f"~{left / 60:.0f} min left  " if left > 60 and kind == "run" else "") + now
        self._bars.update(self._tasks[kind], now=text[:70])

    def __enter__(self) -> LiveProgress:
        self._bars.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.__exit__(None, None, None)
