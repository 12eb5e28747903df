# SPDX-License-Identifier: GPL-2.0-or-later
"""``kpatch-ci bisect``: which commit, or which patch of a series, did it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from kpatch_ci.cli.bisect_progress import StepProgress
from kpatch_ci.cli.mails import series_asked_for
from kpatch_ci.cli.options import (
    accel_option,
    chosen,
    command_line,
    fuzz_option,
    output_directory,
    quick_option,
    stderr_console,
)
from kpatch_ci.cli.output import print_json, say, tables, verbosity
from kpatch_ci.config.load import Config
from kpatch_ci.kernel.build import default_jobs
from kpatch_ci.kernel.gitbisect import Range, read_log, read_range
from kpatch_ci.kernel.source import is_remote
from kpatch_ci.model.arch import ARCHES
from kpatch_ci.model.bisect import Bisection, Class, Ending, Find
from kpatch_ci.model.errors import UserError
from kpatch_ci.model.series import Series
from kpatch_ci.pipeline.bisect.bench import Question
from kpatch_ci.pipeline.bisect.real import open_bench
from kpatch_ci.pipeline.bisect.setup import (
    Asked,
    Request,
    check_pattern,
    git_options,
    log_so_far,
    make_question,
    perform,
    series_ends,
)
from kpatch_ci.pipeline.run import load_all
from kpatch_ci.pipeline.session import Session, open_session
from kpatch_ci.report.bisect import LOG, TEXT, as_plain, to_text, write_bisection

OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.argument("mails", nargs=-1, type=click.Path(path_type=Path)),
    click.option("--good", metavar="REF", help="A commit without it, in the repository of --tree."),
    click.option("--bad", metavar="REF", help="A commit with it."),
    click.option("-t", "--tree", help="The repository: PATH. With a series: the tree that it goes on [pipeline.yaml's]."),
    click.option("--series", metavar="NAME", help="Which patch of this series did it (or of MAILS)."),
    click.option("--find", type=click.Choice([str(f) for f in Find][:5]), default="metric", help="What is looked for [metric]."),
    click.option("--workload", metavar="NAME", help="A workload of pipeline.yaml."),
    click.option("--case", metavar="K=V[,K=V]", help="Its case [all of them, together]."),
    click.option("--metric", metavar="NAME", help="Its figure, or a counter [its first figure]."),
    click.option("--symbol", metavar="NAME", help="Look for the first kernel that has this symbol in System.map."),
    click.option("--log-pattern", metavar="REGEX", help="Look for the first kernel that says this on the console of a boot."),
    click.option("--arch", type=click.Choice(list(ARCHES)), help="Architecture [the first of pipeline.yaml]."),
    click.option("--boots", type=click.IntRange(3, 1000), default=6, help="Boots with which the ends are first compared [6]."),
    click.option("--max-boots", type=click.IntRange(3, 1000), default=48, help="Boots after which a step is undecided [48]."),
    click.option("--first-parent", is_flag=True, help="As git bisect: merges are one step, what they brought is not looked into."),
    click.option("--path", "paths", multiple=True, metavar="PATH", help="Only commits that touch this. Repeatable."),
    click.option("--replay", type=click.Path(path_type=Path), help="Believe the classes of this `git bisect log`."),
    click.option("--log", "show_log", is_flag=True, help="Only print the steps so far, as `git bisect log` does."),
    click.option("--restart", is_flag=True, help="Forget the steps of an earlier, interrupted one (builds and samples stay)."),
    click.option("-c", "--config", "config_file", type=click.Path(path_type=Path), help="Pipeline file [pipeline.yaml]."),
    click.option("--profile", metavar="NAME", help="A profile of the file."),
    quick_option,
    accel_option,
    click.option("-j", "--jobs", type=click.IntRange(1, 1024), default=default_jobs, help="CPUs to use [all]."),
    click.option("--output", type=click.Path(path_type=Path), help="Directory for bisect.txt, .json, .log [results/<run-id>]."),
    click.option("--json", "as_json", is_flag=True, help="bisect.json on stdout; everything else goes to stderr."),
    fuzz_option,
    verbosity,
)  # fmt: skip


def options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Every option of the verb."""
    for decorate in reversed(OPTIONS):
        function = decorate(function)
    return function


