# SPDX-License-Identifier: GPL-2.0-or-later
"""Histories made to order, and a bench that measures kernels which are nothing but numbers: for bisections."""

from __future__ import annotations

import math
import random
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import git

from kpatch_ci.model.bisect import Commit, Find, Spent
from kpatch_ci.model.boot import BootResult
from kpatch_ci.model.build import BuildResult, ConfigMiss
from kpatch_ci.model.digest import digest
from kpatch_ci.model.status import Mode, Status
from kpatch_ci.model.workload import Replicate, Seed
from kpatch_ci.pipeline.bisect.bench import Question, Runs

MAKEFILE = "VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 9\n"
History = Mapping[str, Sequence[str]]
"""Commit's name -> names of its parents, which come before it. The name is the subject."""
WHEN = 1_700_000_000


def make_repo(
    place: Path, history: History, *, files: Callable[[str], str] = lambda name: f"{name}.c"
) -> dict[str, str]:
    """A bare repository with that history; name -> hash. Every commit changes one file, and is a tag ``t-NAME``."""
    repo = git.Repo.init(place, bare=True, initial_branch="master")
    marks = {name: number for number, name in enumerate(history, 1)}
    with tempfile.TemporaryFile() as stream:
        for name, parents in history.items():
            stream.write(_commit(marks[name], name, [marks[p] for p in parents]).encode())
            text = f"int {name};\n"
            stream.write(f"M 100644 inline Makefile\ndata {len(MAKEFILE)}\n{MAKEFILE}\n".encode())
            stream.write(f"M 100644 inline {files(name)}\ndata {len(text)}\n{text}\n".encode())
            stream.write(f"reset refs/tags/t-{name}\nfrom :{marks[name]}\n\n".encode())
        stream.seek(0)
        repo.git.execute(["git", "fast-import", "--quiet"], istream=stream)
    last = list(history)[-1]
    repo.git.update_ref("refs/heads/master", f"t-{last}")
    lines = str(repo.git.for_each_ref("--format=%(refname:lstrip=2) %(objectname)", "refs/tags")).splitlines()
    return {name.removeprefix("t-"): commit for name, commit in (line.split() for line in lines)}


def _commit(mark: int, name: str, parents: Sequence[int]) -> str:
    who = f"A. Uthor <a@example.org> {WHEN + 60 * mark} +0000"
    lines = ["commit refs/heads/work", f"mark :{mark}", f"author {who}", f"committer {who}", f"data {len(name)}", name]
    lines += [f"{word} :{parent}" for word, parent in zip(["from", *["merge"] * len(parents)], parents, strict=False)]
    if not parents:
        lines.insert(0, "reset refs/heads/work")
    return "\n".join(lines) + "\n"


def line(count: int) -> dict[str, list[str]]:
    """``c0`` to ``c<count>``, one after the other: c0 is good, so there are ``count`` that may be the first bad one."""
    return {f"c{n}": [f"c{n - 1}"] if n else [] for n in range(count + 1)}


class Killed(BaseException):
    """SIGKILL, as near as a test in one process comes to it: nothing handles it."""


@dataclass
class World:
    """What the commits (by subject) are like. ``level``: how much worse a kernel is, as a log ratio (0.2: some 22 % slower)."""

    level: Callable[[str], float] = lambda _: 0.0
    noise: float = 0.01
    """Standard deviation of a sample's log ratio from kernel to kernel."""
    common: float = 0.05
    """Of what a seed does to every kernel alike."""
    broken: Callable[[str], bool] = lambda _: False
    log_tail: str = ""
    """Of a build that fails."""
    unconfigurable: Callable[[str], bool] = lambda _: False
    """A symbol that is asked for is not there."""
    unbootable: Callable[[str], bool] = lambda _: False
    failing: Callable[[str, int], str] = lambda _, __: ""
    """(subject, boot seed) -> why the run failed; empty: it did not."""
    kernel: Callable[[str], str] = lambda name: name
    """Commits of one kernel name have one kernel."""
    symbols: Callable[[str], str] = lambda _: "start_kernel"
    place: Path = Path("/nonexistent")
    calls: list[str] = field(default_factory=list)
    kill_at: int | None = None
    """Number of the call, from 1, that does not return."""

    def call(self, text: str) -> None:
        self.calls.append(text)
        if self.kill_at is not None and len(self.calls) >= self.kill_at:
            raise Killed


@dataclass
class FakeBench:
    """Builds and measures in a world."""

    question: Question
    world: World
    spent: Spent = Spent()  # noqa: RUF009

    def build(self, commit: Commit) -> BuildResult:
        self.world.call(f"build {commit.subject}")
        missing = self.world.unconfigurable(commit.subject)
        fine = not missing and not self.world.broken(commit.subject)
        kernel = digest(self.world.kernel(commit.subject)) if fine else ""
        made = BuildResult(
            Status.PASSED if fine else Status.FAILED,
            commit.short,
            "x86_64",
            commit.tree_id,
            "k",
            1.0,
            1,
            cached=False,
            kernel_digest=kernel,
            misses=(ConfigMiss("X", "y", "n", "no such symbol", "base.config:1"),) if missing else (),
            reason="" if fine else "make failed with exit status 2",
            log_tail="" if fine else self.world.log_tail,
        )
        if not fine or self.question.find is not Find.SYMBOL:
            return made
        place = self.world.place / commit.short
        place.mkdir(parents=True, exist_ok=True)
        (place / "System.map").write_text(f"ffff T start_kernel\nffff T {self.world.symbols(commit.subject)}\n")
        return replace(made, artifact=place)

    def run(self, commit: Commit, boots: int) -> Runs:
        self.world.call(f"run {commit.subject} {boots}")
        name, plan = commit.subject, self.question.plan
        up = not self.world.unbootable(name)
        status, reason = (Status.PASSED, "") if up else (Status.FAILED, "the guest crashed: Kernel panic")
        booted = tuple(
            BootResult(
                status, commit.short, "x86_64", "m", seed, "k", 1.0, cached=False, reason=reason,
                log_tail=self.world.symbols(name),
            )
            for seed in range(1, boots + 1)
        )  # fmt: skip
        seeds = [Seed(boot, 1) for boot in range(1, boots + 1)] if up and plan else []
        found = [self._replicate(name, case.label, seed) for case in (plan.cases if plan else ()) for seed in seeds]
        return Runs(booted, {(r.workload, r.case, r.seed): r for r in found})

    def _replicate(self, name: str, case: str, seed: Seed) -> Replicate:
        assert self.question.plan
        why = self.world.failing(name, seed.boot)
        if why:
            return Replicate(self.question.plan.name, case, seed, Status.FAILED, Mode.DETERMINISTIC, reason=why)
        shared = random.Random(f"{case} {seed}").gauss(0, self.world.common)  # noqa: S311
        own = random.Random(f"{self.world.kernel(name)} {case} {seed}").gauss(0, self.world.noise)  # noqa: S311
        value = math.exp(self.world.level(name) + shared + own)
        samples = {"time": value, "context_switches": round(1000 * value), "migrations": 0.0, "wakeups": 500.0}
        return Replicate(self.question.plan.name, case, seed, Status.PASSED, Mode.DETERMINISTIC, samples)


def fake_bench(world: World) -> Callable[..., object]:
    """Stands for ``open_bench``."""

    @contextmanager
    def opened(_session: object, question: Question, _name: str, _observer: object) -> Iterator[FakeBench]:
        yield FakeBench(question, world)

    return opened
