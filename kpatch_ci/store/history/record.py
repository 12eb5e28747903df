# SPDX-License-Identifier: GPL-2.0-or-later
"""One run into a history: whole or not at all, once however often it is recorded."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, insert, select
from sqlalchemy.exc import IntegrityError

from kpatch_ci.store.history import tables
from kpatch_ci.store.history.database import Database
from kpatch_ci.store.history.faults import explained
from kpatch_ci.store.history.rows import Rows, rows_of

TRIES = 5
DIGITS = 8
_ORDER = ("documents", "fingerprints", "series", "arches", "builds", "comparisons", "samples")
"""A table comes after those that it refers to."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """``name``: what the history calls the run. ``new``: whether it was not there before."""

    name: str
    new: bool


def record(database: Database, document: Mapping[str, Any], original: Mapping[str, Any] | None = None) -> Recorded:
    """Keep the run whose result.json holds ``document`` (``original``: as it was read, see rows_of). Safe beside other writers.

    The same document again changes nothing. Another one of the same run id (two machines may start in the same second)
    gets a part of its digest behind its name. Raises UserError and InfrastructureError.
    """
    rows = rows_of(document, time.time(), original)
    database.prepare()
    for _ in range(TRIES):
        try:
            with database.writing() as connection:
                return _insert(connection, rows)
        except IntegrityError as error:  # on a server: another writer took the name between our look and our insert
            clash = error
    raise explained(clash, database.place)


def _insert(connection: Connection, rows: Rows) -> Recorded:
    runs = tables.runs
    known = connection.execute(select(runs.c.name).where(runs.c.digest == rows.run["digest"])).scalar()
    if known is not None:
        return Recorded(known, new=False)
    name = rows.run["run_id"]
    if connection.execute(select(runs.c.id).where(runs.c.name == name)).first():
        name = f"{name}~{rows.run['digest'][:DIGITS]}"
    key = connection.execute(insert(runs).returning(runs.c.id), {**rows.run, "name": name}).scalar_one()
    for table in _ORDER:
        children = [{"run": key, **row} for row in rows.children[table]]
        if children:
            connection.execute(insert(tables.metadata.tables[table]), children)
    return Recorded(name, new=True)