@click.command(name="bisect")
@options
def command(mails: tuple[Path, ...], output: Path | None, as_json: bool, show_log: bool, **given: Any) -> int:
    """Find the first bad commit between --good and --bad, or the patch of a series that did it.

    git bisect picks the commits, in a repository of our own that borrows the objects: the working tree, HEAD, refs and bisect
    state of --tree are never touched. Each kernel is built from the one before it, booted, measured under the good end's seeds and
    compared with it, pair by pair. First both ends are measured: where they do not differ it stops, and says what would have
    been found. How many boots a step takes follows from how far the ends are apart; a step whose interval does
    not lie on one side of the half-way line gets more, and is skipped as undecided at last. What does not build or boot is
    skipped, unless that is what is looked for (--find). A kernel that is another's byte for byte has its class. docs/bisection.md

    Killed or interrupted, the same command goes on.

    \b
    Exit status: 0 found, 1 not narrowed down to one commit, 2 usage, 3 the machine.
    \b
    Examples:
      ./kpatch-ci bisect -t ~/linux --good v6.1 --bad topic --workload hackbench --case groups=8
      ./kpatch-ci bisect -t ~/linux --good v6.1 --bad v6.2 --workload dd --arch arm64 --path block/
      ./kpatch-ci bisect -t ~/linux --good v6.1 --bad topic --find boot
      ./kpatch-ci bisect -t ~/linux --good v6.1 --bad topic --symbol schedutil_new_thing
      ./kpatch-ci bisect thread.mbox -t ~/linux@v6.1 --workload hackbench --metric migrations --case groups=4
      ./kpatch-ci bisect --series all-three --workload dbench
    """
    prepared = _prepare(mails, given)
    directory = Path("results") if show_log else output_directory(output)[1]
    starts = prepared.question.starts_kernels and not show_log
    session = open_session(prepared.config, jobs=given["jobs"], logs=directory / "logs", say=say, boots=starts)
    request, session = _request(prepared, session, given)
    if show_log:
        click.echo(log_so_far(session, request), nl=False)
        return 0
    progress = StepProgress(stderr_console(), quiet=logging.getLogger("kpatch_ci").level >= logging.ERROR)
    found = perform(session, request, progress, open_bench, progress.say)
    write_bisection(found, directory)
    _show(found, directory, as_json=as_json)
    return 0 if found.ending is Ending.FOUND else 1


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What was checked before anything is fetched or built. ``series`` or ``ends``."""

    config: Config
    question: Question
    label: str = ""
    ends: Range | None = None
    series: Series | None = None
    told: dict[str, Class] | None = None


def _prepare(mails: Sequence[Path], given: dict[str, Any]) -> _Prepared:
    by_series = bool(mails or given["series"])
    ends = [given["good"], given["bad"]]
    if by_series and any(ends):
        raise click.UsageError("give --good and --bad, or a series, not both")
    if not by_series and not all(ends):
        raise click.UsageError("--good and --bad are missing (or a series: --series NAME, or MAILS)")
    if by_series and (given["first_parent"] or given["paths"] or given["replay"]):
        raise click.UsageError(
            "--first-parent, --path and --replay are about commits of a repository, not about a series"
        )
    if not by_series:
        _check_tree(given["tree"])
    config = _config(given)
    question = make_question(config, _asked(given))
    told = _read_told(given["replay"])
    if by_series:
        return _Prepared(config, question, series=_series(config, mails, given), told=told)
    place = Path(given["tree"]).expanduser()
    words = git_options(first_parent=given["first_parent"], paths=given["paths"])
    found = read_range(place, ends[0], ends[1], words)
    label = f"{place.absolute().name} {ends[0]}..{ends[1]}"
    return _Prepared(replace(config, tree=f"{place}@{found.good}"), question, label, found, told=told)


def _check_tree(tree: str | None) -> None:
    if not tree or tree.startswith("debian:") or is_remote(tree):
        what = f"{tree} has no history here" if tree else "whose commits?"
        raise UserError(what, where="--tree", expected="the path of a git repository that has both ends")


def _config(given: dict[str, Any]) -> Config:
    narrowed = {
        "config_file": given["config_file"],
        "series": (given["series"],) if given["series"] else (),
        "arch": (given["arch"],) if given["arch"] else (),
        "workload": (given["workload"],) if given["workload"] else (),
        "seeds": None,
        "profile": given["profile"],
        "quick": given["quick"],
        "accel": given["accel"],
        "tree": given["tree"],
        "fuzz": given["fuzz"],
    }
    return chosen(narrowed)


def _asked(given: dict[str, Any]) -> Asked:
    find = Find(given["find"])
    if given["symbol"] and given["log_pattern"]:
        raise click.UsageError("give --symbol or --log-pattern, not both")
    find = Find.SYMBOL if given["symbol"] else Find.LOG if given["log_pattern"] else find
    return Asked(
        find=find,
        workload=given["workload"] or "",
        case=given["case"] or "",
        metric=given["metric"] or "",
        symbol=given["symbol"] or "",
        pattern=check_pattern(given["log_pattern"]) if given["log_pattern"] else "",
        boots=given["boots"],
        most=given["max_boots"],
    )


def _read_told(path: Path | None) -> dict[str, Class] | None:
    if path is None:
        return None
    try:
        return read_log(path.read_text(), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot be read: {error}", where=str(path), expected="what `git bisect log` prints") from error


def _series(config: Config, mails: Sequence[Path], given: dict[str, Any]) -> Series:
    if mails and given["series"]:
        raise click.UsageError("give MAILS or --series, not both")
    asked = series_asked_for(mails, None, None, None, ())
    series = asked[0] if asked else load_all(config)[0]
    if series.base is not None or series.variant:
        raise UserError(f"{series.name} is a variant", where="--series", expected="a series as it was mailed")
    return series


def _request(prepared: _Prepared, session: Session, given: dict[str, Any]) -> tuple[Request, Session]:
    ends = prepared.ends
    order: tuple[str, ...] = ()
    notes: list[str] = []
    if prepared.series is not None:
        ends, order = series_ends(session, prepared.series, given["fuzz"])
    else:
        session = replace(session, tree=replace(session.tree, label=prepared.label))
    assert ends is not None  # noqa: S101
    if not ends.ancestor:
        notes.append("good is no ancestor of bad: what both come from is tested first, as git bisect does")
    notes += session.tree.notes
    for note in notes:
        say(note)
    request = Request(
        question=prepared.question,
        ends=ends,
        options=git_options(first_parent=given["first_parent"], paths=given["paths"]),
        told=prepared.told,
        order=order,
        notes=tuple(notes),
        restart=given["restart"],
        command=command_line(),
    )
    return request, session


def _show(found: Bisection, directory: Path, *, as_json: bool) -> None:
    if as_json:
        print_json(as_plain(found))
    else:
        tables().print(to_text(found), markup=False, highlight=False, soft_wrap=True, end="")
    say(f"reports: {directory}/ ({TEXT}, bisect.json{f', {LOG}' if found.log else ''}, logs/)")
