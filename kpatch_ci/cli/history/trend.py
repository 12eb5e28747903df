# SPDX-License-Identifier: GPL-2.0-or-later
"""``kpatch-ci history trend``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click
from rich.table import Table

from kpatch_ci.cli.history.shared import figure_filters, history_place, opened, wanted
from kpatch_ci.cli.output import print_json, say, tables
from kpatch_ci.model.errors import UserError
from kpatch_ci.report.clean import one_line

if TYPE_CHECKING:
    from kpatch_ci.store.history.figures import Figure

MANY = 8
"""As many choices as an error names."""


@click.command(name="trend")
@figure_filters
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@history_place
def command(as_json: bool, **options: Any) -> None:
    """One comparison over all runs that have it, newest last: baseline, patched, change and verdict.

    The filters must leave one comparison: a series, an architecture, a workload, a case, a metric. Without --case it is the
    workload's primary figure (over all cases), without --metric the workload's first metric. `change` is positive when
    patched is better. Figures of unlike machines, modes or seeds do not belong beside each other: `compare` says what differs.

    \b
    Examples:
      ./kpatch-ci history trend --series wakeup-gran --arch arm64 --workload hackbench
      ./kpatch-ci history trend --series wakeup-gran --arch arm64 --workload hackbench --case groups=8 --metric migrations
    """
    from kpatch_ci.store.history.figures import figures  # noqa: PLC0415 (SQLAlchemy: not for --help)

    found = figures(opened(options), wanted(options))
    found = [one for one in found if (options["case"] and options["metric"]) or _first(one, options)]
    if not found:
        say("no recorded comparison fits")
    names = list(dict.fromkeys((f.series, f.arch, f.workload, f.case, f.metric, f.mode) for f in found))
    if len(names) > 1:
        shown = "; ".join(" ".join(name) for name in names[:MANY]) + ("; ..." if len(names) > MANY else "")
        raise UserError(f"{len(names)} comparisons fit", expected=f"name one of them with the options: {shown}")
    if as_json:
        print_json({"runs": [asdict(one) for one in found]})
    elif found:
        _show(found)


def _first(figure: Figure, options: dict[str, Any]) -> bool:
    """Whether a figure is the one that is meant where case or metric are not named."""
    if options["case"]:
        return figure.metric not in ("context_switches", "migrations", "wakeups", "migrations_per_1000_switches")
    return figure.primary


def _show(found: Sequence[Figure]) -> None:
    one = found[0]
    click.echo(
        one_line(
            f"{one.series} {one.arch} {one.workload} {one.case}: {one.metric} in {one.unit}, {one.better} is better"
        )
    )
    table = Table(box=None, pad_edge=False)
    for name in ("run", "tree", "profile"):
        table.add_column(name, overflow="fold")
    for name in ("baseline", "patched", "change %", "interval %"):
        table.add_column(name, justify="right")
    table.add_column("verdict")
    for row in found:
        interval = "" if row.ci_low is None or row.ci_high is None else f"{row.ci_low:+.2f} .. {row.ci_high:+.2f}"
        numbers = (_figure(row.baseline_mean), _figure(row.patched_mean))
        change = "" if row.change_percent is None else f"{row.change_percent:+.2f}"
        names = map(one_line, (row.run, f"{row.tree} ({row.release})", row.profile))
        table.add_row(*names, *numbers, change, interval, row.verdict)
    tables().print(table, markup=False)


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"
