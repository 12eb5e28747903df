# SPDX-License-Identifier: GPL-2.0-or-later
"""``kpatch-ci run``: the whole pipeline.yaml; ends with a verdict table and the reports."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from kpatch_ci import __version__
from kpatch_ci.cli.checks import check_options, chosen_checks
from kpatch_ci.cli.console import SafeConsole
from kpatch_ci.cli.history.recording import Keep, history_options, keep, where_to_keep
from kpatch_ci.cli.options import (
    chosen,
    command_line,
    export_option,
    exports_asked_for,
    output_directory,
    precision_options,
    progress,
    selection,
    stderr_console,
)
from kpatch_ci.cli.output import say, shows_everything
from kpatch_ci.config.load import Config
from kpatch_ci.config.schema import DEFAULT_PROFILE
from kpatch_ci.model.result import RunResult, SeriesResult
from kpatch_ci.model.series import Series
from kpatch_ci.model.status import REAL_TIME, Mode, Status
from kpatch_ci.pipeline.assemble import flags_of
from kpatch_ci.pipeline.each import NO_CHECKS, Checks
from kpatch_ci.pipeline.run import load_all, run
from kpatch_ci.pipeline.session import Session, on_cluster, open_session
from kpatch_ci.report.formats import FORMATS, STANDARD
from kpatch_ci.report.terminal import print_details, print_failures, show_checks, verdict_table
from kpatch_ci.report.write import to_json, write_reports
from kpatch_ci.store.atomic import write_text

NOT_BUILT = "nothing to build: no file that the series touches is part of a kernel that this run could test"
EXIT = {Status.PASSED: 0, Status.SKIPPED: 0, Status.FAILED: 1, Status.ERROR: 3}


@click.command(name="run")
@selection
@precision_options
@check_options
@export_option
@history_options
@click.option("--output", type=click.Path(path_type=Path), help="Directory for the reports [results/<run-id>].")
@click.option("--json", "as_json", is_flag=True, help="result.json on stdout; everything else goes to stderr.")
def command(output: Path | None, as_json: bool, formats: tuple[str, ...], **options: Any) -> int:
    """Apply, build, boot, measure, compare: every series of pipeline.yaml on every architecture.

    Installs what is missing first, and says what. What has been done before with the same inputs is reused; a run that
    was killed is resumed by typing the same command.

    \b
    Exit status: 0 all verdicts acceptable, 1 a series failed or regressed, 2 usage or configuration, 3 the machine.
    \b
    Examples:
      ./kpatch-ci run --quick                            3 boots, two cases a workload
      ./kpatch-ci run --series wakeup-gran --arch arm64
      ./kpatch-ci run --series wakeup-gran --variants    also switched off: the feature's effect, the code's cost
      ./kpatch-ci run -t ~/linux@v6.1 --workload hackbench
      ./kpatch-ci run --series wakeup-gran --workload hackbench --precision 0.5%
      ./kpatch-ci run --accel kvm --arch x86_64          on real CPUs, in real time (docs/accelerators.md)
      ./kpatch-ci run --format kcidb --format csv        also for KernelCI, and the samples (docs/exports.md)
      ./kpatch-ci run --each --w1 --sparse --checkpatch  what a maintainer's robot would say, too
    """
    config = chosen(options)
    exports = exports_asked_for(formats, config)
    history = where_to_keep(options, config.history)
    series = load_all(config)
    for line in (flag for one in series for flag in flags_of(one)):
        say(line)
    how = {"jobs": options["jobs"], "output": output, "as_json": as_json, "exports": exports, "history": history}
    return perform(config, series, **how, checks=chosen_checks(options))


Look = Callable[[Session, Series], Series]
"""A last look at a series before it is run: what can be told of it by now goes into its reports."""


def perform(
    config: Config,
    series: Sequence[Series],
    *,
    jobs: int,
    output: Path | None,
    as_json: bool,
    exports: Sequence[str] = (),
    history: Keep = None,
    checks: Checks = NO_CHECKS,
    look: Look | None = None,
) -> int:
    """Run, write the reports, show the verdicts; returns the exit status."""
    began = time.monotonic()
    run_id, directory = output_directory(output)
    session = open_session(config, jobs=jobs, logs=directory / "logs", say=say)
    if look is not None:
        series = [look(session, one) for one in series]
    console = stderr_console()
    with on_cluster(session, say) as session, progress(console) as observer:
        result = run(session, series, observer, run_id=run_id, command=command_line(), began=began, checks=checks)
    return conclude(result, directory, as_json=as_json, exports=exports, history=history)


def conclude(
    result: RunResult, directory: Path, *, as_json: bool, exports: Sequence[str] = (), history: Keep = None
) -> int:
    """Write the reports, show the verdicts, record the run; returns the exit status, which a failing history does not change.

    ``exports``: formats beside the standard ones.
    """
    document = write_reports(result, directory, exports)
    _remember(directory)
    if as_json:
        click.echo(to_json(document), nl=False)
    show(result, directory, SafeConsole(stderr=as_json), exports)
    keep(document, directory, history)
    return EXIT[result.status]


def not_built(config: Config, series: Series, run_id: str) -> RunResult:
    """The result for a series that touches no file of any kernel here: it passes, and says that nothing was built."""
    chosen_lines = (*series.chosen, NOT_BUILT)
    return RunResult(
        run_id=run_id,
        started=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        seconds=0.0,
        profile=config.profile or DEFAULT_PROFILE,
        mode=Mode.DETERMINISTIC,
        tree={"label": config.tree},
        fingerprint={"kpatch_ci": __version__},
        series=(SeriesResult(series.name, series.title, series.notes, (), chosen=chosen_lines),),
        command=command_line(),
        origin=config.origin,
    )


def show(result: RunResult, directory: Path, out: Console, exports: Sequence[str] = ()) -> None:
    """The verdict table, each failure with what is needed to look into it, and where the reports are."""
    if any(series.arches for series in result.series):
        out.print(verdict_table(result))
    if shows_everything():
        print_details(out, result)
    show_checks(out, result)
    print_failures(out, result, directory)
    measured = [
        r for s in result.series for a in s.arches for arm in (a.baseline, a.patched) if arm for r in arm.replicates
    ]
    reused = all(stage.cached or not stage.key or stage.stage.startswith("apply ") for stage in result.stages)
    done = (
        "everything was reused"
        if reused and measured
        else f"{sum(not s.cached for s in result.stages)} stages ran (`explain`)"
    )
    if result.mode in REAL_TIME:
        out.print(f"mode {result.mode}: this host's real time; no sample is kept, the same command measures again")
    out.print(
        f"{result.status}: {len(result.series)} series in {result.seconds:.0f} s; {done}", markup=False, highlight=False
    )
    for host in (h for h in result.hosts if h.lost):
        out.print(f"{host.name} was lost: {host.lost}; its work was done elsewhere", markup=False, highlight=False)
    more = "".join(f", {FORMATS[name]}" for name in exports if name not in STANDARD)
    out.print(
        f"reports: {_short(directory)}/ (report.html, report.txt, report.md, junit.xml, result.json{more}, logs/)",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )


def _short(path: Path) -> str:
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _remember(directory: Path) -> None:
    """``results/latest`` names the newest run, for `explain` and `report`."""
    if directory.parent == Path("results").absolute():
        write_text(directory.parent / "latest", f"{directory.name}\n")
