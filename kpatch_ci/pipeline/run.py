# SPDX-License-Identifier: GPL-2.0-or-later
"""The whole pipeline: plan the graph, run it, say what was found."""

from __future__ import annotations

import datetime
import platform
import re
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kpatch_ci import __version__
from kpatch_ci.config.entries import SeriesEntry
from kpatch_ci.config.load import Config
from kpatch_ci.config.schema import DEFAULT_PROFILE
from kpatch_ci.model.errors import UserError
from kpatch_ci.model.hosts import HostUse
from kpatch_ci.model.result import RunResult
from kpatch_ci.model.series import BASELINE, Series
from kpatch_ci.model.status import Mode
from kpatch_ci.model.workload import Replicate
from kpatch_ci.pipeline.assemble import assemble
from kpatch_ci.pipeline.budget import Costs, already_known, fit, missed
from kpatch_ci.pipeline.each import NO_CHECKS, Checks
from kpatch_ci.pipeline.engine import Engine, Node, Observer, Values
from kpatch_ci.pipeline.explain import Recorder
from kpatch_ci.pipeline.fingerprint import fingerprint, series_digests
from kpatch_ci.pipeline.foretell import cramped, foretell
from kpatch_ci.pipeline.memo import Memo
from kpatch_ci.pipeline.places import HERE
from kpatch_ci.pipeline.plan import FULL, Depth, measured_arms, plan
from kpatch_ci.pipeline.precision import Rounds
from kpatch_ci.pipeline.session import Session
from kpatch_ci.pipeline.slots import Slots
from kpatch_ci.pipeline.stages import Stages
from kpatch_ci.series.folder import load_series
from kpatch_ci.series.variants import variant


def load_all(config: Config) -> tuple[Series, ...]:
    """The series that the configuration names. Raises UserError before any long work starts."""
    loaded = tuple(load_entry(entry, config.patches) for entry in config.series)
    for one in loaded:
        check_name(one.name)
    return loaded


def load_entry(entry: SeriesEntry, patches: Path) -> Series:
    """One series, or a variant of it, as pipeline.yaml or the command line names it."""
    series = load_series(patches / entry.name, patches)
    return replace(variant(series, entry.variant) if entry.variant else series, only=entry.workloads)


def check_name(name: str) -> None:
    """Raises UserError for a series name that would be mistaken for another word, here or in a report."""
    if name == BASELINE or not re.fullmatch(r"[A-Za-z0-9][\w.+-]*", name):
        raise UserError(
            f"a series cannot be called '{name}'", expected=f"letters, digits and . _ + -, and not '{BASELINE}'"
        )


def safe_name(wanted: str) -> str:
    """A series name made from any text, such as a file's."""
    name = re.sub(r"[^\w.+-]+", "-", wanted, flags=re.ASCII).strip("-._+") or "patch"
    return f"{name}-series" if name == BASELINE else name


