# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures of a history over its runs: rows for tables and exports, and lines of nights for the search for changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, select

from kpatch_ci.model.history import Line, Night
from kpatch_ci.model.series import BASELINE
from kpatch_ci.store.history.conditions import ALL_CASES, read_conditions
from kpatch_ci.store.history.database import Database
from kpatch_ci.store.history.query import Filter, chunks, newest, run_conditions
from kpatch_ci.store.history.rows import ARMS
from kpatch_ci.store.history.tables import arches, comparisons, runs, samples, series

Cases = Mapping[tuple[int, int, str], tuple[str, ...]]
"""(run, number of the architecture, workload) -> its cases."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One comparison of one run."""

    run: str
    started: str
    tree: str
    release: str
    profile: str
    series: str
    arch: str
    workload: str
    case: str
    metric: str
    unit: str
    better: str
    mode: str
    primary: bool
    verdict: str
    change_percent: float | None
    ci_low: float | None
    ci_high: float | None
    p_value: float | None
    p_adjusted: float | None
    mde_percent: float | None
    baseline_mean: float | None
    patched_mean: float | None


@dataclass(frozen=True, slots=True)
class Sample:
    """One seed of one comparison."""

    run: str
    series: str
    arch: str
    workload: str
    case: str
    metric: str
    seed: str
    baseline: float | None
    patched: float | None


_NUMBERS = (
    "change_percent",
    "ci_low",
    "ci_high",
    "p_value",
    "p_adjusted",
    "mde_percent",
    "baseline_mean",
    "patched_mean",
)


def figures(database: Database, wanted: Filter) -> list[Figure]:
    """Every comparison that fits, oldest run first; those of one run in its order."""
    with database.reading() as connection:
        return [_figure(row) for row in _rows(connection, wanted)]


def _figure(row: Mapping[str, Any]) -> Figure:
    names = ("workload", "case", "metric", "unit", "better", "mode", "verdict", *_NUMBERS)
    return Figure(
        run=row["run_name"],
        started=row["started"],
        tree=row["tree_label"],
        release=row["tree_release"],
        profile=row["profile"],
        series=row["series_name"],
        arch=row["arch_name"],
        primary=row["is_primary"],
        **{name: row[name] for name in names},
    )


def all_samples(database: Database, wanted: Filter) -> Iterator[Sample]:
    """Every seed of every comparison that fits."""
    with database.reading() as connection:
        rows = _rows(connection, wanted)
        values = _samples(connection, rows)
    for row in rows:
        names = {"run": row["run_name"], "series": row["series_name"], "arch": row["arch_name"]}
        case = {key: row[key] for key in ("workload", "case", "metric")}
        for seed, baseline, patched in values[row["run"], row["number"]]:
            yield Sample(**names, **case, seed=seed, baseline=baseline, patched=patched)


def lines(database: Database, wanted: Filter) -> dict[Line, list[Night]]:
    """Every line of every arm that fits, its nights oldest first; nights without a sample are left out."""
    with database.reading() as connection:
        rows = _rows(connection, wanted)
        values = _samples(connection, rows)
        keys = sorted({row["run"] for row in rows})
        conditions, cases = read_conditions(connection, keys), _cases(connection, keys)
    found: dict[Line, list[Night]] = defaultdict(list)
    for row in rows:
        for index, arm in enumerate(ARMS, 1):
            there = {one[0]: one[index] for one in values[row["run"], row["number"]] if one[index] is not None}
            if there:
                night = Night(row["run_name"], row["started"], there, conditions.of(row, arm))
                line = _line(row, arm, cases)
                if (
                    not found[line] or found[line][-1].run != night.run
                ):  # the tree's own kernel is every series' baseline
                    found[line].append(night)
    return dict(found)


def _line(row: Mapping[str, Any], arm: str, cases: Cases) -> Line:
    names = ("profile", "workload", "case", "metric", "mode", "unit", "better")
    shared = {name: row[name] for name in names}
    series_name = BASELINE if arm == row["arm_baseline"] == BASELINE else row["series_name"]
    over = cases[row["run"], row["arch"], row["workload"]] if row["case"] == ALL_CASES else ()
    return Line(tree=row["tree_label"], series=series_name, arch=row["arch_name"], arm=arm, cases=over, **shared)


def _cases(connection: Connection, keys: Sequence[int]) -> Cases:
    """Those that each workload has on each architecture of each run."""
    found: dict[tuple[int, int, str], tuple[str, ...]] = defaultdict(tuple)
    c = comparisons.c
    for some in chunks(keys):
        query = select(c.run, c.arch, c.workload, c.case).distinct().where(c.run.in_(some), c.case != ALL_CASES)
        for run, arch, workload, case in connection.execute(query.order_by(c.run, c.arch, c.workload, c.case)):
            found[run, arch, workload] += (case,)
    return found


def _query(wanted: Filter) -> Select[Any]:
    c = comparisons.c
    asked: list[tuple[str, ColumnElement[str]]] = [(wanted.series, series.c.name), (wanted.arch, arches.c.arch)]
    asked += [(wanted.workload, c.workload), (wanted.case, c.case), (wanted.metric, c.metric)]
    limited = [] if wanted.limit is None else [runs.c.id.in_(newest(wanted).with_only_columns(runs.c.id))]
    names = (runs.c.name.label("run_name"), series.c.name.label("series_name"), arches.c.arch.label("arch_name"))
    columns = (
        runs.c.started,
        runs.c.profile,
        runs.c.tree_label,
        runs.c.tree_release,
        arches.c.machine,
        series.c.arm_baseline,
    )
    return (
        select(comparisons, *names, *columns)
        .join(runs, runs.c.id == c.run)
        .join(arches, (arches.c.run == c.run) & (arches.c.number == c.arch))
        .join(series, (series.c.run == arches.c.run) & (series.c.number == arches.c.series))
        .where(*run_conditions(wanted), *limited, *(column == value for value, column in asked if value))
        .order_by(runs.c.started_at, runs.c.id, c.number)
    )


def _rows(connection: Connection, wanted: Filter) -> list[dict[str, Any]]:
    return [dict(row) for row in connection.execute(_query(wanted)).mappings()]


def _samples(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> dict[tuple[int, int], list[Any]]:
    """(run, comparison) -> (seed, baseline, patched) in order."""
    found: dict[tuple[int, int], list[Any]] = defaultdict(list)
    s = samples.c
    for some in chunks(sorted({row["run"] for row in rows})):
        numbers = sorted({row["number"] for row in rows})
        query = select(s.run, s.comparison, s.seed, s.baseline, s.patched).where(s.run.in_(some))
        if len(numbers) <= len(some):  # of a few comparisons: not all that the runs have
            query = query.where(s.comparison.in_(numbers))
        for run, comparison, *values in connection.execute(query.order_by(s.run, s.comparison, s.number)):
            found[run, comparison].append(tuple(values))
    return found
