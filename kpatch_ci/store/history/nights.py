# SPDX-License-Identifier: GPL-2.0-or-later
"""Which runs of a history belong to which night and item: that stands in their fingerprints, under ``nightly.``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, select

from kpatch_ci.model.nightly import NightRun
from kpatch_ci.store.history.database import Database
from kpatch_ci.store.history.query import chunks
from kpatch_ci.store.history.tables import arches, fingerprints, runs, series

KEY = "nightly"
_NAMES = ("item", "night", "inputs")


def night_runs(database: Database, item: str = "") -> list[NightRun]:
    """The runs of all nights (or of one item), oldest first; empty where the history has none."""
    f, r = fingerprints.c, runs.c
    named = select(f.run).where(f.arch == "", f.key == f"{KEY}.item", *([f.value == item] if item else []))
    keys = [f"{KEY}.{name}" for name in _NAMES]
    with database.reading() as connection:
        found: dict[int, dict[str, str]] = {run: {} for run in connection.execute(named).scalars()}
        for some in chunks(sorted(found)):
            query = select(f.run, f.key, f.value).where(f.run.in_(some), f.arch == "", f.key.in_(keys))
            for run, key, value in connection.execute(query):
                found[run][key.removeprefix(f"{KEY}.")] = value
        rows: list[Any] = []
        for some in chunks(sorted(found)):
            columns = (r.id, r.name, r.started, r.started_at, r.status, r.mode, r.profile, r.seconds)
            trees = (r.tree_label, r.tree_release, r.tree_commit)
            rows += connection.execute(select(*columns, *trees).where(r.id.in_(some))).all()
    rows.sort(key=lambda row: (row.started_at, row.id))
    return [
        NightRun(
            run=row.name,
            **{name: found[row.id].get(name, "") for name in _NAMES},
            started=row.started,
            status=row.status,
            mode=row.mode,
            profile=row.profile,
            tree=row.tree_label,
            release=row.tree_release,
            commit=row.tree_commit,
            seconds=row.seconds,
        )
        for row in rows
    ]


@dataclass(frozen=True, slots=True)
class PartRow:
    """A series on an architecture in a run."""

    run: str
    series: str
    arch: str
    status: str
    reason: str
    applied: str


def night_parts(database: Database) -> list[PartRow]:
    """Those of all runs of nights, oldest run first, in each run's order."""
    s, a, r = series.c, arches.c, runs.c
    query = (
        select(r.name, s.name, a.arch, a.status, a.reason, a.apply_method)
        .join(runs, r.id == a.run)
        .join(series, (s.run == a.run) & (s.number == a.series))
        .where(a.run.in_(_of_nights()))
        .order_by(r.started_at, r.id, a.number)
    )
    with database.reading() as connection:
        return [PartRow(*row) for row in connection.execute(query)]


def night_fingerprints(database: Database) -> dict[str, dict[str, str]]:
    """Run -> its fingerprint's leaves by dotted key (an architecture's own begin with it), without the night's own."""
    f, r = fingerprints.c, runs.c
    query = select(r.name, f.arch, f.key, f.value).join(runs, r.id == f.run).where(f.run.in_(_of_nights()))
    found: dict[str, dict[str, str]] = {}
    with database.reading() as connection:
        for run, arch, key, value in connection.execute(query.order_by(f.run, f.arch, f.key)):
            if not key.startswith(f"{KEY}."):
                found.setdefault(run, {})[f"{arch}.{key}" if arch else key] = value
    return found


def _of_nights() -> Select[Any]:
    return select(fingerprints.c.run).where(fingerprints.c.arch == "", fingerprints.c.key == f"{KEY}.item")
