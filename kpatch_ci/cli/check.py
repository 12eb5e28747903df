# SPDX-License-Identifier: GPL-2.0-or-later
"""``kpatch-ci check``: intake and applicability, nothing built."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kpatch_ci.cli.mails import mail_options, series_asked_for, show_patches
from kpatch_ci.cli.options import DEFAULT_FILE, chosen
from kpatch_ci.cli.output import print_json, say, tables, verbosity
from kpatch_ci.debian.apt import Archives
from kpatch_ci.kernel.source import TreeCache
from kpatch_ci.model.series import ApplyResult, Series
from kpatch_ci.model.status import Status
from kpatch_ci.pipeline.run import load_all
from kpatch_ci.pipeline.session import open_tools
from kpatch_ci.series.apply import apply_series


@click.command(name="check")
@mail_options
@click.option("-t", "--tree", "trees", multiple=True, help="Tree to check on; repeatable [pipeline.yaml's].")
@click.option("-c", "--config", "config_file", type=click.Path(path_type=Path), help=f"Pipeline file [{DEFAULT_FILE}].")
@click.option(
    "--series", multiple=True, metavar="NAME", help="Without MAILS: only this series of the file. Repeatable."
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
    as_json: bool,
) -> int:
    """Read patches, say what was taken, and whether and how it applies. Without MAILS: the series of pipeline.yaml.

    MAILS are files (mails, mbox, pages of mail archives, diffs, git show's output), directories (of patches, maildir, quilt
    series), archives of such (tar, zip, .gz, .bz2, .xz), - for standard input, or a message-id or its address (needs b4).
    Of several revisions the newest is taken; cover letters and replies are never applied. docs/intake.md has all of it.

    \b
    Examples:
      ./kpatch-ci check my.patch -t ~/linux -t debian:6.1
      ./kpatch-ci check thread.mbox --revision 2
      ./kpatch-ci check --range v6.1..topic -t ~/linux
      git show | ./kpatch-ci check -
      ./kpatch-ci check --series stack-workqueue -t debian:5.10
    """
    asked = series_asked_for(mails, commits, repo, revision, trees)
    if asked and series:
        raise click.UsageError("give MAILS, --range or --series, not two of them")
    defaults: dict[str, Any] = {
        "arch": (),
        "workload": (),
        "seeds": None,
        "profile": None,
        "quick": False,
        "tree": None,
        "fuzz": 0,
    }
    config = chosen({"config_file": config_file, "series": series, **defaults})
    wanted = [asked[0]] if asked else list(load_all(config))
    archives = Archives(*config.archives) if config.archives else None
    cache, tools, archives = open_tools(config.tools, archives, say)
    source = TreeCache(cache, tools, archives)
    rows = []
    for spec in trees or ((asked and asked[1]) or config.tree,):
        if source.will_fetch(spec):
            say(f"fetching {spec} (about a minute, once)")
        tree = source.get(spec)
        rows += [(tree.label, tree.release, one, apply_series(one, tree)) for one in wanted]
    if as_json:
        print_json(
            [
                {"tree": label, "release": release, "series": s.name, **_taken(s), **asdict(r)}
                for label, release, s, r in rows
            ]
        )
    else:
        _show(wanted, rows)
    return 0 if all(r.status is Status.PASSED for _, _, _, r in rows) else 1


def _show(wanted: Sequence[Series], rows: Sequence[tuple[str, str, Series, ApplyResult]]) -> None:
    out = tables()
    for one in wanted:
        show_patches(out, one)
    table = Table(box=None, pad_edge=False)
    for heading in ("series", "tree", "linux", "applies"):
        table.add_column(heading)
    for label, release, one, result in rows:
        table.add_row(Text(one.name), Text(label), Text(release), Text(_how(result)))
    out.print(table)
    for label, _, one, result in rows:
        _explain(out, f"{one.name} on {label}", result)


def _taken(series: Series) -> dict[str, Any]:
    """What intake took, for --json: apply's own ``patches`` say what became of each."""
    told = [{key: value for key, value in asdict(patch).items() if key != "diff"} for patch in series.patches]
    return {"taken": told, "intake": asdict(series.intake) if series.intake else None}


def _how(result: ApplyResult) -> str:
    if result.status is not Status.PASSED:
        return f"NO: {result.reason}"
    moved = [o for p in result.patches for o in p.offsets]
    return f"{result.method}" + (f", {len(moved)} hunk(s) moved by up to {max(map(abs, moved))} lines" if moved else "")


def _explain(out: Console, name: str, result: ApplyResult) -> None:
    for patch in result.patches:
        if not patch.failures or patch.status is Status.PASSED:
            continue
        out.print(Text(f"\n{name}: {patch.subject}", style="bold"))
        for failure in patch.failures:
            out.print(Text(f"{failure.path}:{failure.line} {failure.header}\n  {failure.reason}"))
            for title, text in (("the hunk wants", failure.wanted), ("the tree has", failure.found)):
                if text:
                    body = "\n".join(f"    {line}" for line in text.splitlines()[:12])
                    out.print(Text(f"  {title}:\n{body}"))
