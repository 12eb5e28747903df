# SPDX-License-Identifier: GPL-2.0-or-later
"""``kpatch-ci try``: patches from files, no series folder needed; what they touch decides what they are tested with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from kpatch_ci.cli.checks import check_options, chosen_checks
from kpatch_ci.cli.console import SafeConsole
from kpatch_ci.cli.history.recording import Keep, history_options, where_to_keep
from kpatch_ci.cli.mails import mail_options, series_asked_for, show_patches
from kpatch_ci.cli.options import (
    chosen,
    export_option,
    exports_asked_for,
    narrowed_to,
    output_directory,
    pipeline_file,
    precision_options,
    selection,
    settled_by,
)
from kpatch_ci.cli.output import say
from kpatch_ci.cli.run import NOT_BUILT, conclude, not_built, perform
from kpatch_ci.config.load import Config
from kpatch_ci.config.narrow import profiles_of
from kpatch_ci.config.selection import choose
from kpatch_ci.model.series import Series
from kpatch_ci.pipeline.foresee import foresee
from kpatch_ci.pipeline.session import Session

QUICK = "quick"


@click.command(name="try")
@mail_options
@click.option("--output", type=click.Path(path_type=Path), help="Directory for the reports [results/<run-id>].")
@click.option("--json", "as_json", is_flag=True, help="result.json on stdout; everything else goes to stderr.")
@selection
@precision_options
@check_options
@export_option
@history_options
def command(
    *,
    mails: tuple[Path, ...],
    commits: str | None,
    repo: Path | None,
    revision: int | None,
    output: Path | None,
    as_json: bool,
    formats: tuple[str, ...],
    **options: Any,
) -> int:
    """Test patches straight from where they are, as one series: no folder in patches/ is needed.

    MAILS are whatever `check` takes (see its --help, and docs/intake.md): files, directories, archives, - for standard
    input, a message-id. The paths that they touch pick architectures, machines and workloads: `select:` of pipeline.yaml
    is the table, and what it picked is said, with the reason. --arch, --workload and --profile win over it. The profile is `quick` unless
    another is named (--profile default: all seeds and cases). What touches no file of any kernel is not built: that is said, and the exit
    status is 0.

    \b
    Examples:
      ./kpatch-ci try my.patch -t ~/linux
      ./kpatch-ci try --range v6.1..topic -t ~/linux
      ./kpatch-ci try my.patch --profile default --arch arm64 --workload hackbench
    """
    asked = series_asked_for(mails, commits, repo, revision, [options["tree"]] if options["tree"] else [])
    if asked is None:
        raise click.UsageError("nothing to try: give MAILS or --range")
    series, base = asked
    show_patches(SafeConsole(stderr=True), series)
    options["tree"] = options["tree"] or base
    options["profile"] = _profile(options)
    config = chosen(options)
    exports = exports_asked_for(formats, config)
    history = where_to_keep(options, config.history)
    choice = choose(config.rules, series.paths, config.machines, config.workloads, settled_by(options, config))
    for line in choice.lines:
        say(line)
    series = replace(series, chosen=choice.lines)
    if not choice.built:
        say(NOT_BUILT)
        return _nothing_to_do(config, series, output, as_json=as_json, exports=exports, history=history)
    checks = chosen_checks(options)
    narrowed = narrowed_to(config, choice, options)
    how = {"jobs": options["jobs"], "output": output, "as_json": as_json, "exports": exports, "history": history}
    return perform(narrowed, [series], **how, checks=checks, look=_look)


def _profile(options: dict[str, Any]) -> str | None:
    """The one that was named, else the quick one where the file has it: a person waits for the answer."""
    given: str | None = options["profile"]
    if given or options["quick"]:
        return given
    return QUICK if QUICK in profiles_of(pipeline_file(options)) else None


def _look(session: Session, series: Series) -> Series:
    lines = foresee(session, series)
    for line in lines:
        say(line)
    return replace(series, chosen=(*series.chosen, *lines))


def _nothing_to_do(
    config: Config, series: Series, output: Path | None, *, as_json: bool, exports: Sequence[str], history: Keep
) -> int:
    """Reports that say so, for whoever reads those alone."""
    run_id, directory = output_directory(output)
    result = not_built(config, series, run_id)
    return conclude(result, directory, as_json=as_json, exports=exports, history=history)
