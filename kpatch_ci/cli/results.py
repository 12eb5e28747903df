# SPDX-License-Identifier: GPL-2.0-or-later
"""Finding the result that a person means."""

from __future__ import annotations

from pathlib import Path

from kpatch_ci.model.errors import UserError


def result_file(given: Path | None) -> Path:
    """A result.json: the file, the run's directory, or (None) the latest run below results/. Raises UserError."""
    if given is None:
        latest = Path("results/latest")
        if not latest.exists():
            raise UserError(
                "there is no run here yet", where="results/", expected="./kpatch-ci run first, or name a result.json"
            )
        given = Path("results") / latest.read_text().strip()
    path = given / "result.json" if given.is_dir() else given
    if not path.is_file():
        raise UserError("no such result", where=str(path), expected="a result.json, or the directory that holds it")
    return path
