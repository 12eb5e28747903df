# SPDX-License-Identifier: GPL-2.0-or-later
"""What a database says when it cannot -> which of the two families it is, what happened, and what to do."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import exc

from kpatch_ci.model.errors import InfrastructureError, KpatchError, UserError
from kpatch_ci.store.history.place import Place, without_passwords

_AGAIN = "your results are on disk: `./kpatch-ci history record RESULT...` records them once that is done"
_SQLITE = (
    ("locked", "is locked by another process", f"wait for it or end it; {_AGAIN}"),
    ("disk is full", "does not fit on its disk, which is full", f"free some space; {_AGAIN}"),
    ("disk i/o error", "cannot be written or read: the disk is full, too small or broken", f"look at `df` and dmesg; {_AGAIN}"),
    ("unable to open", "cannot be opened or made", "look at the permissions of the file and its directory, or name another with --history"),
    ("readonly", "may not be written by you", f"become its owner, or name another with --history; {_AGAIN}"),
    ("malformed", "is damaged", "DAMAGED"),
    ("not a database", "is no history database, or is damaged", "DAMAGED"),
)  # fmt: skip
"""What SQLite's words contain (sqlite.org/rescode.html), what happened, what to do."""


def _damaged(place: Place) -> str:
    return (
        f"nothing was changed. Move {place.shown} away, and {place.shown}-wal and -shm with it where they are (`sqlite3 FILE .recover`"
        " may save what it holds), then record the results that are on disk again: ./kpatch-ci history record results/*/"
    )


def explained(error: exc.SQLAlchemyError | sqlite3.Error, place: Place) -> KpatchError:
    """``error`` as one of ours, with the history's place and without a password."""
    said = without_passwords(" ".join(str(getattr(error, "orig", None) or error).split()))
    if isinstance(error, exc.DataError):
        return UserError(f"a value does not fit into the history: {said}", where=place.shown)
    if place.file is not None:
        for words, what, hint in _SQLITE:
            if words in said.lower():
                done = _damaged(place) if hint == "DAMAGED" else hint
                return InfrastructureError(f"the history {place.shown} {what} ({said})", hint=done)
    elif isinstance(error, exc.OperationalError):
        hint = f"is the server there, and are user, password (~/.pgpass) and database right? {_AGAIN}"
        return InfrastructureError(f"the history {place.shown} cannot be reached or written: {said}", hint=hint)
    return InfrastructureError(f"the history {place.shown} cannot be used: {said}", hint=_AGAIN)


@contextmanager
def database_errors(place: Place) -> Iterator[None]:
    """Turn what SQLAlchemy raises into an InfrastructureError or UserError that names the place; a key that is there already passes."""
    try:
        yield
    except exc.IntegrityError:
        raise
    except OverflowError as error:  # SQLite's driver, of a number beyond 64 bits
        raise UserError(f"a value does not fit into the history: {error}", where=place.shown) from error
    except (exc.SQLAlchemyError, sqlite3.Error) as error:
        raise explained(error, place) from error
