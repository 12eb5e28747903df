# SPDX-License-Identifier: GPL-2.0-or-later
"""From what a person asks to a bisection: the question, checked before any long work, the ends, and the place of its notes."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from kpatch_ci.config.entries import choices
from kpatch_ci.config.load import Config
from kpatch_ci.config.selection import parse_cases
from kpatch_ci.guest.files import machine_slice
from kpatch_ci.kernel.gitbisect import GitBisect, Range
from kpatch_ci.model.bisect import Bisection, Class, Find
from kpatch_ci.model.digest import digest
from kpatch_ci.model.errors import InfrastructureError, UserError
from kpatch_ci.model.machine import Machine
from kpatch_ci.model.series import Series
from kpatch_ci.model.workload import COUNTERS, Metric, WorkloadPlan
from kpatch_ci.pipeline.bisect.bench import Bench, Question
from kpatch_ci.pipeline.bisect.drive import Job, Say, bisect
from kpatch_ci.pipeline.bisect.memory import Memory
from kpatch_ci.pipeline.engine import Observer
from kpatch_ci.pipeline.session import Session
from kpatch_ci.series.apply import apply_series
from kpatch_ci.series.commits import commit_series
from kpatch_ci.store.cache import locked
from kpatch_ci.workloads.table import WORKLOADS

STATE = Path("state") / "bisect"
RUNS = (Find.METRIC, Find.CRASH, Find.WORKLOAD)
"""Searches that run a workload."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line says. Empty: not said."""

    find: Find = Find.METRIC
    arch: str = ""
    workload: str = ""
    case: str = ""
    metric: str = ""
    symbol: str = ""
    pattern: str = ""
    boots: int = 6
    most: int = 48


def make_question(config: Config, asked: Asked) -> Question:
    """What is searched for. Raises UserError that names what there is."""
    machine = _machine(config)
    question = Question(asked.find, machine, symbol=asked.symbol, pattern=asked.pattern)
    question = replace(question, boots=asked.boots, most=max(asked.most, asked.boots))
    if asked.find not in RUNS:
        return question
    plan, case = _plan(config, asked)
    metric = _metric(plan, case, asked.metric) if asked.find is Find.METRIC else None
    return replace(question, plan=plan, case=case, metric=metric)


def _machine(config: Config) -> Machine:
    machine = config.machines[0]
    if machine.real_time:
        raise UserError(
            f"{machine.name} measures in real time, where no figure repeats",
            where="--accel",
            expected="a machine in virtual time: bisect compares the same seeds of many kernels",
        )
    return machine


def _plan(config: Config, asked: Asked) -> tuple[WorkloadPlan, str]:
    names = [plan.name for plan in config.workloads]
    if not asked.workload:
        raise UserError("which workload?", where="--workload", expected=f"one of {', '.join(names)}")
    plan = next((p for p in config.workloads if p.name == asked.workload), None)
    if plan is None:
        raise UserError(f"no workload '{asked.workload}'", where="--workload", expected=choices(asked.workload, names))
    if not asked.case:
        return plan, plan.cases[0].label if len(plan.cases) == 1 else ""
    wanted = parse_cases(f"{plan.name} {' '.join(asked.case.split(','))}")
    found = tuple(case for case in plan.cases if wanted.fits(case))
    exact = tuple(case for case in found if case.label == asked.case)
    labels = "; ".join(case.label for case in plan.cases)
    if not wanted.settings or not found:
        raise UserError(f"{plan.name} has no case '{asked.case}'", where="--case", expected=f"one of: {labels}")
    chosen = exact or found
    return replace(plan, cases=chosen), chosen[0].label if len(chosen) == 1 else ""


def _metric(plan: WorkloadPlan, case: str, name: str) -> Metric:
    own = WORKLOADS[plan.kind].metrics
    if not name:
        return own[0]
    known = {m.name: m for m in (*own, *COUNTERS)}
    if name not in known:
        raise UserError(f"{plan.name} has no metric '{name}'", where="--metric", expected=choices(name, list(known)))
    if not case and name != own[0].name:
        labels = "; ".join(c.label for c in plan.cases)
        raise UserError(f"{name} is compared case by case", where="--case", expected=f"one of: {labels}")
    return known[name]


