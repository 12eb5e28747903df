# SPDX-License-Identifier: GPL-2.0-or-later
"""``kpatch-ci explain``: why each stage of a run ran or was reused."""

from __future__ import annotations

from pathlib import Path

import click
from rich.table import Table
from rich.text import Text

from kpatch_ci.cli.output import print_json, tables, verbosity
from kpatch_ci.cli.results import result_file
from kpatch_ci.report.document import load_document


@click.command(name="explain")
@click.argument("result", required=False, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@verbosity
def command(result: Path | None, as_json: bool) -> int:
    """Each stage of the latest run (or of RESULT): whether it ran, how long, and which input had changed."""
    document = load_document(result_file(result))
    if as_json:
        print_json([stage.model_dump(mode="json") for stage in document.stages])
        return 0
    table = Table(box=None, pad_edge=False)
    for heading in ("stage", "status", "seconds", "key", "why"):
        table.add_column(heading, justify="right" if heading == "seconds" else "left")
    for stage in document.stages:
        table.add_row(Text(stage.stage), stage.status, f"{stage.seconds:.1f}", stage.key, Text(stage.why))
    tables().print(table)
    return 0
