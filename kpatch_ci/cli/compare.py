# SPDX-License-Identifier: GPL-2.0-or-later
"""``kpatch-ci compare``: two results side by side."""

from __future__ import annotations

from pathlib import Path

import click

from kpatch_ci.cli.output import print_json, shows_everything, verbosity
from kpatch_ci.cli.results import result_file
from kpatch_ci.model.errors import UserError
from kpatch_ci.report.diff import DocumentDiff, compare_documents, diff_json, diff_text, input_text
from kpatch_ci.report.document import load_document


@click.command(name="compare")
@click.argument("a", type=click.Path(path_type=Path))
@click.argument("b", type=click.Path(path_type=Path))
@click.option("--unlike", is_flag=True, help="Compare figures that were measured with unlike things, too.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@verbosity
def command(a: Path, b: Path, unlike: bool, as_json: bool) -> int:
    """What differs between two runs: first what was measured under what (fingerprints), then figures and verdicts.

    A and B are result.json files of any age, or run directories. With -v also the figures that are the same. Runs that differ in QEMU,
    compiler, kernel tree, baseline kernel, configuration, guest image, machine or mode are not compared: what differs is listed, unless
    --unlike asks for the figures all the same. Other patched kernels, thresholds, and the host's CPU where samples are deterministic are
    no obstacle, and are named. What an old result does not record is named too. Unlike accelerators are never compared.

    \b
    Exit status: 0 every figure is the same, 1 some differ, 2 not compared.
    """
    documents = [load_document(result_file(path)) for path in (a, b)]
    diff = compare_documents(*documents)
    refused = not (diff.comparable or unlike)
    if as_json:
        print_json(diff_json(diff, refused=refused))
    if refused:
        raise UserError(_refusal(diff, str(a), str(b)))
    if not as_json:
        click.echo(diff_text(diff, str(a), str(b), every=shows_everything()), nl=False)
    return 0 if diff.identical else 1


def _refusal(diff: DocumentDiff, name_a: str, name_b: str) -> str:
    lines = [f"  {input_text(i, name_a, name_b)}" for i in diff.unlike]
    head = "these runs differ in what they measured with, and their figures with it:"
    return "\n".join([head, *lines, "--unlike compares them all the same"])
