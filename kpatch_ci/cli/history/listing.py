# SPDX-License-Identifier: GPL-2.0-or-later
"""``kpatch-ci history list``."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click
from rich.table import Table

from kpatch_ci.cli.history.shared import history_place, opened, run_filters, wanted
from kpatch_ci.cli.output import print_json, say, tables
from kpatch_ci.report.clean import one_line

if TYPE_CHECKING:
    from kpatch_ci.store.history.query import RunRow


@click.command(name="list")
@run_filters
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@history_place
def command(as_json: bool, **options: Any) -> None:
    """Recorded runs that fit every filter, newest last: when, on which tree, which series, with which verdicts.

    \b
    Examples:
      ./kpatch-ci history list --limit 20
      ./kpatch-ci history list --series wakeup-gran --arch arm64 --workload hackbench --since 30d
      ./kpatch-ci history list --status failed --tree 6.1 --json
    """
    from kpatch_ci.store.history.query import list_runs  # noqa: PLC0415 (SQLAlchemy: not for --help)

    found = list_runs(opened(options), wanted(options))
    if as_json:
        print_json({"runs": [asdict(row) for row in found]})
    elif found:
        _show(found)
    else:
        say("no recorded run fits")


def _show(found: list[RunRow]) -> None:
    table = Table(box=None, pad_edge=False)
    for name in ("run", "started (UTC)", "status", "mode", "profile", "tree", "series", "primary figures"):
        table.add_column(name, overflow="fold")
    for row in found:
        verdicts = ", ".join(f"{count} {verdict}" for verdict, count in row.verdicts.items())
        tree = f"{row.tree} ({row.release})" if row.release else row.tree
        cells = (row.name, row.started[:16], row.status, row.mode, row.profile, tree, ", ".join(row.series), verdicts)
        table.add_row(*map(_cell, cells))
    tables().print(table)


def _cell(text: str) -> str:
    from rich.markup import escape  # noqa: PLC0415

    return escape(one_line(text))
