# SPDX-License-Identifier: GPL-2.0-or-later
"""``kpatch-ci history compare``."""

from __future__ import annotations

from typing import Any

import click

from kpatch_ci.cli.history.documents import recorded
from kpatch_ci.cli.history.shared import history_place, opened
from kpatch_ci.cli.output import print_json
from kpatch_ci.report.diff import compare_documents, diff_json, diff_text


@click.command(name="compare")
@click.argument("a")
@click.argument("b", default="latest")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@history_place
def command(a: str, b: str, as_json: bool, **options: Any) -> int:
    """What differs between two recorded runs: first what was measured under what (fingerprints), then figures and verdicts.

    A and B are names that `list` shows, starts of them, or `latest`. Exit status 0 when every figure is the same, 1 when not.
    """
    database = opened(options)
    documents = [recorded(database, name) for name in (a, b)]
    diff = compare_documents(*documents)
    if as_json:
        print_json(diff_json(diff))
    else:
        click.echo(diff_text(diff, *(document.run_id for document in documents)))
    return 0 if diff.identical else 1
