# SPDX-License-Identifier: GPL-2.0-or-later
"""The history in PostgreSQL (a real server) does all that it does in SQLite, which is here put under the full load."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import text

from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.store.history.database import Database
from kpatch_ci.store.history.place import find_place
from kpatch_ci.store.history.query import Filter, list_runs
from kpatch_ci.store.history.record import _insert, record
from kpatch_ci.store.history.rows import rows_of
from tests.contracts.history import HistoryContract, check_whole
from tests.e2e.conftest import Command
from tests.e2e.postgresql import PASSWORD, make_database, server, server_root, url
from tests.fakes.recorded import document

pytestmark = pytest.mark.e2e
_numbers = itertools.count()


@pytest.fixture(scope="session")
def sockets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with server(server_root(), tmp_path_factory.mktemp("pg")) as found:
        yield found


@pytest.fixture
def place(sockets: Path) -> str:
    return make_database(sockets, f"history-{next(_numbers)}")


class TestPostgresql(HistoryContract):
    """Everything that any history must do, on a server."""

    writers = 500
    kills = 40


class TestSqliteAtLength(HistoryContract):
    """The unit tests' SQLite, with as many runs and kills as the server gets."""

    writers = 500
    kills = 40

    @pytest.fixture
    def place(self, tmp_path: Path) -> str:
        return str(tmp_path / "history.sqlite3")


def test_a_wrong_password_is_not_shown(sockets: Path) -> None:
    place = find_place(url(sockets, "postgres", password="wr0ng"))  # noqa: S106
    with pytest.raises(InfrastructureError, match="password authentication failed") as caught:
        record(Database(place), document(0))
    assert "wr0ng" not in str(caught.value)
    assert f"kpci:***@/postgres?host={sockets}" in str(caught.value)
    assert "kpatch-ci history record" in str(caught.value)


def test_a_database_that_is_not_there(sockets: Path) -> None:
    with pytest.raises(InfrastructureError, match='database "nowhere" does not exist'):
        list_runs(Database(find_place(url(sockets, "nowhere"))), Filter())


def test_a_user_who_may_only_read(sockets: Path, place: str) -> None:
    record(Database(find_place(place)), document(0))
    name = place.rpartition("/")[2].partition("?")[0] if "@/" not in place else place.split("@/")[1].partition("?")[0]
    with psycopg.connect(place, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE \"reader-{name}\" LOGIN PASSWORD 'r'".encode())
        connection.execute(f'GRANT SELECT ON ALL TABLES IN SCHEMA public TO "reader-{name}"'.encode())
    reader = Database(find_place(place.replace(f"kpci:{PASSWORD}", f"reader-{name}:r")))
    assert len(list_runs(reader, Filter())) == 1
    with pytest.raises(InfrastructureError, match="permission denied"):
        record(reader, document(1))


def test_a_connection_that_breaks_leaves_nothing(place: str) -> None:
    database = Database(find_place(place))
    record(database, document(0))
    with pytest.raises(InfrastructureError, match="terminating connection"):
        _break_off(database, place)
    assert check_whole(database) == ["20260101-020000"]


def _break_off(database: Database, place: str) -> None:
    """Insert a run, and have the server end the connection before it is committed."""
    with database.writing() as connection, psycopg.connect(place, autocommit=True) as other:
        assert _insert(connection, rows_of(document(1), 0.0)).new
        number = connection.execute(text("SELECT pg_backend_pid()")).scalar()
        other.execute("SELECT pg_terminate_backend(%s)", [number])


def test_from_sqlite_to_postgresql_and_back(kpatch_ci: Command, place: str, tmp_path: Path) -> None:
    file = tmp_path / "history.sqlite3"
    for number in range(3):
        record(Database(find_place(str(file))), document(number))
    moved = kpatch_ci("history", "export", "--history", file)
    (tmp_path / "all.jsonl").write_text(moved.stdout)
    done = kpatch_ci("history", "record", "--history", place, tmp_path / "all.jsonl", "--json")
    assert done.code == 0
    assert PASSWORD not in done.stdout + done.stderr
    assert [one["new"] for one in done.result["results"]] == [True] * 3
    listed = kpatch_ci("history", "list", "--history", place, "--json")
    assert listed.result == kpatch_ci("history", "list", "--history", file, "--json").result
    back = [json.loads(line) for line in kpatch_ci("history", "export", "--history", place).stdout.splitlines()]
    assert back == [json.loads(line) for line in moved.stdout.splitlines()]
