# SPDX-License-Identifier: GPL-2.0-or-later
"""The history in SQLite: all that any history must do, and what happens to a file."""

from __future__ import annotations

import contextlib
import resource
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.store.history import database as database_module
from kpatch_ci.store.history.database import Database
from kpatch_ci.store.history.place import find_place
from kpatch_ci.store.history.query import Filter, list_runs, read_run
from kpatch_ci.store.history.record import record
from tests.contracts.history import PROJECT, HistoryContract, check_whole
from tests.fakes.recorded import document

HINT = "kpatch-ci history record"


class TestSqlite(HistoryContract):
    """Everything that any history must do."""

    @pytest.fixture
    def place(self, tmp_path: Path) -> str:
        return str(tmp_path / "a ?#%20 folder" / "history.sqlite3")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "history.sqlite3"


def opened(file: Path, busy_seconds: float = 0.2) -> Database:
    return Database(find_place(str(file)), busy_seconds=busy_seconds)


@contextlib.contextmanager
def refused(file: Path, *words: str) -> Iterator[None]:
    with pytest.raises(InfrastructureError) as caught:
        yield
    for word in (str(file), *words):
        assert word in str(caught.value)


def test_a_locked_one_is_named_and_works_again(file: Path) -> None:
    record(opened(file), document(0))
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with refused(file, "is locked by another process", HINT):
            record(opened(file), document(1))
        assert len(list_runs(opened(file), Filter())) == 1  # readers do not wait
        other.execute("ROLLBACK")
    assert record(opened(file), document(1)).new


def test_what_is_no_database_is_left_alone(file: Path) -> None:
    file.write_text("my shopping list, which is longer than a page header\n" * 100)
    before = file.read_bytes()
    with refused(file, "no history database", "-wal and -shm", HINT):
        record(opened(file), document(0))
    with refused(file, "no history database"):
        list_runs(opened(file), Filter())
    assert file.read_bytes() == before


def test_a_damaged_one_is_named_and_left_alone(file: Path) -> None:
    for number in range(3):
        record(opened(file), document(number))
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data = bytearray(file.read_bytes())
    page = int.from_bytes(data[16:18], "big")
    for start in range(page, len(data), page):  # all pages but the first: its header is well
        data[start : start + 64] = b"\xa5" * 64
    file.write_bytes(bytes(data))
    with refused(file, "is damaged", "-wal and -shm", HINT):
        list_runs(opened(file), Filter())
    with refused(file, "is damaged"):
        record(opened(file), document(4))


def test_a_damaged_document_is_never_passed_off_as_whole(file: Path) -> None:
    record(opened(file), document(0))
    with contextlib.closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE documents SET zlib = substr(zlib, 1, length(zlib) - 9)")
    with refused(file, "run 20260101-020000", "is damaged"):
        read_run(opened(file), "latest")
    assert len(list_runs(opened(file), Filter())) == 1


def test_a_full_disk_loses_nothing(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record(opened(file), document(0))
    real = database_module._open

    def small(path: Path, busy: float) -> sqlite3.Connection:
        connection = real(path, busy)
        connection.execute("PRAGMA max_page_count = 1")  # SQLite raises it to what there is
        return connection

    with monkeypatch.context() as patched:
        patched.setattr(database_module, "_open", small)
        done = [document(0)["run_id"]]
        with refused(file, "disk, which is full", HINT):
            for number in range(1, 50):  # the first of them find room in pages that are there
                done.append(record(opened(file), document(number)).name)
    assert check_whole(opened(file)) == done
    assert record(opened(file), document(60)).new


def test_a_file_that_may_not_grow_loses_nothing(file: Path) -> None:
    record(opened(file), document(0))
    limit = 100_000  # the -wal file, too: it is what grows

    def no_more() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    argv = [sys.executable, "-m", "tests.contracts.history_writer", str(file), "1", "1000"]
    done = subprocess.run(
        argv, cwd=PROJECT, capture_output=True, text=True, preexec_fn=no_more, check=False, timeout=300
    )
    assert "InfrastructureError" in done.stderr
    assert str(file) in done.stderr
    assert check_whole(opened(file)) == sorted(["20260101-020000", *done.stdout.split()])


def test_a_place_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with refused(tmp_path / "file", "cannot be made"):
        record(opened(tmp_path / "file" / "history"), document(0))
    with refused(tmp_path, "cannot be opened"):
        record(opened(tmp_path), document(0))


def test_reading_makes_no_file(file: Path) -> None:
    with pytest.raises(Exception, match="there is no history yet"):
        list_runs(opened(file), Filter())
    assert not file.exists()


def test_one_that_may_not_be_written(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record(opened(file), document(0))
    real = database_module._open

    def read_only(path: Path, busy: float) -> sqlite3.Connection:
        connection = real(path, busy)
        connection.execute("PRAGMA query_only = 1")
        return connection

    monkeypatch.setattr(database_module, "_open", read_only)
    with refused(file, "may not be written", HINT):
        record(opened(file), document(1))
