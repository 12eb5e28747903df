# SPDX-License-Identifier: GPL-2.0-or-later
"""``kpatch-ci history changes``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from kpatch_ci.cli.history.shared import figure_filters, history_place, opened, settings_of, wanted
from kpatch_ci.cli.output import print_json, say
from kpatch_ci.config.history import parse_limit
from kpatch_ci.model.errors import UserError
from kpatch_ci.model.history import Change, Line, Night, Standing
from kpatch_ci.model.workload import MIGRATIONS_PER_1000
from kpatch_ci.report.clean import one_line

if TYPE_CHECKING:
    from kpatch_ci.stats.changepoint import Found

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

    A night is a recorded run. In deterministic mode every difference is real: --all tells each. An alert is a change of a
    workload's figure over all its cases that crosses its threshold and is no accident of kernels or nights, all figures of the
    night taken together (docs/history.md says how that is judged). Cases and counters that moved stand below it and are no alerts
    themselves. A regression whose figure comes back closes itself. `change` is positive when it got better.

    \b
    Examples:
      ./kpatch-ci history changes --since 30d
      ./kpatch-ci history changes --series wakeup-gran --arch arm64 --workload hackbench --all
      ./kpatch-ci history changes --open --threshold hackbench.time=5% --threshold 'migrations=10% and 50'
    """
    from kpatch_ci.store.history.figures import lines  # noqa: PLC0415 (SQLAlchemy: not for --help)
    from kpatch_ci.store.history.query import Filter  # noqa: PLC0415

    limits = {**settings_of(options).limits, **dict(_limit(text) for text in thresholds)}
    asked = wanted(options)
    database = opened(options)
    of_figure = lines(database, replace(asked, case="", metric=""))
    whole = lines(database, Filter(tree=asked.tree, profile=asked.profile, until=asked.until, case="all"))
    found = _found({**of_figure, **whole}, limits, everything=everything)
    fits = _Fits(of_figure, asked.case, asked.metric, arm or "")
    changes = sorted(filter(fits.change, found.changes), key=lambda change: change.started)
    shown = [c for c in changes if not only_open or c.standing is Standing.OPEN]
    count = sum(map(fits.line, of_figure))
    runs = {night.run for nights in of_figure.values() for night in nights}
    reach = [one for run, one in sorted(found.reach.items()) if run in runs]
    if as_json:
        print_json({"lines": count, "changes": [asdict(c) for c in shown], "reach": [asdict(one) for one in reach]})
    else:
        _show(shown, changes, count, everything=everything)
        if reach:
            say(f"{reach[-1].run}, the last night with differences, {reach[-1].words}")
    return 1 if only_open and shown else 0


@dataclass(frozen=True, slots=True)
class _Fits:
    """What was asked for. It chooses what is shown and never what is tested together: an alert is one whoever asks."""

    lines: Mapping[Line, Sequence[Night]]
    case: str
    metric: str
    arm: str

    def line(self, line: Line) -> bool:
        """Whether it was asked for."""
        pairs = ((self.case, line.case), (self.metric, line.metric), (self.arm, line.arm))
        derived = line.metric == MIGRATIONS_PER_1000.name
        return line in self.lines and not derived and all(not wanted or wanted == there for wanted, there in pairs)

    def change(self, change: Change) -> bool:
        """Whether it, or something that it shows in, was asked for."""
        there = any(night.run == change.run for night in self.lines.get(change.line, ()))
        return there and any(map(self.line, (change.line, *(one.line for one in change.shows_in))))


def _found(lines: Mapping[Line, Sequence[Night]], limits: dict[str, Any], *, everything: bool) -> Found:
    """Of all lines. What is only derived, and tested nowhere, is not looked at."""
    from kpatch_ci.stats.changepoint import Judge, find_changes  # noqa: PLC0415 (scipy: not for --help)

    tested = {line: nights for line, nights in lines.items() if line.metric != MIGRATIONS_PER_1000.name}
    return find_changes(tested, Judge(limits), everything=everything)


def _limit(text: str) -> tuple[str, Any]:
    name, separator, limit = text.partition("=")
    if not separator or not name:
        raise UserError(f"'{text}' is no threshold", where="--threshold", expected="METRIC=LIMIT, such as time=3%")
    return name, parse_limit(name, limit)


def _show(shown: Sequence[Change], changes: Sequence[Change], lines: int, *, everything: bool) -> None:
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
            for one in change.shows_in:
                click.echo(f"    shows in {one_line(_figures(one))}")
    alerts = sum(change.alert for change in changes)
    others = f"{len(changes) - alerts} differences that are none" if everything else "--all tells what is none"
    say(f"{lines} lines, {alerts} alerts, {others}")


def _words(change: Change) -> str:
    percent = "" if change.change_percent is None else f" {change.change_percent:+.2f} %"
    state = f"recovered in {change.closed_by}" if change.closed_by else str(change.standing)
    return f"{state}{percent}: {change.line.words}: {change.before:.6g} -> {change.after:.6g} {change.line.unit}"


def _figures(one: Change) -> str:
    percent = "" if one.change_percent is None else f" {one.change_percent:+.2f} %"
    return f"{one.line.case} {one.line.metric}{percent}: {one.before:.6g} -> {one.after:.6g} {one.line.unit}"
