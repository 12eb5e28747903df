# SPDX-License-Identifier: GPL-2.0-or-later
"""``kpatch-ci report``: a run's reports, shown or written again."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kpatch_ci.cli.output import shows_everything, tables, verbosity
from kpatch_ci.cli.results import result_file
from kpatch_ci.model.errors import UserError
from kpatch_ci.report.document import load_document
from kpatch_ci.report.formats import FORMATS, check_formats, check_origin, file_name
from kpatch_ci.report.published import schema_text
from kpatch_ci.report.schema import Document
from kpatch_ci.report.terminal import print_details, print_failures, verdict_table
from kpatch_ci.report.write import render
from kpatch_ci.store.atomic import write_bytes

TERMINAL = "terminal"
BINARY = ("samples.parquet",)


@click.command(name="report")
@click.argument("result", required=False, type=click.Path(path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice([TERMINAL, *FORMATS, *FORMATS.values()]),
    metavar="NAME",
    default=TERMINAL,
    help=f"Which report: {', '.join([TERMINAL, *FORMATS])}; or the name of its file [terminal].",
)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write it here, not to stdout.")
@click.option(
    "--origin", metavar="NAME", help="Of kcidb: the submitting CI system [what pipeline.yaml says, kpatchci]."
)
@click.option("--schema", is_flag=True, help="Print the JSON Schema of result.json, and nothing of any result.")
@verbosity
def command(result: Path | None, form: str, output: Path | None, origin: str | None, schema: bool) -> int:
    """Show a run's verdicts (the latest run's, or RESULT's); with -v also cases and counters.

    Other formats are made anew from result.json alone and go to stdout, or to --output. report.html also shows the boot consoles, where
    the run's logs/ still lies beside result.json. kcidb, openmetrics, csv and parquet are described in docs/exports.md; parquet needs
    pyarrow, which is not installed by default.

    \b
    Examples:
      ./kpatch-ci report results/20240506-070809 --format kcidb -o kcidb.json
      ./kpatch-ci report --format csv | head
      ./kpatch-ci report --schema
    """
    if schema:
        click.echo(schema_text(), nl=False)
        return 0
    check_formats([form])
    path = result_file(result)
    document = load_document(path)
    if origin is not None:
        document = document.model_copy(update={"origin": check_origin(origin)})
    if form != TERMINAL:
        _written(form, document, path.parent, output)
        return 0
    if output is not None:
        raise UserError("the terminal's report has no file", where="--output", expected="a --format")
    _shown(document, path.parent)
    return 0


def _written(form: str, document: Document, directory: Path, output: Path | None) -> None:
    if output is None and file_name(form) in BINARY and at_terminal():
        raise UserError(f"{form} is binary and stdout is a terminal", where="--format", expected="--output FILE")
    if output is not None and output.exists() and not output.is_file():
        raise UserError("is no regular file", where=str(output), expected="leave --output out to write to stdout")
    content = render(form, document, directory)
    if output is None:
        click.echo(content, nl=False)
    else:
        write_bytes(output, content)


def at_terminal() -> bool:
    """Whether stdout is a person's screen."""
    return sys.stdout.isatty()


def _shown(document: Document, directory: Path) -> None:
    out = tables()
    out.print(verdict_table(document))
    if shows_everything():
        print_details(out, document)
    print_failures(out, document, directory)
