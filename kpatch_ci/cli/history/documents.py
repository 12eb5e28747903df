# SPDX-License-Identifier: GPL-2.0-or-later
"""Documents out of the history and off the disk, checked alike."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kpatch_ci.cli.results import result_file
from kpatch_ci.model.errors import UserError
from kpatch_ci.report.document import document_of, load_document
from kpatch_ci.report.schema import Document

if TYPE_CHECKING:
    from kpatch_ci.store.history.database import Database

LINES = (".jsonl", ".ndjson")


def recorded(database: Database, name: str) -> Document:
    """The run called ``name``. Raises UserError."""
    from kpatch_ci.store.history.query import read_run  # noqa: PLC0415 (SQLAlchemy: not for --help)

    return document_of(read_run(database, name), f"{database.place.shown}, run {name}")


def on_disk(given: Path) -> Iterator[tuple[str, Document, Any]]:
    """Where it is, what it holds, and that as it was read: of a result.json, a run's directory, or an export (.jsonl). Raises UserError."""
    if given.suffix not in LINES:
        path = result_file(given)
        yield str(path), load_document(path), json.loads(path.read_bytes())
        return
    try:
        with given.open(encoding="utf-8") as stream:
            for number, line in enumerate(stream, 1):
                where = f"{given}:{number}"
                if line.strip():
                    data = _json(line, where)
                    yield where, document_of(data, where), data
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot be read: {error}", where=str(given)) from error


def _json(line: str, where: str) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        raise UserError(f"is damaged, no JSON: {error}", where=where, expected="a line of `history export`") from error
