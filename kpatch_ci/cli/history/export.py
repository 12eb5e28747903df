# SPDX-License-Identifier: GPL-2.0-or-later
"""``kpatch-ci history export``."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from dataclasses import astuple, fields
from typing import TYPE_CHECKING, Any

import click

from kpatch_ci.cli.history.shared import figure_filters, history_place, opened, wanted
from kpatch_ci.report.clean import one_line, safe_json

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

FORMATS = ("jsonl", "csv", "samples")


@click.command(name="export")
@figure_filters
@click.option("--format", "form", type=click.Choice(FORMATS), default="jsonl", help="What, and in which form [jsonl].")
@click.option("--json", "as_json", is_flag=True, help="Same as --format jsonl.")
@history_place
def command(form: str, as_json: bool, **options: Any) -> None:
    """Runs that fit every filter, oldest first, on stdout.

    \b
    jsonl    one result.json a line, whole: `history record` reads it, into another database if need be
    csv      one comparison a line, with its verdict, change, interval, p and the arms' means
    samples  one seed of one comparison a line, with both arms' values

    \b
    Examples:
      ./kpatch-ci history export > all.jsonl
      ./kpatch-ci history export --format csv --series wakeup-gran --metric time > figures.csv
    """
    from kpatch_ci.store.history import figures  # noqa: PLC0415 (SQLAlchemy: not for --help)
    from kpatch_ci.store.history.query import read_runs  # noqa: PLC0415

    database, chosen = opened(options), wanted(options)
    if as_json or form == "jsonl":
        for document in read_runs(database, chosen):
            click.echo(safe_json(json.dumps(document, ensure_ascii=False)))
    elif form == "csv":
        _csv(figures.Figure, figures.figures(database, chosen))
    else:
        _csv(figures.Sample, figures.all_samples(database, chosen))


def _csv(kind: type[DataclassInstance], rows: Iterable[DataclassInstance]) -> None:
    _line([field.name for field in fields(kind)])
    for row in rows:
        _line(["" if value is None else one_line(value) if isinstance(value, str) else value for value in astuple(row)])


def _line(values: list[Any]) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(values)
    click.echo(text.getvalue(), nl=False)
