# SPDX-License-Identifier: GPL-2.0-or-later
"""Opening a history: SQLite as several processes can share it, or PostgreSQL; the schema up to date."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import NullPool

from kpatch_ci.model.errors import InfrastructureError, UserError
from kpatch_ci.store.atomic import disk_errors
from kpatch_ci.store.history.faults import database_errors
from kpatch_ci.store.history.place import EXPECTED, Place
from kpatch_ci.store.history.schema import HEAD, upgrade, version_of

BUSY_SECONDS = 60.0
"""How long a writer of SQLite waits for the others; one of them takes some 10 ms."""
CONNECT_SECONDS = 10


class Database:
    """A history that is open. Every transaction is a connection of its own: nothing is held between two."""

    def __init__(self, place: Place, *, busy_seconds: float = BUSY_SECONDS) -> None:
        self.place = place
        self._busy_seconds = busy_seconds
        self._engine = _engine(place, busy_seconds)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that sees one state. Raises InfrastructureError, and UserError where the schema is newer or there is none."""
        if self.place.file is not None and not self.place.file.exists():
            raise nothing_yet(self.place)  # opening would make it
        with database_errors(self.place):
            with self._snapshot() as connection:
                found = version_of(connection, self.place)
                if found == HEAD:
                    yield connection
                    return
            if found is None:
                raise nothing_yet(self.place)
            self.prepare()
            with self._snapshot() as connection:
                yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that is whole or absent; SQLite lets one process write at a time, the others wait. Raises as reading()."""
        with database_errors(self.place), self._begin() as connection:
            yield connection

    def prepare(self) -> None:
        """Make the tables where there are none; bring them up to date where they are of an older version."""
        if self.place.file is not None:
            _make_directory(self.place.file.parent)
        with database_errors(self.place):
            with self._engine.connect() as connection:
                found = version_of(connection, self.place)
            if found != HEAD:
                if self.place.file is not None:
                    _use_wal(self.place.file, self._busy_seconds)
                with self._begin() as connection:
                    upgrade(connection, self.place)

    def _snapshot(self) -> Connection:
        """SQLite's transactions see one state by themselves."""
        connection = self._engine.connect()
        return connection if self.place.file else connection.execution_options(isolation_level="REPEATABLE READ")

    @contextmanager
    def _begin(self) -> Iterator[Connection]:
        with self._engine.connect().execution_options(kpci_write=True) as connection, connection.begin():
            yield connection


def _make_directory(folder: Path) -> None:
    try:
        with disk_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        what = f"the history's directory {folder} cannot be made: {error.strerror}"
        raise InfrastructureError(what, hint="name another place with --history") from error


def nothing_yet(place: Place) -> UserError:
    """There is no history, or an empty one."""
    return UserError(
        "there is no history yet",
        where=place.shown,
        expected="./kpatch-ci run records itself; ./kpatch-ci history record RESULT... adds results that are on disk",
    )


def _engine(place: Place, busy_seconds: float) -> Engine:
    if place.file is not None:
        # The path goes past the URL's syntax: a ? or # in a directory's name is part of it.
        file = place.file
        engine = create_engine("sqlite://", creator=lambda: _open(file, busy_seconds), poolclass=NullPool)
        event.listen(engine, "begin", _sqlite_begin)
        return engine
    try:
        url = make_url(place.url)
        options: dict[str, Any] = {} if "connect_timeout" in url.query else {"connect_timeout": CONNECT_SECONDS}
        return create_engine(url, connect_args=options, poolclass=NullPool)
    except (ArgumentError, ValueError) as error:
        raise UserError("is no URL of a database", where=place.shown, expected=EXPECTED) from error


def _open(file: Path, busy_seconds: float) -> sqlite3.Connection:
    """isolation_level None: transactions begin where we say, and take the tables' making with them."""
    connection = sqlite3.connect(file, timeout=busy_seconds, isolation_level=None)
    for setting in ("synchronous = FULL", "foreign_keys = ON"):  # FULL: what was committed outlives a power cut
        connection.execute(f"PRAGMA {setting}")
    return connection


def _use_wal(file: Path, busy_seconds: float) -> None:
    """Readers and the writer do not wait for each other then; the file remembers it. SQLite does not wait for a lock here."""
    deadline = time.monotonic() + busy_seconds
    with contextlib.closing(_open(file, busy_seconds)) as connection:
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
            else:
                return


def _sqlite_begin(connection: Connection) -> None:
    """Python's sqlite3 would begin late, and a reader that then writes fails at once, whatever the timeout: so IMMEDIATE."""
    writes = connection.get_execution_options().get("kpci_write")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
