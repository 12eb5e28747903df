# SPDX-License-Identifier: GPL-2.0-or-later
"""``kpatch-ci compare``: two results side by side."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from kpatch_ci.cli.output import print_json, shows_everything, verbosity
from kpatch_ci.cli.results import result_file
from kpatch_ci.report.diff import compare_documents, diff_text
from kpatch_ci.report.document import load_document


@click.command(name="compare")
@click.argument("a", type=click.Path(path_type=Path))
@click.argument("b", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@verbosity
def command(a: Path, b: Path, as_json: bool) -> int:
    """What differs between two runs: first what was measured under what (fingerprints), then figures and verdicts.

    With -v also the figures that are the same. Exit status 0 when every figure is the same, 1 when not. A and B are
    result.json files or run directories.
    """
    documents = [load_document(result_file(path)) for path in (a, b)]
    diff = compare_documents(*documents)
    if as_json:
        print_json(asdict(diff))
    else:
        click.echo(diff_text(diff, str(a), str(b), every=shows_everything()), nl=False)
    return 0 if diff.identical else 1
