# SPDX-License-Identifier: GPL-2.0-or-later
"""What the history's verbs share: which history, which runs."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kpatch_ci.cli.history.recording import meant, place_option
from kpatch_ci.cli.options import DEFAULT_FILE
from kpatch_ci.cli.output import log, verbosity
from kpatch_ci.config.history import HistorySettings, read_history_settings
from kpatch_ci.model.errors import UserError
from kpatch_ci.model.status import Status

if TYPE_CHECKING:
    from kpatch_ci.store.history.database import Database
    from kpatch_ci.store.history.query import Filter

F = TypeVar("F", bound=Callable[..., Any])
_AGO = re.compile(r"(\d+)\s*([hdw])")
_UNIT = {"h": "hours", "d": "days", "w": "weeks"}
WHEN = "2026-11-30, 2026-11-30T02:00, or 12h, 30d, 8w ago"


def history_place(function: F) -> F:
    """``--history``, ``-c``, ``-v``, ``-q``."""
    file = click.option(
        "-c", "--config", "config_file", type=click.Path(path_type=Path), help="Pipeline file [pipeline.yaml]."
    )
    return place_option(file(verbosity(function)))


def run_filters(function: F) -> F:
    """Options that say which runs."""
    for decorate in (
        click.option("--series", default="", metavar="NAME", help="Runs with this series."),
        click.option("--arch", default="", metavar="ARCH", help="... on this architecture."),
        click.option("--workload", default="", metavar="NAME", help="... with this workload."),
        click.option("--tree", default="", metavar="TREE", help="On this tree: debian:6.1, or the start of a release."),
        click.option("--status", type=click.Choice([str(s) for s in Status]), help="That ended so."),
        click.option("--profile", default="", metavar="NAME", help="Of this profile."),
        click.option("--since", metavar="TIME", help=f"Started then or later: {WHEN}."),
        click.option("--until", metavar="TIME", help="Started then or earlier; a day counts whole."),
        click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the newest N."),
    ):
        function = decorate(function)
    return function


def figure_filters(function: F) -> F:
    """Options that say which runs, and which of their comparisons."""
    case = click.option("--case", default="", metavar="CASE", help="... of this case, `all` for the primary figure.")
    metric = click.option("--metric", default="", metavar="NAME", help="... with this metric.")
    return run_filters(case(metric(function)))


def settings_of(options: dict[str, Any]) -> HistorySettings:
    """``history:`` of the pipeline file that is meant. Raises UserError where one was named and is not there."""
    given: Path | None = options["config_file"]
    if given is not None and not given.exists():
        raise UserError("no such file", where=str(given))
    return read_history_settings(given or Path(DEFAULT_FILE))


def opened(options: dict[str, Any]) -> Database:
    """The history that is meant. Raises UserError."""
    from kpatch_ci.store.history.database import Database  # noqa: PLC0415 (SQLAlchemy: not for --help)

    place = meant(options["history"], settings_of(options))
    log.debug("history: %s", place.shown)
    return Database(place)


def wanted(options: dict[str, Any]) -> Filter:
    """What the options of run_filters() say; ``case`` and ``metric`` where a verb has them."""
    from kpatch_ci.store.history.query import Filter  # noqa: PLC0415

    texts = ("series", "arch", "workload", "case", "metric", "status", "tree", "profile")
    return Filter(
        **{name: str(options.get(name) or "") for name in texts},
        since=moment(options["since"], "--since") if options["since"] else None,
        until=moment(options["until"], "--until", end=True) if options["until"] else None,
        limit=options["limit"],
    )


def moment(text: str, option: str, *, end: bool = False, now: datetime.datetime | None = None) -> float:
    """Seconds since 1970 (UTC where no zone is given); of a day its first second, or (``end``) its last. Raises UserError."""
    ago = _AGO.fullmatch(text.strip())
    try:
        if ago:
            before = datetime.timedelta(**{_UNIT[ago[2]]: int(ago[1])})
            return ((now or datetime.datetime.now(datetime.UTC)) - before).timestamp()
        when = datetime.datetime.fromisoformat(text.strip())
    except (ValueError, OverflowError) as error:
        raise UserError(f"'{text}' is no time", where=option, expected=WHEN) from error
    if when.tzinfo is None:
        when = when.replace(tzinfo=datetime.UTC)
    whole_day = end and re.fullmatch(r"\d{4}-?\d{2}-?\d{2}", text.strip())
    return (when + datetime.timedelta(days=1, microseconds=-1) if whole_day else when).timestamp()
