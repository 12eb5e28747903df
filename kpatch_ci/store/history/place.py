# SPDX-License-Identifier: GPL-2.0-or-later
"""Where a history is: a file or a server, as a person names it, and how to show that without its password. Imports nothing heavy."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from kpatch_ci.model.errors import UserError
from kpatch_ci.store.cache import cache_root

VARIABLE = "KPATCH_CI_HISTORY"
FOLDER = "history"
FILE = "history.sqlite3"
EXPECTED = "a file, sqlite:///FILE, or postgresql://USER@HOST/DATABASE"
_AUTHORITY = re.compile(r"(\w+://[^:/@\s]*):[^\s]*@")
_PARAMETER = re.compile(r"([?&]\w*pass(?:word|wd)?=)[^&\s]*", re.IGNORECASE)
_SCHEME = re.compile(r"(\w[\w+.-]*)://")
_POSTGRESQL = ("postgresql", "postgres", "postgresql+psycopg")


@dataclass(frozen=True, slots=True)
class Place:
    """``url`` is for SQLAlchemy alone; ``shown`` for people, without a password. ``file``: None for a server."""

    url: str
    shown: str
    file: Path | None


def default_file() -> Path:
    """The history of this machine: in the state directory, which `clean` leaves alone unless asked by name."""
    return cache_root() / "state" / FOLDER / FILE


def without_passwords(text: str) -> str:
    """``text`` with every password of a URL in it as ``***``: to be sure, up to the last @ of a word."""
    return _PARAMETER.sub(r"\1***", _AUTHORITY.sub(r"\1:***@", text))


def find_place(text: str | None = None) -> Place:
    """Where ``text`` says, or (None) the default. Raises UserError."""
    if text is None:
        return _in_file(default_file())
    scheme = _SCHEME.match(text)
    if not text.strip():
        raise UserError("the history's place is empty", expected=EXPECTED)
    if scheme is None:
        return _in_file(Path(text).expanduser().absolute())
    rest = text[scheme.end() :]
    if scheme[1] == "sqlite":
        if not rest.startswith("/") or len(rest) == 1:
            raise UserError(f"no file in {text}", expected=EXPECTED)
        return _in_file(Path(rest[1:]).expanduser().absolute())
    if scheme[1] in _POSTGRESQL:
        return Place(f"postgresql+psycopg://{rest}", without_passwords(text), None)
    raise UserError(f"no history at {without_passwords(text)}: '{scheme[1]}' is not known", expected=EXPECTED)


def _in_file(path: Path) -> Place:
    return Place(f"sqlite:///{path}", str(path), path)
