# SPDX-License-Identifier: GPL-2.0-or-later
"""Where a history is, and that no password of it is ever shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpatch_ci.cli.options import command_line
from kpatch_ci.model.errors import InfrastructureError, UserError
from kpatch_ci.store.history.database import Database
from kpatch_ci.store.history.place import default_file, find_place, without_passwords
from kpatch_ci.store.history.query import Filter, list_runs


def test_default_is_in_the_state_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KPATCH_CI_CACHE", str(tmp_path))
    assert default_file() == find_place().file == tmp_path / "state" / "history" / "history.sqlite3"


@pytest.mark.parametrize("text", ["h.db", "sqlite:///h.db", "./h.db"])
def test_files(text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    place = find_place(text)
    assert (place.file, place.shown) == (tmp_path / "h.db", str(tmp_path / "h.db"))


def test_an_absolute_sqlite_url() -> None:
    assert find_place("sqlite:////var/lib/h.db").file == Path("/var/lib/h.db")


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_servers(scheme: str) -> None:
    place = find_place(f"{scheme}://ci:s3cret@db.example/kpatch")
    assert place.url == "postgresql+psycopg://ci:s3cret@db.example/kpatch"
    assert (place.shown, place.file) == (f"{scheme}://ci:***@db.example/kpatch", None)


@pytest.mark.parametrize("text", ["mysql://ci:s3cret@db/x", "sqlite://", "sqlite:///", "  "])
def test_what_is_no_place(text: str) -> None:
    with pytest.raises(UserError) as caught:
        find_place(text)
    assert "postgresql://USER@HOST/DATABASE" in str(caught.value)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://ci:s3cret@db/x", "postgresql://ci:***@db/x"),
        ("postgresql://ci:s3@cr/et@db/x", "postgresql://ci:***@db/x"),
        ("postgresql://:s3cret@db/x", "postgresql://:***@db/x"),
        ("postgresql://db/x?user=ci&password=s3cret&sslmode=require", "postgresql://db/x?user=ci&password=***&sslmode=require"),
        ("postgresql://db/x?sslpassword=s3cret", "postgresql://db/x?sslpassword=***"),
        ("postgresql://ci@db/x", "postgresql://ci@db/x"),
        ("-t https://git.example/linux.git@v6.1", "-t https://git.example/linux.git@v6.1"),
    ],
)  # fmt: skip
def test_passwords_are_hidden(text: str, shown: str) -> None:
    assert without_passwords(text) == shown


def test_a_recorded_command_line_has_no_password() -> None:
    assert (
        command_line(["run", "--history", "postgresql://ci:s3cret@db/x"])
        == "./kpatch-ci run --history 'postgresql://ci:***@db/x'"
    )
    assert command_line(["run", "--history=postgresql://ci:s3cret@db/x"]).count("s3cret") == 0


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    database = Database(find_place(f"postgresql://ci:s3cret@/x?host={tmp_path}"))
    with pytest.raises(InfrastructureError, match="cannot be reached") as caught:
        list_runs(database, Filter())
    assert str(tmp_path) in str(caught.value)
    assert "kpatch-ci history record" in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_a_url_that_is_none() -> None:
    with pytest.raises(UserError, match="no URL of a database") as caught:
        Database(find_place("postgresql://ci:s3cret@db:port/x"))
    assert "s3cret" not in str(caught.value)
