# SPDX-License-Identifier: GPL-2.0-or-later
"""Which history a command means, and recording a run at its end. SQLAlchemy is imported only when something is recorded."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from kpatch_ci.cli.output import log, say
from kpatch_ci.config.history import HistorySettings
from kpatch_ci.model.errors import KpatchError
from kpatch_ci.report.schema import Document
from kpatch_ci.store.history.place import VARIABLE, Place, find_place

F = TypeVar("F", bound=Callable[..., Any])
Keep = Place | None
"""Where to record a run; None: nowhere."""

place_option = click.option(
    "--history",
    "history",
    metavar="PLACE",
    help="File, or postgresql://USER@HOST/DATABASE [KPATCH_CI_HISTORY, else `history:` of pipeline.yaml, else this machine's].",
)


def history_options(function: F) -> F:
    """``--history PLACE`` and ``--no-history``, of verbs that record."""
    off = click.option("--no-history", is_flag=True, help="Do not record this run.")
    return place_option(off(function))


def where_to_keep(options: Mapping[str, Any], settings: HistorySettings) -> Keep:
    """Where this run is to be recorded. Raises UserError for what is no place, before any work is done."""
    if options["no_history"]:
        if options["history"]:
            raise click.UsageError("--history and --no-history contradict each other")
        return None
    return meant(options["history"], settings)


def meant(given: str | None, settings: HistorySettings) -> Place:
    """The command line's history, else the environment's, else pipeline.yaml's, else this machine's. Raises UserError."""
    return find_place(given or os.environ.get(VARIABLE) or settings.place)


def keep(document: Document, directory: Path, place: Keep) -> str:
    """Record a run; its name there, empty where it is in none. Where that fails the run is no worse for it: a warning says
    why, and how to record it later.
    """
    if place is None:
        return ""
    try:
        from kpatch_ci.store.history.database import Database  # noqa: PLC0415 (0.3 s that --help shall not wait for)
        from kpatch_ci.store.history.record import record  # noqa: PLC0415

        done = record(Database(place), document.model_dump(mode="json", by_alias=True))
    except (KpatchError, ImportError) as error:
        log.warning("this run is not in the history: %s", error)
        log.warning("its result is whole; to record it later: ./kpatch-ci history record %s", directory)
        return ""
    say(f"history: {'recorded' if done.new else 'known already'} as {done.name}")
    return done.name
