# SPDX-License-Identifier: GPL-2.0-or-later
"""``kpatch-ci check``: intake and applicability, nothing built."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from kpatch_ci.cli.check_show import say_branch, say_kept, show
from kpatch_ci.cli.mails import mail_options, series_asked_for
from kpatch_ci.cli.options import DEFAULT_FILE, chosen, fuzz_option
from kpatch_ci.cli.output import print_json, say, tables, verbosity
from kpatch_ci.config.load import Config
from kpatch_ci.debian.apt import Archives
from kpatch_ci.kernel.source import TreeCache
from kpatch_ci.model.build import Tree
from kpatch_ci.model.status import Status
from kpatch_ci.pipeline.check import check_all
from kpatch_ci.pipeline.run import load_all
from kpatch_ci.pipeline.session import open_tools
from kpatch_ci.series.base import SECONDS
from kpatch_ci.series.commits import commit_series
from kpatch_ci.series.worktree import keep as keep_worktree


@click.command(name="check")
@mail_options
@click.option("-t", "--tree", "trees", multiple=True, help="Tree to check on; repeatable [pipeline.yaml's].")
@click.option("-c", "--config", "config_file", type=click.Path(path_type=Path), help=f"Pipeline file [{DEFAULT_FILE}].")
@click.option(
    "--series", multiple=True, metavar="NAME", help="Without MAILS: only this series of the file. Repeatable."
)
@fuzz_option
@click.option(
    "--base-time",
    type=click.FloatRange(min=0),
    default=SECONDS,
    metavar="S",
    help=f"Search a tree's history for the series' base for at most S seconds; 0: not at all [{SECONDS:.0f}].",
)
@click.option(
    "--keep",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Make DIR a git worktree of the tree with the series on it, the first conflict left in it. One series, one tree.",
)
@click.option(
    "--branch",
    metavar="NAME",
    help="Commit what applies, a commit a patch, as branch NAME of the repository that is named then. One series, one tree.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@verbosity
def command(
    *,
    mails: tuple[Path, ...],
    commits: str | None,
    repo: Path | None,
    revision: int | None,
    trees: tuple[str, ...],
    config_file: Path | None,
    series: tuple[str, ...],
    fuzz: int,
    base_time: float,
    keep: Path | None,
    branch: str | None,
    as_json: bool,
) -> int:
    """Read patches, say what was taken, and whether and how it applies. Without MAILS: the series of pipeline.yaml.

    MAILS are files (mails, mbox, pages of mail archives, diffs, git show's output), directories (of patches, maildir, quilt
    series), archives of such (tar, zip, .gz, .bz2, .xz), - for standard input, or a message-id or its address (needs b4).
    Of several revisions the newest is taken; cover letters and replies are never applied. docs/intake.md has all of it.
    What their words claim of figures is counted, with -v listed (docs/claims.md).

    \b
    The table says of each series on each tree:
      as mailed       git apply takes it; hunks that moved are listed
      three-way       by a merge with the files that it was made for
      port            by the port in patches/ for that tree
      fuzz            only with --fuzz N: context ignored, every such hunk listed
      port needed     its text is not there, nor the files that it was made for
      conflict        those are there, and both sides changed the same lines
      partly there    what does not apply is in the tree already
      already there   it can be taken off the tree
      superseded      the history has it (its result, or its subject), and went on
    Every hunk that does not apply is shown with what the tree has instead and,
    where there is a history, who changed that. In a git tree the commits are
    named that have the files as the series wants them, newest first.

    \b
    Examples:
      ./kpatch-ci check my.patch -t ~/linux -t debian:6.1
      ./kpatch-ci check thread.mbox --revision 2
      ./kpatch-ci check --range v6.1..topic -t ~/linux
      git show | ./kpatch-ci check -
      ./kpatch-ci check my.mbox -t ~/linux@v6.6 --fuzz 2
      ./kpatch-ci check --series stack-workqueue -t debian:5.10
      ./kpatch-ci check --series stack-workqueue -t debian:5.10 --keep ~/port
      ./kpatch-ci check debian/patches -t ~/linux@v6.1 --branch as-debian
    """
    asked = series_asked_for(mails, commits, repo, revision, trees)
    if asked and series:
        raise click.UsageError("give MAILS, --range or --series, not two of them")
    config = read_config(config_file, series)
    wanted = [asked[0]] if asked else list(load_all(config))
    specs = trees or ((asked and asked[1]) or config.tree,)
    if (keep or branch) and (len(wanted) != 1 or len(trees) > 1):
        raise click.UsageError(f"{'--keep' if keep else '--branch'} takes one series and one tree")
    places = [get_tree(source, spec) for source in [open_trees(config)] for spec in specs]
    rows = check_all(wanted, places, fuzz=fuzz, base_seconds=base_time, say=say)
    made = None
    if branch and rows[0].result.status is Status.PASSED:
        made = commit_series(wanted[0], rows[0].result, places[0], branch)
        say_branch(made, branch, places[0])
    if as_json:
        print_json([row.document() | ({"branch": asdict(made)} if made else {}) for row in rows])
    else:
        show(tables(), wanted, rows)
    if keep:
        say(f"writing {places[0].label} to {keep} (a kernel takes about half a minute)")
        say_kept(keep_worktree(wanted[0], places[0], keep, fuzz=fuzz), wanted[0], places[0])
    return 0 if all(row.result.status is Status.PASSED for row in rows) else 1


def read_config(config_file: Path | None, series: tuple[str, ...]) -> Config:
    """The pipeline file, where a verb has no options to narrow it but the series."""
    defaults: dict[str, Any] = {
        "arch": (),
        "workload": (),
        "seeds": None,
        "profile": None,
        "quick": False,
        "tree": None,
        "fuzz": 0,
    }
    return chosen({"config_file": config_file, "series": series, **defaults})


def open_trees(config: Config) -> TreeCache:
    """The trees of the cache; installs what is missing."""
    archives = Archives(*config.archives) if config.archives else None
    cache, tools, archives = open_tools(config.tools, archives, say)
    return TreeCache(cache, tools, archives)


def get_tree(source: TreeCache, spec: str) -> Tree:
    """One tree; says so where it has to be fetched."""
    if source.will_fetch(spec):
        say(f"fetching {spec} (about a minute, once)")
    return source.get(spec)
