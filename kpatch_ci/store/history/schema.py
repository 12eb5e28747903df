# SPDX-License-Identifier: GPL-2.0-or-later
"""The schema's version: looked at whenever a history is opened, brought up to date where it is older, refused where it is newer."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, inspect, text

from kpatch_ci.model.errors import UserError
from kpatch_ci.store.history.place import Place

HEAD = "0001"
KNOWN = (HEAD,)
"""Every version that there was, oldest first."""
MIGRATIONS = Path(__file__).parent / "migrations"
TABLE = "alembic_version"
_LOCK = 0x6B706369
"""Number of the advisory lock that keeps two processes on a server from making the tables at once: ``kpci``."""


def version_of(connection: Connection, place: Place) -> str | None:
    """The schema's version, None in an empty database. Raises UserError for a newer one, or for somebody else's tables."""
    names = set(inspect(connection).get_table_names())
    if TABLE not in names:
        if "runs" in names:
            raise UserError("has a table `runs` that is none of ours", where=place.shown, expected="an empty database")
        return None
    found = connection.execute(text(f"SELECT version_num FROM {TABLE}")).scalar()  # noqa: S608 (a constant)
    if found is not None and found not in KNOWN:
        raise UserError(
            f"is a history of schema {found}, made by a newer kpatch-ci: this one knows up to {HEAD}",
            where=place.shown,
            expected="update kpatch-ci, or name another history with --history; nothing was changed",
        )
    return None if found is None else str(found)


def upgrade(connection: Connection, place: Place) -> None:
    """Make the tables, or bring them up to date, within ``connection``'s transaction: all of it, or nothing."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": _LOCK})
    if version_of(connection, place) == HEAD:  # another process did it meanwhile
        return
    from alembic import command  # noqa: PLC0415 (0.1 s, and needed once in a database's life)
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
