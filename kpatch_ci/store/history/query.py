# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs of a history: listed by filter, found by name, read back whole."""

from __future__ import annotations

import json
import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, exists, func, select

from kpatch_ci.model.digest import digest
from kpatch_ci.model.errors import InfrastructureError, UserError
from kpatch_ci.store.history.database import Database
from kpatch_ci.store.history.place import Place
from kpatch_ci.store.history.tables import arches, comparisons, documents, runs, series

LATEST = "latest"


@dataclass(frozen=True, slots=True)
class Filter:
    """Which runs; empty means all. ``since`` and ``until``: seconds since 1970, both included. ``limit``: the newest of them."""

    series: str = ""
    arch: str = ""
    workload: str = ""
    case: str = ""
    metric: str = ""
    status: str = ""
    tree: str = ""
    """Label of the tree, or the start of its release."""
    profile: str = ""
    since: float | None = None
    until: float | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class RunRow:
    """One line of a list."""

    name: str
    started: str
    status: str
    mode: str
    profile: str
    tree: str
    release: str
    seconds: float
    series: tuple[str, ...]
    verdicts: dict[str, int] = field(default_factory=dict)
    """Primary figures by verdict."""


def list_runs(database: Database, wanted: Filter) -> list[RunRow]:
    """The runs that fit, oldest first."""
    with database.reading() as connection:
        found = [dict(row) for row in connection.execute(newest(wanted)).mappings()][::-1]
        keys = [row["id"] for row in found]
        names, verdicts = _names(connection, keys), _verdicts(connection, keys)
    return [
        RunRow(
            **{key: row[key] for key in ("name", "started", "status", "mode", "profile", "seconds")},
            tree=row["tree_label"],
            release=row["tree_release"],
            series=tuple(names[row["id"]]),
            verdicts=verdicts[row["id"]],
        )
        for row in found
    ]


def newest(wanted: Filter) -> Select[Any]:
    """SELECT of the runs that fit, newest first."""
    query = (
        select(runs)
        .where(*run_conditions(wanted), *_has_comparison(wanted))
        .order_by(runs.c.started_at.desc(), runs.c.id.desc())
    )
    return query.limit(wanted.limit) if wanted.limit is not None else query


def run_conditions(wanted: Filter) -> list[ColumnElement[bool]]:
    """WHERE over ``runs`` alone."""
    c = runs.c
    found = [column == value for column, value in ((c.status, wanted.status), (c.profile, wanted.profile)) if value]
    if wanted.tree:
        found.append((c.tree_label == wanted.tree) | c.tree_release.startswith(wanted.tree, autoescape=True))
    if wanted.since is not None:
        found.append(c.started_at >= wanted.since)
    if wanted.until is not None:
        found.append(c.started_at <= wanted.until)
    return found


def _has_comparison(wanted: Filter) -> list[ColumnElement[bool]]:
    """What is asked of series, arch and workload must hold of one and the same comparison."""
    inner = [series.c.run == runs.c.id]
    if wanted.series:
        inner.append(series.c.name == wanted.series)
    of_comparison = _of_comparison(wanted)
    if wanted.arch or of_comparison:
        inner += [arches.c.run == runs.c.id, arches.c.series == series.c.number]
    if wanted.arch:
        inner.append(arches.c.arch == wanted.arch)
    if of_comparison:
        inner += [comparisons.c.run == runs.c.id, comparisons.c.arch == arches.c.number, *of_comparison]
    return [exists().where(and_(*inner)).correlate(runs)] if len(inner) > 1 else []


def _of_comparison(wanted: Filter) -> list[ColumnElement[bool]]:
    asked = ((wanted.workload, "workload"), (wanted.case, "case"), (wanted.metric, "metric"))
    return [comparisons.c[name] == value for value, name in asked if value]


def _names(connection: Connection, keys: Sequence[int]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = defaultdict(list)
    for some in chunks(keys):
        query = (
            select(series.c.run, series.c.name).where(series.c.run.in_(some)).order_by(series.c.run, series.c.number)
        )
        for run, name in connection.execute(query):
            found[run].append(name)
    return found


def _verdicts(connection: Connection, keys: Sequence[int]) -> dict[int, dict[str, int]]:
    found: dict[int, dict[str, int]] = defaultdict(dict)
    c = comparisons.c
    for some in chunks(keys):
        query = (
            select(c.run, c.verdict, func.count())
            .where(c.run.in_(some), c.is_primary)
            .group_by(c.run, c.verdict)
            .order_by(c.run, c.verdict)
        )
        for run, verdict, count in connection.execute(query):
            found[run][verdict] = count
    return found


CHUNK = 500
"""Keys in one IN (...): SQLite has a limit of 32,766 parameters, older ones of 999."""


def chunks(keys: Sequence[int]) -> Iterator[Sequence[int]]:
    """``keys`` in parts that a statement can hold."""
    for start in range(0, len(keys), CHUNK):
        yield keys[start : start + CHUNK]


def read_run(database: Database, name: str) -> dict[str, Any]:
    """result.json of the run called ``name`` (or the start of its name, or ``latest``). Raises UserError where that is none or several."""
    with database.reading() as connection:
        key = _key(connection, name, database.place)
        return _document(connection, key, database.place)


def read_runs(database: Database, wanted: Filter) -> Iterator[dict[str, Any]]:
    """result.json of every run that fits, oldest first; one of them in memory at a time."""
    with database.reading() as connection:
        keys = [row.id for row in connection.execute(newest(wanted))][::-1]
        for key in keys:
            yield _document(connection, key, database.place)


def _key(connection: Connection, name: str, place: Place) -> int:
    if name == LATEST:
        last = connection.execute(newest(Filter(limit=1))).first()
        if last is None:
            raise UserError("holds no run", where=place.shown)
        return int(last.id)
    query = select(runs.c.id, runs.c.name).order_by(runs.c.name)
    exact = connection.execute(query.where(runs.c.name == name)).first()
    if exact:
        return int(exact.id)
    found = connection.execute(query.where(runs.c.name.startswith(name, autoescape=True)).limit(6)).all()
    if len(found) == 1:
        return int(found[0].id)
    if found:
        raise UserError(f"several runs begin with {name}", where=place.shown, expected=", ".join(r.name for r in found))
    raise UserError(
        f"no run {name}", where=place.shown, expected="a name that `kpatch-ci history list` shows, or `latest`"
    )


def _document(connection: Connection, key: int, place: Place) -> dict[str, Any]:
    row = connection.execute(
        select(runs.c.name, runs.c.digest, documents.c.zlib).where(runs.c.id == key, documents.c.run == runs.c.id)
    ).one()
    try:
        found = json.loads(zlib.decompress(row.zlib))
        whole = isinstance(found, dict) and digest(found) == row.digest
    except (zlib.error, ValueError):
        whole = False
    if not whole:
        hint = "its rows are still there (`list`, `trend`); its result.json, where you have it, is whole"
        raise InfrastructureError(f"run {row.name} in the history {place.shown} is damaged", hint=hint)
    document: dict[str, Any] = found
    return document