@dataclass(frozen=True, slots=True)
class Request:
    """A bisection to be done: its ends, and how git is to go about it."""

    question: Question
    ends: Range
    options: tuple[str, ...] = ()
    """For `git bisect start`: --first-parent, -- PATHS."""
    told: Mapping[str, Class] | None = None
    order: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    restart: bool = False
    command: str = ""


OpenBench = Callable[[Session, Question, str, Observer], AbstractContextManager[Bench]]


def perform(session: Session, request: Request, observer: Observer, open_bench: OpenBench, say: Say) -> Bisection:
    """Do it, or go on with what an earlier process has begun. ``session.tree`` is the good end."""
    name = identity(session, request)
    place = session.cache / STATE / name[:16]
    with locked(place):
        memory = Memory(place, restart=request.restart)
        git = GitBisect(place, session.tree.repo, request.options)
        job = Job(
            question=request.question,
            good=git.commit(request.ends.good),
            bad=git.commit(request.ends.bad),
            commits=request.ends.count,
            tree=session.tree.label,
            told=_told(git, request.told or {}),
            order=request.order,
            first_parent="--first-parent" in request.options,
            notes=request.notes,
            command=request.command,
        )
        with open_bench(session, request.question, f"bisect-{name[:16]}", observer) as bench:
            return bisect(job, git, bench, memory, say)


def _told(git: GitBisect, marks: Mapping[str, Class]) -> dict[str, Class]:
    """A log's marks by whole hashes. Raises UserError for a commit that is not here."""
    found = {}
    for mark, cls in marks.items():
        try:
            found[git.commit(mark).hash] = cls
        except InfrastructureError as error:
            what = f"the log names a commit {mark[:12]} that is not in this repository"
            raise UserError(what, where="--replay", expected="a log of a bisection of the same repository") from error
    return found


def log_so_far(session: Session, request: Request) -> str:
    """What `git bisect log` would say of the steps that are done. Raises UserError where there are none."""
    place = session.cache / STATE / identity(session, request)[:16]
    steps = Memory(place).steps
    if not steps:
        raise UserError("nothing is known of this bisection yet", expected="the same command without --log")
    with tempfile.TemporaryDirectory(prefix="kpatch-ci-bisect-") as scratch:
        git = GitBisect(Path(scratch), session.tree.repo, request.options)
        git.start(request.ends.good, request.ends.bad)
        for step in steps:
            git.mark(step.commit.hash, step.cls)
        return git.log()


def identity(session: Session, request: Request) -> str:
    """Digest of all that the classes of commits depend on: the same command goes on, another begins anew."""
    question, arch = request.question, request.question.machine.arch
    plan = asdict(question.plan) if question.plan else None
    asked: list[object] = [question.find, plan, question.case, question.metric and question.metric.name]
    asked += [question.symbol, question.pattern, question.boots, question.most]
    fragments = [path.read_text() for path in session.config.fragments(arch)]
    where = [request.ends.good, request.ends.bad, request.options, sorted((request.told or {}).items())]
    return digest([asked, fragments, machine_slice(question.machine), session.tools.fingerprint, where])


def series_ends(session: Session, series: Series, fuzz: int = 0) -> tuple[Range, tuple[str, ...]]:
    """A series as commits on the session's tree: none of it is good, all of it is bad. And its commits, in order.

    Raises UserError where it does not apply, or is one patch on its own.
    """
    applied = apply_series(series, session.tree, fuzz=fuzz)
    made = commit_series(series, applied, session.tree).commits
    return Range(session.tree.commit, made[-1], len(made), True), made


def check_pattern(text: str) -> str:
    """A regular expression. Raises UserError."""
    try:
        re.compile(text)
    except re.error as error:
        raise UserError(f"no regular expression: {error}", where="--log-pattern", expected="Python's syntax") from error
    return text


def git_options(*, first_parent: bool, paths: Sequence[str]) -> tuple[str, ...]:
    """For `git bisect start`."""
    return (*(("--first-parent",) if first_parent else ()), *(("--", *paths) if paths else ()))
