# SPDX-License-Identifier: GPL-2.0-or-later
"""``kpatch-ci nightly``: every item at its tree's tip, held against the nights before; a site and a mail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kpatch_ci.cli.history.recording import place_option
from kpatch_ci.cli.output import verbosity
from kpatch_ci.kernel.build import default_jobs


@click.command(name="nightly")
@click.option("-c", "--config", "config_file", type=click.Path(path_type=Path), help="Pipeline file [pipeline.yaml].")
@click.option("--item", "names", multiple=True, metavar="NAME", help="Only this item. Repeatable.")
@click.option("--force", is_flag=True, help="Run what is unchanged, too.")
@click.option("--dry-run", is_flag=True, help="Say what would run and why; build, boot and record nothing.")
@click.option("--site", type=click.Path(path_type=Path), help="Directory of the site [`site:` of nightly:].")
@click.option("--site-only", is_flag=True, help="Run nothing: remake the site from the history.")
@click.option("--json", "as_json", is_flag=True, help="The night as one JSON document on stdout.")
@click.option("-j", "--jobs", type=click.IntRange(1, 1024), default=default_jobs, help="CPUs to use [all].")
@place_option
@verbosity
def command(**options: Any) -> int:
    """Run a list of trees and series, each tree at its tip, and say what changed since the last night.

    `nightly:` of pipeline.yaml lists the items. A git tree's tip is its ref as it is now; for debian:X.Y the archive is asked for a
    newer package. An item whose inputs are those of its last good night is not run: in deterministic mode it would give the
    same figures. The others go through the ordinary pipeline and into the history; changes over the nights are found as
    `history changes` finds them. Then the site is written (index, a page a series, a page a run, feed.xml) and the
    mail (results/nightly/NIGHT/mail.eml; sent only where `mail: send:` says so). An item that fails costs no other item.
    A night that was killed goes on when the command is typed again.

    \b
    Exit status: 0 quiet, 1 something failed or regressed, 2 usage or configuration, 3 part of the night could not be done.
    \b
    Examples:
      ./kpatch-ci nightly --dry-run                  what would run, and why
      ./kpatch-ci nightly                            all items; then open nightly-site/index.html
      ./kpatch-ci nightly --item stable --force      one of them, changed or not
      ./kpatch-ci nightly --site-only --site /srv/www/kpatch
    \b
    From cron, which mails what is printed (with -q: only where something happened):
      0 2 * * *  cd /srv/kpatch-ci && ./kpatch-ci nightly -q
    From systemd: docs/nightly/kpatch-ci-nightly.{service,timer}; docs/nightly.md says how, and how in CI.
    """
    from kpatch_ci.cli.nightly.perform import perform  # noqa: PLC0415 (SQLAlchemy, scipy, Jinja: not for --help)

    return perform(options)
