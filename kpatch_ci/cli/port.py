# SPDX-License-Identifier: GPL-2.0-or-later
"""``kpatch-ci port``: what was resolved for a tree becomes a port of the series."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import click

from kpatch_ci.cli.check import get_tree, open_trees, read_config
from kpatch_ci.cli.options import DEFAULT_FILE, fuzz_option
from kpatch_ci.cli.output import print_json, say, verbosity
from kpatch_ci.config.load import Config
from kpatch_ci.model.build import Tree
from kpatch_ci.model.errors import UserError
from kpatch_ci.model.series import Patch, Series
from kpatch_ci.pipeline.run import safe_name
from kpatch_ci.series.apply import open_index
from kpatch_ci.series.folder import FILE, load_series, series_from_files
from kpatch_ci.series.intake import read_patches
from kpatch_ci.series.port import check_series, from_worktree, make_patches, same_functions, verify
from kpatch_ci.series.portfolder import new_folder, release_of, write_port


@click.command(name="port")
@click.argument("what", nargs=-1, required=True, metavar="SERIES|MAIL...")
@click.option("-t", "--tree", help="Tree that the port is for [pipeline.yaml's].")
@click.option(
    "--from", "worktree", type=click.Path(path_type=Path), metavar="DIR", help="Worktree with the port, committed."
)
@click.option(
    "--note", default="", metavar="TEXT", help="What was adapted, and why: goes into brackets after the sign-offs."
)
@click.option(
    "--author", default="", metavar="'NAME <ADDRESS>'", help="The author, where the mail does not have the address."
)
@click.option("--replace", "overwrite", is_flag=True, help="Replace the port that the series has for this tree.")
@click.option("-c", "--config", "config_file", type=click.Path(path_type=Path), help=f"Pipeline file [{DEFAULT_FILE}].")
@fuzz_option
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@verbosity
def command(
    *,
    what: tuple[str, ...],
    tree: str | None,
    worktree: Path | None,
    note: str,
    author: str,
    overwrite: bool,
    config_file: Path | None,
    fuzz: int,
    as_json: bool,
) -> int:
    """Write a port of a series for a tree into patches/SERIES/ports/, and enter it in series.yaml.

    With --from: the commits of the worktree that `check --keep DIR` made, after
    the conflict was resolved and committed. Without: what a three-way merge (or
    --fuzz N) gives. Author, date and sign-offs are the mail's; what is not as
    mailed needs a --note, or one in its commit: [kpatch-ci: ported to 6.1: ...].
    A MAIL that is in no folder of patches/ gets one. The port is applied to the
    tree again before this ends: no fuzz, no offset, and the same tree.

    \b
    Examples:
      ./kpatch-ci check --series stack-workqueue -t debian:6.12 --keep ~/port
      (resolve; git add -A; git am --continue)
      ./kpatch-ci port stack-workqueue -t debian:6.12 --from ~/port \\
            --note 'select_idle_sibling() asks asym_fits_cpu() there'
    """
    config = read_config(config_file, ())
    job = _job(what, config)
    place = get_tree(open_trees(config), tree or config.tree)
    release = release_of(place)
    if job.series.members:
        members = ", ".join(member.name for member in job.series.members)
        raise UserError(f"{job.series.name} is a stack", where=what[0], expected=f"one of its members: {members}")
    if release in job.series.ports and not overwrite:
        raise UserError(f"{job.series.name} has a port for {release}", where=str(job.folder), expected="--replace")
    with open_index(place) as index:
        steps = from_worktree(index, job.series, place, worktree) if worktree else check_series(job.series, place, fuzz)
        note = note or ("" if worktree else _by_itself(fuzz))
        files, tree_id, notes = make_patches(index, place, steps, release=release, note=note, author=author)
    port = _read(files)
    verify(job.series, port, place, tree_id)
    mails = [step.mail for step in steps]
    notes += tuple(chain.from_iterable(same_functions(m, p) for m, p in zip(mails, port, strict=True) if m))
    written = _write(job, place, files, overwrite=overwrite)
    _tell(job, place, written, notes, as_json=as_json)
    return 0


@dataclass(frozen=True, slots=True)
class _Job:
    """The series, its folder, and the mails of which the folder has yet to be made."""

    series: Series
    folder: Path
    mails: tuple[Path, ...] = ()


def _job(what: tuple[str, ...], config: Config) -> _Job:
    if len(what) == 1 and (config.patches / what[0] / FILE).is_file():
        folder = config.patches / what[0]
        return _Job(load_series(folder, config.patches), folder)
    mails = tuple(Path(name) for name in what)
    missing = [str(mail) for mail in mails if not mail.exists()]
    if missing:
        known = ", ".join(sorted(path.parent.name for path in config.patches.glob(f"*/{FILE}")))
        raise UserError(f"no series and no file {missing[0]}", where="port", expected=f"a mail, or one of {known}")
    inside = mails[0].resolve().parent
    if inside.parent == config.patches.resolve() and (inside / FILE).is_file():
        return _Job(load_series(inside, config.patches), inside)
    name = safe_name(mails[0].stem)
    return _Job(series_from_files(list(mails), name), config.patches / name, mails)


def _by_itself(fuzz: int) -> str:
    how = (
        f"applied with up to {fuzz} lines of context ignored"
        if fuzz
        else "merged by git apply --3way without a conflict"
    )
    return f"{how}, nothing was done by hand."


def _read(files: dict[str, bytes]) -> tuple[Patch, ...]:
    """The port as the pipeline will read it."""
    with tempfile.TemporaryDirectory(prefix="kpatch-ci-port-") as scratch:
        patches: list[Patch] = []
        for name, data in files.items():
            (Path(scratch) / name).write_bytes(data)
            patches += read_patches(Path(scratch) / name)
        return tuple(replace(patch, source=Path(patch.source).name) for patch in patches)


def _write(job: _Job, tree: Tree, files: dict[str, bytes], *, overwrite: bool) -> list[Path]:
    made = new_folder(job.folder, job.mails, job.series) if job.mails else []
    old = [] if not overwrite else _old_files(job, release_of(tree))
    return [*made, *write_port(job.folder, tree, files, old=old)]


def _old_files(job: _Job, release: str) -> list[str]:
    root = job.folder.resolve()
    sources = (Path(patch.source).resolve() for patch in job.series.ports.get(release, ()))
    return [str(path.relative_to(root)) for path in sources if path.is_relative_to(root) and path.is_file()]


def _tell(job: _Job, tree: Tree, written: list[Path], notes: tuple[str, ...], *, as_json: bool) -> None:
    paths = list(dict.fromkeys(str(path) for path in written))
    test = f"./kpatch-ci run --series {job.series.name} -t {tree.label} --quick"
    if as_json:
        print_json(
            {"series": job.series.name, "tree": tree.label, "written": paths, "notes": list(notes), "test": test}
        )
        return
    for path in paths:
        click.echo(path)
    for note in notes:
        click.echo(f"look at: {note}")
    say(f"the port applies to {tree.label} exactly, and gives the tree that was resolved")
    listed = "" if not job.mails else f" (add `{job.series.name}` to series: of pipeline.yaml first)"
    say(f"to test it: {test}{listed}")
