# SPDX-License-Identifier: GPL-2.0-or-later
"""``kpatch-ci watch``: edit the kernel, see what that does to a workload."""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from kpatch_ci import process
from kpatch_ci.cli.checks import check_options, chosen_checks
from kpatch_ci.cli.history.recording import Keep, history_options, where_to_keep
from kpatch_ci.cli.options import (
    chosen,
    command_line,
    export_option,
    exports_asked_for,
    narrowed_to,
    output_directory,
    pipeline_file,
    precision_options,
    progress,
    selection,
    settled_by,
    stderr_console,
)
from kpatch_ci.cli.output import say
from kpatch_ci.cli.run import NOT_BUILT, conclude, not_built
from kpatch_ci.config.narrow import profiles_of
from kpatch_ci.config.selection import Choice, choose
from kpatch_ci.kernel.source import split_ref
from kpatch_ci.model.errors import UserError
from kpatch_ci.model.result import RunResult
from kpatch_ci.model.series import Intake, Series
from kpatch_ci.model.status import Status
from kpatch_ci.pipeline.each import NO_CHECKS, Checks
from kpatch_ci.pipeline.run import new_run_id, run, safe_name
from kpatch_ci.pipeline.session import Session, on_cluster, open_session
from kpatch_ci.pipeline.watch import Attentive, Changes, SupersededError, settled
from kpatch_ci.series.folder import series_from_patches
from kpatch_ci.series.uncommitted import Snapshot, WorkingTree

SEEDS = 6
"""The fewest that can give p < 0.05 for one workload."""
QUICK = "quick"


@click.command(name="watch")
@click.option("--once", is_flag=True, help="Test the tree as it is, and end: exit status as `run`.")
@click.option("--output", type=click.Path(path_type=Path), help="Directory for the reports [results/<run-id>].")
@click.option(
    "--json", "as_json", is_flag=True, help="With --once: result.json on stdout; everything else goes to stderr."
)
@selection
@precision_options
@check_options
@export_option
@history_options
def command(*, once: bool, output: Path | None, as_json: bool, formats: tuple[str, ...], **options: Any) -> int:
    """Test a kernel working tree against its HEAD, and again whenever its files change.

    The tree is -t, else the one that this directory is in; -t TREE@REF takes another base than HEAD. What differs
    from the base is tested as one patch: edits, new files that .gitignore does not name, commits since. The base is built and
    measured once. A round that is overtaken by another change is given up. As `try` does, the paths that are touched pick machines
    and workloads (`select:` of pipeline.yaml) unless --arch and --workload do; the profile is `quick` with 6 seeds unless told otherwise.
    Each round that has a verdict is recorded as a run of its own (--no-history: not), --budget and --precision are those of a round.
    Nothing is written into your repository. Ctrl-C ends it.

    \b
    Examples:
      cd ~/linux && ./kpatch-ci watch --arch arm64 --workload hackbench
      ./kpatch-ci watch -t ~/linux@v6.1 --once
    """
    if options["series"]:
        raise click.UsageError("--series is about patches/; what is watched is a working tree")
    if as_json and not once:
        raise click.UsageError("--json is one document, and a watch has a result each round: give --once with it")
    work, base = _place(options["tree"])
    options["tree"] = f"{work}@{base}"
    if options["profile"] is None and not options["quick"] and QUICK in profiles_of(pipeline_file(options)):
        options["profile"] = QUICK
        options["seeds"] = options["seeds"] or SEEDS
    config = replace(chosen(options), series=())
    exports, history = exports_asked_for(formats, config), where_to_keep(options, config.history)
    how = _How(exports, history, chosen_checks(options), as_json)
    _, directory = output_directory(output)
    session = open_session(config, jobs=options["jobs"], logs=directory / "logs", say=say)
    tree = WorkingTree(work, session.tree.repo, session.tree.commit)
    with on_cluster(session, say) as session:
        watch = _Watch(session, tree, options, directory, how)
        changes = Changes(iter(()) if once else _events(tree.work))
        if once:
            return watch.round(tree.snapshot(), None) or 0
        return watch.forever(changes)


@dataclass(frozen=True, slots=True)
class _How:
    """What is wanted of each round beside its verdict."""

    exports: tuple[str, ...] = ()
    history: Keep = None
    checks: Checks = NO_CHECKS
    as_json: bool = False


@dataclass(frozen=True, slots=True)
class _Watch:
    """What stays the same from round to round."""

    session: Session
    tree: WorkingTree
    options: dict[str, Any]
    directory: Path
    how: _How = _How()

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
        series, choice = self._series(snapshot)
        if choice is not None and not choice.built:
            say(NOT_BUILT)
            return None if changes else self._conclude(not_built(self.session.config, series[0], _new_name()))
        config = self.session.config if choice is None else narrowed_to(self.session.config, choice, self.options)
        session = replace(self.session, config=config)

        def same() -> bool:
            return self.tree.snapshot().tree_id == snapshot.tree_id

        with progress(stderr_console()) as shown:
            observer = Attentive(shown, changes, same) if changes else shown
            named: dict[str, Any] = {"run_id": _new_name(), "command": command_line(), "began": began}
            result = run(session, series, observer, **named, checks=self.how.checks)
        _check(result, snapshot)
        return self._conclude(result) if series or self.how.as_json else None

    def _conclude(self, result: RunResult) -> int:
        """The base alone has no verdict, and is no run to record."""
        history = self.how.history if result.series else None
        return conclude(result, self.directory, as_json=self.how.as_json, exports=self.how.exports, history=history)

    def _series(self, snapshot: Snapshot) -> tuple[list[Series], Choice | None]:
        """What to run, and with what its paths say that it is to be run. Neither: measure the base ahead."""
        config = self.session.config
        if snapshot.patch is None:
            say("nothing differs from the base: it is built and measured, for the first change to compare with")
            return [], None
        account = Intake(taken=(snapshot.patch.source,), base_commit=snapshot.patch.base_commit)
        name = safe_name(self.tree.work.name)
        series = series_from_patches((snapshot.patch,), account, name, f"working tree {self.tree.work}")
        asked = settled_by(self.options, config)
        choice = choose(config.rules, series.paths, config.machines, config.workloads, asked)
        say(f"changed: {', '.join(series.paths[:5])}{', ...' if len(series.paths) > 5 else ''}")
        for line in choice.lines:
            say(line)
        return [replace(series, chosen=choice.lines)], choice


def _new_name() -> str:
    """Of a round: each is a run of its own in the history."""
    return new_run_id(datetime.datetime.now(datetime.UTC))


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
