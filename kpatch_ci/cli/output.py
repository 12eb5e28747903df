# SPDX-License-Identifier: GPL-2.0-or-later
"""What verbs share when they talk: messages go to stderr, data to stdout, ``-v`` and ``-q`` wherever they are written."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kpatch_ci.report.clean import printable, safe_json

if TYPE_CHECKING:
    from rich.console import Console

F = TypeVar("F", bound=Callable[..., Any])

log = logging.getLogger("kpatch_ci")
WIDE = 160
_LEVELS = {-1: logging.ERROR, 0: logging.INFO, 1: logging.DEBUG}


class _Format(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        word = f"{record.levelname.lower()}: " if record.levelno >= logging.WARNING else ""
        return f"kpatch-ci: {word}{printable(record.getMessage())}"


class _Stderr(logging.Handler):
    """Writes to whatever stderr is at that moment."""

    def emit(self, record: logging.LogRecord) -> None:
        click.echo(self.format(record), err=True)


def set_verbosity(level: int) -> None:
    """-1: errors only; 0: what is done; 1 and more: everything. Safe to call again."""
    if not log.handlers:
        handler = _Stderr()
        handler.setFormatter(_Format())
        log.addHandler(handler)
        log.propagate = False
    log.setLevel(_LEVELS[max(-1, min(1, level))])


def shows_everything() -> bool:
    """Whether ``-v`` was given."""
    return log.isEnabledFor(logging.DEBUG)


def say(text: str) -> None:
    """One line for the person in front: stderr, unless ``-q``."""
    log.info("%s", text)


def tables() -> Console:
    """For tables on stdout: as wide as the terminal, and wide enough for every column where there is none."""
    from kpatch_ci.cli.console import SafeConsole  # noqa: PLC0415 (not for --help)

    return SafeConsole() if SafeConsole().is_terminal else SafeConsole(width=WIDE)


def print_json(value: object) -> None:
    """The one JSON document of a verb with ``--json``: stdout."""
    click.echo(safe_json(json.dumps(value, indent=1, ensure_ascii=False)))


def size(count: int) -> str:
    """Bytes for people, in powers of 1000, as disks are sold."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def _verbose(_: click.Context, __: click.Parameter, value: bool) -> None:
    if value:
        set_verbosity(1)


def _quiet(_: click.Context, __: click.Parameter, value: bool) -> None:
    if value:
        set_verbosity(-1)


def verbosity(function: F) -> F:
    """Decorator: ``-v`` and ``-q``, for the group and for every verb."""
    quiet = click.option("-q", "--quiet", is_flag=True, expose_value=False, callback=_quiet, help="Say only errors.")
    loud = click.option("-v", "--verbose", is_flag=True, expose_value=False, callback=_verbose, help="Say more.")
    return loud(quiet(function))
