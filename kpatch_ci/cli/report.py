# SPDX-License-Identifier: GPL-2.0-or-later
"""``kpatch-ci report``: a run's reports, shown or written again."""

from __future__ import annotations

from pathlib import Path

import click

from kpatch_ci.cli.output import shows_everything, tables, verbosity
from kpatch_ci.cli.results import result_file
from kpatch_ci.report.document import load_document
from kpatch_ci.report.terminal import print_details, print_failures, verdict_table
from kpatch_ci.report.write import REPORTS, render


@click.command(name="report")
@click.argument("result", required=False, type=click.Path(path_type=Path))
@click.option(
    "--format", "form", type=click.Choice(["terminal", *REPORTS]), default="terminal", help="Which report [terminal]."
)
@verbosity
def command(result: Path | None, form: str) -> int:
    """Show a run's verdicts (the latest run's, or RESULT's); with -v also cases and counters.

    Other formats are made anew from result.json alone and go to stdout. report.html also shows the boot consoles, where the
    run's logs/ still lies beside result.json.
    """
    path = result_file(result)
    document = load_document(path)
    if form != "terminal":
        click.echo(render(form, document, path.parent), nl=False)
        return 0
    out = tables()
    out.print(verdict_table(document))
    if shows_everything():
        print_details(out, document)
    print_failures(out, document, path.parent)
    return 0
