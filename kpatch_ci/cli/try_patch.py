# SPDX-License-Identifier: GPL-2.0-or-later
"""``kpatch-ci try``: patches from files, no series folder needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.console import Console

from kpatch_ci.cli.checks import check_options, chosen_checks
from kpatch_ci.cli.mails import mail_options, series_asked_for, show_patches
from kpatch_ci.cli.options import chosen, selection
from kpatch_ci.cli.run import perform


@click.command(name="try")
@mail_options
@click.option("--output", type=click.Path(path_type=Path), help="Directory for the reports [results/<run-id>].")
@click.option("--json", "as_json", is_flag=True, help="result.json on stdout; everything else goes to stderr.")
@selection
@check_options
def command(
    *,
    mails: tuple[Path, ...],
    commits: str | None,
    repo: Path | None,
    revision: int | None,
    output: Path | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Test patches straight from where they are, as one series: no folder in patches/ is needed.

    MAILS are whatever `check` takes (see its --help, and docs/intake.md): files, directories, archives, - for standard
    input, a message-id. Everything else is as in `run`: pipeline.yaml says on which machines and with which workloads.

    \b
    Examples:
      ./kpatch-ci try my.patch -t ~/linux --workload hackbench --quick
      ./kpatch-ci try --range v6.1..topic -t ~/linux
    """
    asked = series_asked_for(mails, commits, repo, revision, [options["tree"]] if options["tree"] else [])
    if asked is None:
        raise click.UsageError("nothing to try: give MAILS or --range")
    series, base = asked
    show_patches(Console(stderr=True), series)
    options["tree"] = options["tree"] or base
    checks = chosen_checks(options)
    return perform(chosen(options), [series], jobs=options["jobs"], output=output, as_json=as_json, checks=checks)
