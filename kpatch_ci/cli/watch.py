# SPDX-License-Identifier: GPL-2.0-or-later
"""``kpatch-ci watch``: edit the kernel, see what that does to a workload."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from kpatch_ci import process
from kpatch_ci.cli.options import (
    chosen,
    command_line,
    narrowed_to,
    output_directory,
    pipeline_file,
    progress,
    selection,
    stderr_console,
)
from kpatch_ci.cli.output import say
from kpatch_ci.cli.run import conclude
from kpatch_ci.config.narrow import profiles_of
from kpatch_ci.config.selection import Asked, choose
from kpatch_ci.kernel.source import split_ref
from kpatch_ci.model.errors import UserError
from kpatch_ci.model.result import RunResult
from kpatch_ci.model.series import Intake, Series
from kpatch_ci.model.status import Status
from kpatch_ci.pipeline.run import run, safe_name
from kpatch_ci.pipeline.session import Session, open_session
from kpatch_ci.pipeline.watch import Attentive, Changes, SupersededError, settled
from kpatch_ci.series.folder import series_from_patches
from kpatch_ci.series.uncommitted import Snapshot, WorkingTree

SEEDS = 6
"""The fewest that can give p < 0.05 for one workload."""
QUICK = "quick"


@click.command(name="watch")
@click.option("--once", is_flag=True, help="Test the tree as it is, and end: exit status as `run`.")
@click.option("--output", type=click.Path(path_type=Path), help="Directory for the reports [results/<run-id>].")
@selection
def command(*, once: bool, output: Path | None, **options: Any) -> int:
    """Test a kernel working tree against its HEAD, and again whenever its files change.

    The tree is -t, else the one that this directory is in; -t TREE@REF takes another base than HEAD. What differs
    from the base is tested as one patch: edits, new files that .gitignore does not name, commits since. The base is built and
    measured once. A round that is overtaken by another change is given up. As `try` does, the paths that are touched pick machines
    and workloads (`select:` of pipeline.yaml) unless --arch and --workload do; the profile is `quick` with 6 seeds unless told otherwise.
    Nothing is written into your repository. Ctrl-C ends it.

    \b
    Examples:
      cd ~/linux && ./kpatch-ci watch --arch arm64 --workload hackbench
      ./kpatch-ci watch -t ~/linux@v6.1 --once
    """
    if options["series"]:
        raise click.UsageError("--series is about patches/; what is watched is a working tree")
    work, base = _place(options["tree"])
    options["tree"] = f"{work}@{base}"
    if options["profile"] is None and not options["quick"] and QUICK in profiles_of(pipeline_file(options)):
        options["profile"] = QUICK
        options["seeds"] = options["seeds"] or SEEDS
    config = replace(chosen(options), series=())
    run_id, directory = output_directory(output)
    session = open_session(config, jobs=options["jobs"], logs=directory / "logs", say=say)
    tree = WorkingTree(work, session.tree.repo, session.tree.commit)
    watch = _Watch(session, tree, options, run_id, directory)
    changes = Changes(iter(()) if once else _events(tree.work))
    if once:
        return watch.round(tree.snapshot(), None) or 0
    return watch.forever(changes)


@dataclass(frozen=True, slots=True)
class _Watch:
    """What stays the same from round to round."""

    session: Session
    tree: WorkingTree
    options: dict[str, Any]
    run_id: str
    directory: Path

    def forever(self, changes: Changes) -> int:
        """Round after round; ends by an exception only."""
        say(f"watching {self.tree.work} against {self.session.tree.commit[:12]}; Ctrl-C ends it")
        last, snapshot = "", self.tree.snapshot()
        while True:
            if snapshot.tree_id != last:
                try:
                    self.round(snapshot, changes)
                    last = snapshot.tree_id
                except SupersededError:
                    process.go_on()
                    say("the tree has changed: this round is given up")
                    snapshot = settled(changes, self.tree.snapshot)
                    continue
                say("waiting for changes")
            changes.wait()
            snapshot = settled(changes, self.tree.snapshot)

    def round(self, snapshot: Snapshot, changes: Changes | None) -> int | None:
        """Test one state; the exit status as `run` has it. None where there was nothing to test but the base."""
        began = time.monotonic()
        found = self._series(snapshot)
        if found is None:
            return None
        session, series = found

        def same() -> bool:
            return self.tree.snapshot().tree_id == snapshot.tree_id

        with progress(stderr_console()) as shown:
            observer = Attentive(shown, changes, same) if changes else shown
            result = run(session, series, observer, run_id=self.run_id, command=command_line(), began=began)
        _check(result, snapshot)
        return conclude(result, self.directory, as_json=False) if series else None

    def _series(self, snapshot: Snapshot) -> tuple[Session, list[Series]] | None:
        """What to run; None where no kernel of ours is made from what changed. No series: measure the base ahead."""
        config = self.session.config
        if snapshot.patch is None:
            say("nothing differs from the base: it is built and measured, for the first change to compare with")
            return self.session, []
        account = Intake(taken=(snapshot.patch.source,), base_commit=snapshot.patch.base_commit)
        name = safe_name(self.tree.work.name)
        series = series_from_patches((snapshot.patch,), account, name, f"working tree {self.tree.work}")
        asked = Asked(arches=bool(self.options["arch"]), machines=False, workloads=bool(self.options["workload"]))
        choice = choose(config.rules, series.paths, config.machines, config.workloads, asked)
        say(f"changed: {', '.join(series.paths[:5])}{', ...' if len(series.paths) > 5 else ''}")
        for line in choice.lines:
            say(line)
        if not choice.built:
            say("nothing to build: no file that changed is part of a kernel that this could test")
            return None
        return replace(self.session, config=narrowed_to(config, choice)), [replace(series, chosen=choice.lines)]


def _check(result: RunResult, snapshot: Snapshot) -> None:
    """What was built is the working tree, to the byte."""
    for arch in (arch for series in result.series for arch in series.arches):
        if arch.apply.status is Status.PASSED and arch.apply.tree_id != snapshot.tree_id:
            raise RuntimeError(f"built tree {arch.apply.tree_id}, but the working tree is {snapshot.tree_id}")


def _place(tree: str | None) -> tuple[Path, str]:
    """The working tree, and the base that it is compared with."""
    where, ref = split_ref(tree) if tree else (".", "")
    path = Path(where).expanduser().absolute()
    if not path.is_dir():
        raise UserError(f"no such directory: {where}", where="--tree", expected="a kernel's git working tree")
    return path, ref or "HEAD"


def _events(work: Path) -> Iterator[object]:
    """Blocks until files below ``work`` change; those of .git are none. Polls where the kernel has no more watches to give."""
    from watchfiles import DefaultFilter, watch  # noqa: PLC0415 (needs a moment)

    ignored = DefaultFilter(ignore_dirs=(".git",), ignore_entity_patterns=(r"\.o$", r"\.cmd$", r"\.sw.$", "~$"))
    return iter(watch(work, watch_filter=ignored, debounce=200, rust_timeout=1000))
