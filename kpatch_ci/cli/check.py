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

from kpatch_ci.cli.options import DEFAULT_FILE, chosen
from kpatch_ci.cli.output import print_json, say, tables, verbosity
from kpatch_ci.debian.apt import Archives
from kpatch_ci.kernel.source import TreeCache
from kpatch_ci.model.series import ApplyResult, Series
from kpatch_ci.model.status import Status
from kpatch_ci.pipeline.run import load_all, safe_name
from kpatch_ci.pipeline.session import open_tools
from kpatch_ci.series.apply import apply_series
from kpatch_ci.series.folder import series_from_files


@click.command(name="check")
@click.argument("mails", nargs=-1, type=click.Path(path_type=Path))
@click.option("-t", "--tree", "trees", multiple=True, help="Tree to check on; repeatable [pipeline.yaml's].")
@click.option("-c", "--config", "config_file", type=click.Path(path_type=Path), help=f"Pipeline file [{DEFAULT_FILE}].")
@click.option(
    "--series", multiple=True, metavar="NAME", help="Without MAILS: only this series of the file. Repeatable."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@verbosity
def command(
    mails: tuple[Path, ...], trees: tuple[str, ...], config_file: Path | None, series: tuple[str, ...], as_json: bool
) -> int:
    """Read patches, say what they are, and whether and how they apply. Without MAILS: the series of pipeline.yaml.

    \b
    Examples:
      ./kpatch-ci check my.patch -t ~/linux -t debian:6.1
      ./kpatch-ci check --series stack-workqueue -t debian:5.10
    """
    if mails and series:
        raise click.UsageError("give MAILS or --series, not both")
    defaults: dict[str, Any] = {
        "arch": (),
        "workload": (),
        "seeds": None,
        "profile": None,
        "quick": False,
        "tree": None,
    }
    config = chosen({"config_file": config_file, "series": series, **defaults})
    wanted = [series_from_files(list(mails), safe_name(mails[0].stem))] if mails else list(load_all(config))
    archives = Archives(*config.archives) if config.archives else None
    cache, tools, archives = open_tools(config.tools, archives, say)
    source = TreeCache(cache, tools, archives)
    rows = []
    for spec in trees or (config.tree,):
        if source.will_fetch(spec):
            say(f"fetching {spec} (about a minute, once)")
        tree = source.get(spec)
        rows += [(tree.label, tree.release, one, apply_series(one, tree)) for one in wanted]
    if as_json:
        print_json(
            [{"tree": label, "release": release, "series": s.name, **asdict(r)} for label, release, s, r in rows]
        )
    else:
        _show(wanted, rows)
    return 0 if all(r.status is Status.PASSED for _, _, _, r in rows) else 1


def _show(wanted: Sequence[Series], rows: Sequence[tuple[str, str, Series, ApplyResult]]) -> None:
    out = tables()
    for one in wanted:
        for patch in one.patches:
            out.print(Text(f"{one.name}: {patch.prefix} {patch.subject}".replace(":  ", ": "), style="bold"))
            out.print(
                Text(f"  by {patch.author or 'nobody named'}, {len(patch.paths)} file(s): {', '.join(patch.paths)}")
            )
            for note in patch.notes:
                out.print(Text(f"  note: {note}"))
    table = Table(box=None, pad_edge=False)
    for heading in ("series", "tree", "linux", "applies"):
        table.add_column(heading)
    for label, release, one, result in rows:
        table.add_row(Text(one.name), Text(label), Text(release), Text(_how(result)))
    out.print(table)
    for label, _, one, result in rows:
        _explain(out, f"{one.name} on {label}", result)


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