class _Both:
    """Passes the engine's events to the recorder and to the observer that shows progress."""

    def __init__(self, recorder: Recorder, observer: Observer) -> None:
        self._recorder, self._observer = recorder, observer

    def planned(self, nodes: Sequence[Node]) -> None:
        self._observer.planned(nodes)

    def started(self, node: Node) -> None:
        self._observer.started(node)

    def finished(self, node: Node, value: Any, seconds: float, known: bool) -> None:
        self._recorder.finished(node, value, seconds, known)
        self._observer.finished(node, value, seconds, known)

    def tick(self) -> None:
        self._observer.tick()

    def note(self, text: str) -> None:
        self._observer.note(text)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Values of all nodes, the recorder that explains them, and how many rounds the seeds of ``config`` took."""

    values: Values
    recorder: Recorder
    config: Config
    rounds: int = 1
    left_out: tuple[str, ...] = ()
    """What a time budget had no room for, in words."""
    hosts: tuple[HostUse, ...] = ()
    """Who did the stages; empty where there are no other places."""


def execute(
    session: Session,
    series: Sequence[Series],
    observer: Observer,
    depth: Depth = FULL,
    *,
    baseline: bool = True,
    deadline: float | None = None,
) -> Outcome:
    """Run the graph. Raises InfrastructureError; what the patches did wrong is in the values.

    ``deadline`` (time.monotonic()): no boot and no replicate is begun after it. Builds are always finished.
    """
    memo = Memo(session.cache / "state" / "stages.json")
    costs = Costs(session.cache / "state" / "costs.json")
    with Slots(session.jobs) as slots:
        stages = Stages(session, session.builder(slots.path), session.guests(), deadline)
        recorder = Recorder(stages, memo, session.tree)
        engine, rounds = session.engine(slots, _Both(recorder, observer)), 1
        left_out: tuple[str, ...] = ()
        try:
            values: Values = {}
            if deadline is not None and depth.replicates:
                values = engine.run(plan(stages, series, replace(depth, boots=False), baseline=baseline))
                left_out = _fitted(stages, series, depth, values, costs, baseline=baseline)
                for line in left_out:
                    observer.note(line)
            ahead = plan(stages, series, depth, baseline=baseline)
            if depth.replicates and deadline is None:
                _say_what_is_ahead(stages.session, series, ahead, costs, observer, baseline=baseline)
            values = engine.run([node for node in ahead if node.name not in values])
            asked = session.config.precision
            if asked and depth.replicates and baseline:
                values, rounds = Rounds(stages, series, depth, engine, observer.note).run(values, asked)
            costs.learn(values, session.config.machines)
        finally:
            memo.save()
    out = (*left_out, *missed(values))
    return Outcome(values, recorder, stages.session.config, rounds, out, _uses(session, engine))


def _uses(session: Session, engine: Engine) -> tuple[HostUse, ...]:
    """What this run had of each place. One that was lost before it began is among them."""
    places = session.every_place
    if not places:
        return ()
    uses = [HostUse(HERE, engine.done_at[HERE])]
    for place in places:
        before = session.counted.get(place.name, (0, 0))
        session.counted[place.name] = now = place.moved
        sent, received = now[0] - before[0], now[1] - before[1]
        lost = engine.lost.get(place.name) or place.lost
        uses.append(HostUse(place.name, engine.done_at[place.name], sent, received, lost))
    return tuple(uses)


def _guests_at_once(session: Session) -> int:
    """The cluster's slots, where there is one with workers; else this machine's."""
    return (session.cluster.slots if session.cluster else 0) or session.jobs


def _fitted(
    stages: Stages, series: Sequence[Series], depth: Depth, values: Values, costs: Costs, *, baseline: bool
) -> tuple[str, ...]:
    """Give up the cases for which there is no time; a line for each."""
    assert stages.deadline is not None  # noqa: S101 (what calls this)
    config = stages.session.config
    known = already_known(plan(stages, series, depth, baseline=baseline), values)
    arms = measured_arms(series, config.workloads, baseline=baseline)
    seconds = stages.deadline - time.monotonic()
    found = fit(config, arms, known, costs, seconds=seconds, jobs=_guests_at_once(stages.session))
    stages.session = replace(stages.session, config=replace(config, workloads=found.workloads))
    return found.left_out


def _say_what_is_ahead(
    session: Session,
    series: Sequence[Series],
    nodes: Sequence[Node],
    costs: Costs,
    observer: Observer,
    *,
    baseline: bool,
) -> None:
    config = session.config
    arms = measured_arms(series, config.workloads, baseline=baseline)
    built = already_known(
        [node for node in nodes if node.kind == "build"], {}
    )  # boots and replicates: when their turn comes
    free = shutil.disk_usage(session.cache).free
    for line in (
        foretell(config, arms, nodes, built, costs, jobs=session.jobs),
        cramped(config, nodes, built, free=free),
    ):
        if line:
            observer.note(line)


def new_run_id(now: datetime.datetime) -> str:
    """Sorts by time; the second run of a second gets a suffix where its directory is made."""
    return now.strftime("%Y%m%d-%H%M%S")


def run(
    session: Session,
    series: Sequence[Series],
    observer: Observer,
    *,
    run_id: str,
    command: str,
    began: float,
    checks: Checks = NO_CHECKS,
) -> RunResult:
    """The main job. ``began`` is time.monotonic() at the start of the command, installation included."""
    now = datetime.datetime.now(datetime.UTC)
    budget = session.config.budget
    deadline = None if budget is None else began + budget
    outcome = execute(session, series, observer, Depth(checks=checks), deadline=deadline)
    config = outcome.config
    extra = {
        "kpatch_ci": __version__,
        "tools": session.tools.fingerprint,
        "tree": session.tree.tree_id,
        "series": series_digests(series),
        "host": {"cpu": _host_cpu(), "kernel": platform.release()},
    }
    return RunResult(
        run_id=run_id,
        started=now.isoformat(timespec="seconds"),
        seconds=round(time.monotonic() - began, 1),
        profile=config.profile or DEFAULT_PROFILE,
        mode=_mode(config, outcome.values),
        tree=describe_tree(session),
        fingerprint=fingerprint(config, outcome.values, session.tools.versions, extra),
        series=tuple(
            replace(one, chosen=(*one.chosen, *outcome.left_out))
            for one in assemble(config, session.tree, series, outcome.values, command)
        ),
        thresholds=_thresholds(config, outcome.rounds),
        stages=outcome.recorder.rows(),
        command=command,
        origin=config.origin,
        hosts=outcome.hosts,
    )


def _mode(config: Config, values: Values) -> Mode:
    """Deterministic when every replicate is, and every machine is meant to be."""
    modes = [value.mode for value in values.values() if isinstance(value, Replicate)]
    modes += [Mode(machine.accel) for machine in config.machines]
    return next((mode for mode in modes if mode is not Mode.DETERMINISTIC), Mode.DETERMINISTIC)


def describe_tree(session: Session) -> dict[str, str]:
    """The tree in words, for reports."""
    tree = session.tree
    return {
        "label": tree.label,
        "release": tree.release,
        "commit": tree.commit,
        "tree_id": tree.tree_id,
        "origin": tree.origin,
    }


def _thresholds(config: Config, rounds: int) -> dict[str, float]:
    own = {f"threshold_percent.{plan.name}": plan.threshold_percent for plan in config.workloads}
    asked = config.precision
    wanted = (
        {"precision_percent": asked.percent, "max_seeds": float(asked.most), "rounds": float(rounds)} if asked else {}
    )
    return {"alpha": config.thresholds.alpha, "confidence": config.thresholds.confidence, **wanted, **own}


def _host_cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()
