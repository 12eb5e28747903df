# SPDX-License-Identifier: GPL-2.0-or-later
"""``kpatch-ci history``: all recorded runs. A table of verbs, each imported only when it is typed."""

from __future__ import annotations

import importlib

import click

VERBS = {
    "list": "Runs, newest last; by series, architecture, workload, status, tree, time.",
    "show": "One run's verdicts and cases, as `report` shows them.",
    "compare": "Two runs side by side, as `compare` does.",
    "trend": "One comparison over all runs.",
    "changes": "Where a figure changed over nights, since when, and what changed with it.",
    "export": "Runs as JSON lines, comparisons or samples as CSV.",
    "record": "Put results that are on disk into the history.",
}
MODULES = {"list": "listing"}
"""Where a module is not called as its verb: a module ``list`` would be what ``list`` means in this package."""


class _Verbs(click.Group):
    """Verbs from the table."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Names, in the table's order."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import one verb's module."""
        if cmd_name not in VERBS:
            return None
        command = importlib.import_module(f"{__name__}.{MODULES.get(cmd_name, cmd_name)}").command
        if not isinstance(command, click.Command):
            raise TypeError(f"{cmd_name}.command is no click command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The table, without importing anything."""
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))


@click.command(name="history", cls=_Verbs, subcommand_metavar="VERB [ARGUMENTS]")
def command() -> None:
    """All recorded runs.

    `run` and `try` record themselves at their end: the whole result.json, and its figures as rows to search. The history is
    a file of this machine (its place: `history list -v`), or a PostgreSQL database that many machines share. Which one:
    --history, else the variable KPATCH_CI_HISTORY, else `history:` of pipeline.yaml. Keep passwords in ~/.pgpass: what a
    command line names, everybody on the machine can read.

    \b
    Examples:
      ./kpatch-ci history list --series wakeup-gran --since 2026-11-01
      ./kpatch-ci history show latest
      ./kpatch-ci history compare 20261129-0200 latest
      ./kpatch-ci history trend --series wakeup-gran --arch arm64 --workload hackbench
      ./kpatch-ci history changes --since 30d
      ./kpatch-ci history export --format csv > figures.csv
      ./kpatch-ci history record results/*/
    """
