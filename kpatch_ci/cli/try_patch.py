# SPDX-License-Identifier: GPL-2.0-or-later
"""``kpatch-ci try``: patches from files, no series folder needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kpatch_ci.cli.options import chosen, selection
from kpatch_ci.cli.run import perform
from kpatch_ci.pipeline.run import safe_name
from kpatch_ci.series.folder import series_from_files


@click.command(name="try")
@click.argument("mails", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--output", type=click.Path(path_type=Path), help="Directory for the reports [results/<run-id>].")
@click.option("--json", "as_json", is_flag=True, help="result.json on stdout; everything else goes to stderr.")
@selection
def command(mails: tuple[Path, ...], output: Path | None, as_json: bool, **options: Any) -> int:
    """Test patches straight from files (mails, mbox, pasted archive pages, bare diffs), as one series in their order.

    Everything else is as in `run`: pipeline.yaml says on which machines and with which workloads.

    \b
    Example:
      ./kpatch-ci try my.patch -t ~/linux --workload hackbench --quick
    """
    series = series_from_files(list(mails), safe_name(mails[0].stem))
    return perform(chosen(options), [series], jobs=options["jobs"], output=output, as_json=as_json)
