# SPDX-License-Identifier: GPL-2.0-or-later
"""``kpatch-ci history changes``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from kpatch_ci.cli.history.shared import figure_filters, history_place, opened, settings_of, wanted
from kpatch_ci.cli.output import print_json, say
from kpatch_ci.config.history import parse_limit
from kpatch_ci.model.errors import UserError
from kpatch_ci.model.history import Change, Line, Night, Standing
from kpatch_ci.model.workload import MIGRATIONS_PER_1000
from kpatch_ci.report.clean import one_line

ARMS = ("baseline", "patched")


@click.command(name="changes")
@figure_filters
@click.option("--arm", type=click.Choice(ARMS), help="Of this arm alone.")
@click.option("--all", "everything", is_flag=True, help="Also differences that are no alert, each with its reason.")
@click.option(
    "--open", "only_open", is_flag=True, help="Only regressions that have not recovered; exit status 1 if any."
)
@click.option(
    "--threshold",
    "thresholds",
    multiple=True,
    metavar="METRIC=LIMIT",
    help="3% of the figure before, 0.05 in its unit, or '10% and 20'. METRIC, WORKLOAD.METRIC or default. Repeatable.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@history_place
def command(
    arm: str | None, everything: bool, only_open: bool, thresholds: tuple[str, ...], as_json: bool, **options: Any
) -> int:
    """Where a figure changed over nights, the first night it showed, and what changed with it: kernel, configuration,
    compiler, QEMU, guest image, workload, machine.

    A night is a recorded run. In deterministic mode every difference is real: --all tells each. An alert is one that crosses its
    threshold and is no accident of kernels or nights (docs/history.md says how that is judged); a regression whose figure
    comes back closes itself. `change` is positive when it got better.

    \b
    Examples:
      ./kpatch-ci history changes --since 30d
      ./kpatch-ci history changes --series wakeup-gran --arch arm64 --workload hackbench --all
      ./kpatch-ci history changes --open --threshold hackbench.time=5% --threshold 'migrations=10% and 50'
    """
    from kpatch_ci.store.history.figures import lines  # noqa: PLC0415 (SQLAlchemy: not for --help)

    limits = {**settings_of(options).limits, **dict(_limit(text) for text in thresholds)}
    found = lines(opened(options), wanted(options))
    if arm:
        found = {line: nights for line, nights in found.items() if line.arm == arm}
    changes = _changes(found, limits)
    shown = [c for c in changes if (c.alert or everything) and (not only_open or c.standing is Standing.OPEN)]
    if as_json:
        print_json({"lines": len(found), "changes": [asdict(change) for change in shown]})
    else:
        _show(shown, changes, len(found))
    return 1 if only_open and shown else 0


def _changes(found: dict[Line, list[Night]], limits: dict[str, Any]) -> list[Change]:
    """Of all lines, oldest first. What is only derived, and tested nowhere, is not looked at."""
    from kpatch_ci.stats.changepoint import Judge, find_changes  # noqa: PLC0415 (scipy: not for --help)

    judge = Judge(limits)
    changes = [
        change
        for line in sorted(found)
        if line.metric != MIGRATIONS_PER_1000.name
        for change in find_changes(line, found[line], judge)
    ]
    return sorted(changes, key=lambda change: change.started)


def _limit(text: str) -> tuple[str, Any]:
    name, separator, limit = text.partition("=")
    if not separator or not name:
        raise UserError(f"'{text}' is no threshold", where="--threshold", expected="METRIC=LIMIT, such as time=3%")
    return name, parse_limit(name, limit)


def _show(shown: Sequence[Change], changes: Sequence[Change], lines: int) -> None:
    """By night and by what changed in it: one cause often moves many figures."""
    from kpatch_ci.stats.attribution import cause_words  # noqa: PLC0415

    groups: dict[tuple[str, ...], list[Change]] = {}
    for change in shown:
        causes = "; ".join(map(cause_words, change.causes)) or "nothing that is recorded"
        groups.setdefault((change.run, change.started[:16], change.before_run, causes), []).append(change)
    for (run, started, before, causes), members in groups.items():
        click.echo(one_line(f"{run} ({started}): changed since {before}: {causes}"))
        for change in members:
            click.echo(f"  {one_line(_words(change))}")
            click.echo(f"    {one_line(change.reason)}")
    alerts = sum(change.alert for change in changes)
    hidden = len(changes) - alerts
    say(
        f"{lines} lines, {alerts} alerts, {hidden} differences that are none"
        + (" (--all tells them)" if hidden else "")
    )


def _words(change: Change) -> str:
    percent = "" if change.change_percent is None else f" {change.change_percent:+.2f} %"
    state = f"recovered in {change.closed_by}" if change.closed_by else str(change.standing)
    return f"{state}{percent}: {change.line.words}: {change.before:.6g} -> {change.after:.6g} {change.line.unit}"
