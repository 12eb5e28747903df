# SPDX-License-Identifier: GPL-2.0-or-later
"""MAILS, --range, --repo, --revision: what `check` and `try` take patches from, and what they say they took."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.text import Text

from kpatch_ci.cli.output import shows_everything
from kpatch_ci.kernel.source import split_ref
from kpatch_ci.model.series import Patch, Series
from kpatch_ci.pipeline.run import safe_name
from kpatch_ci.report.claimlines import claim_lines
from kpatch_ci.series.folder import series_from_files, series_from_patches
from kpatch_ci.series.gitrange import read_range

F = TypeVar("F", bound=Callable[..., Any])


def mail_options(function: F) -> F:
    """MAILS and the options that say which patches are meant."""
    for decorate in (
        click.argument("mails", nargs=-1, type=click.Path(path_type=Path)),
        click.option(
            "--range", "commits", metavar="FROM..TO", help="Commits of a git repository (or a branch) instead of MAILS."
        ),
        click.option(
            "--repo", type=click.Path(path_type=Path), help="The repository that --range is about [that of --tree]."
        ),
        click.option(
            "--revision", type=click.IntRange(1), metavar="N", help="Take revision N of the series [the newest]."
        ),
    ):
        function = decorate(function)
    return function


def series_asked_for(
    mails: Sequence[Path], commits: str | None, repo: Path | None, revision: int | None, trees: Sequence[str]
) -> tuple[Series, str | None] | None:
    """The series that MAILS or --range name, None where neither is given; with a range the tree that it begins at.

    Raises click.UsageError for options that contradict each other, and what intake raises.
    """
    if commits is None:
        if repo is not None:
            raise click.UsageError("--repo is about --range, which is not given")
        if not mails:
            if revision is not None:
                raise click.UsageError("--revision is about MAILS, which are not given")
            return None
        return series_from_files(list(mails), safe_name(mails[0].stem), revision), None
    if mails or revision is not None:
        raise click.UsageError("--range takes patches from git: give it without MAILS and --revision")
    place = repo or next((path for tree in trees if (path := Path(split_ref(tree)[0]).expanduser()).is_dir()), Path())
    patches, account = read_range(place, commits)
    series = series_from_patches(patches, account, safe_name(commits), f"{commits} of {place}")
    return series, f"{place.absolute()}@{account.base_commit}" if account.base_commit else None


def show_patches(out: Console, series: Series) -> None:
    """What was taken, from where, with what was repaired; then what was assumed and left out."""
    for number, patch in enumerate(series.patches, 1):
        count = f" ({number} of {len(series.patches)})" if len(series.patches) > 1 else ""
        out.print(Text(f"{series.name}{count}: {f'{patch.prefix} {patch.subject}'.strip()}", style="bold"))
        out.print(Text(f"  by {_author(patch)}, {len(patch.paths)} file(s): {', '.join(patch.paths)}"))
        facts = [f"from {patch.source}"]
        facts += [f"base-commit: {patch.base_commit}"] if patch.base_commit else []
        facts += list(patch.trailers)
        facts += [f"note: {note}" for note in patch.notes]
        for fact in facts:
            out.print(Text(f"  {fact}"))
    for line in claim_lines(series.claims, every=shows_everything()):
        out.print(Text(line), soft_wrap=True)
    account = series.intake
    if account is None:
        return
    if account.cover_subject:
        out.print(Text(f"cover letter: {account.cover_subject}"))
    for note in account.notes:
        out.print(Text(f"note: {note}", style="bold"))
    for one in account.left_out:
        named = f"`{one.subject}` in {one.source}" if one.subject else one.source
        out.print(Text(f"left out: {named}: {one.reason}"))


def _author(patch: Patch) -> str:
    if not patch.author and not patch.email:
        return "nobody named"
    return f"{patch.author} <{patch.email}>".strip() if patch.email else patch.author
