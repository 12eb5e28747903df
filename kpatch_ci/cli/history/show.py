# SPDX-License-Identifier: GPL-2.0-or-later
"""``kpatch-ci history show``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kpatch_ci.cli.history.documents import recorded
from kpatch_ci.cli.history.shared import history_place, opened
from kpatch_ci.cli.output import tables
from kpatch_ci.report.terminal import print_details, print_failures, verdict_table
from kpatch_ci.report.write import REPORTS, render


@click.command(name="show")
@click.argument("run", default="latest")
@click.option(
    "--format", "form", type=click.Choice(["terminal", *REPORTS]), default="terminal", help="Which report [terminal]."
)
@click.option("--json", "as_json", is_flag=True, help="Same as --format result.json.")
@history_place
def command(run: str, form: str, as_json: bool, **options: Any) -> None:
    """One recorded run's verdicts and cases, or any other of its reports.

    RUN is a name that `list` shows, the start of one, or `latest`. Logs are not in the history: they lie where the run left
    its reports.

    \b
    Examples:
      ./kpatch-ci history show
      ./kpatch-ci history show 20261129-0200 --format report.txt
    """
    document = recorded(opened(options), run)
    nowhere = Path("results") / document.run_id
    if as_json or form != "terminal":
        click.echo(render("result.json" if as_json else form, document, nowhere), nl=False)
        return
    out = tables()
    out.print(verdict_table(document))
    print_details(out, document)
    print_failures(out, document, nowhere)
