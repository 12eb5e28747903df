# SPDX-License-Identifier: GPL-2.0-or-later
"""``kpatch-ci calibrate``: kernels whose difference is known, and what the verdicts say of them."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from kpatch_ci.cli.calibrate_show import document, show
from kpatch_ci.cli.options import command_line, output_directory, progress, selection, stderr_console
from kpatch_ci.cli.output import print_json, say
from kpatch_ci.cli.verify_determinism import narrowed
from kpatch_ci.model.workload import Seed
from kpatch_ci.pipeline.calibrate import LEVELS, calibration_series, measure
from kpatch_ci.pipeline.session import open_session
from kpatch_ci.pipeline.trust import judge
from kpatch_ci.store.atomic import write_text

POOL, SEEDS, TRIALS = 40, 10, 500
FILE = "calibration.json"


@click.command(name="calibrate")
@selection
@click.option(
    "--pool",
    type=click.IntRange(3, 10_000),
    default=POOL,
    show_default=True,
    help="Boots of each arm, one run each: what trials draw from.",
)
@click.option(
    "--trials", type=click.IntRange(1, 100_000), default=TRIALS, show_default=True, help="Trials of each kind."
)
@click.option(
    "--level",
    "levels",
    type=click.FloatRange(0.1, 50),
    multiple=True,
    metavar="PERCENT",
    help="A slow-down to measure instead of 0.5, 1, 2 and 5. Repeatable.",
)
@click.option("--output", type=click.Path(path_type=Path), help="Directory for calibration.json [results/<run-id>].")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout: that of calibration.json.")
def command(
    *, pool: int, trials: int, levels: tuple[float, ...], output: Path | None, as_json: bool, **options: Any
) -> int:
    """How far verdicts can be trusted: false positives, noise and power, measured on kernels whose difference is known.

    A is the baseline, A' differs from it in addresses only, and a third kernel does extra work in each wakeup: as much as makes
    hackbench slower by 0.5, 1, 2 and 5 percent. Trials of --seeds seeds [10] are drawn from the pools and judged as a run's would be.
    Exit code 1 when a target is missed: more than 1 % false positives at alpha 0.01, or a slow-down of 1 % found in
    less than 95 % of trials. What was measured before is reused; killed, the same command resumes.

    \b
    Example:
      ./kpatch-ci calibrate --profile precise --workload hackbench --pool 60
    """
    seeds = options["seeds"] or SEEDS
    if options["series"]:
        raise click.UsageError("calibrate has its own series: leave --series out")
    if not 2 <= seeds <= pool:
        raise click.UsageError(f"a trial of {seeds} seeds: from 2 to --pool, which is {pool}")
    config = narrowed({**options, "seeds": None}, all_cases=True)
    config = replace(config, seeds=tuple(Seed(boot, 1) for boot in range(1, pool + 1)))
    series = calibration_series(config.patches)
    run_id, directory = output_directory(output)
    session = open_session(config, jobs=options["jobs"], logs=directory / "logs", say=say)
    began = time.monotonic()
    pools = measure(session, series, lambda: progress(stderr_console()), config.seeds, sorted(set(levels)) or LEVELS)
    measured = time.monotonic()
    found = [judge(one, config, seeds, trials) for one in pools]
    took = {"measured": round(measured - began, 1), "drawn": round(time.monotonic() - measured, 1)}
    whole = document(found, config, session, run_id=run_id, command=command_line(), took=took)
    directory.mkdir(parents=True, exist_ok=True)
    write_text(directory / FILE, json.dumps(whole, indent=1) + "\n")
    if as_json:
        print_json(whole)
    else:
        show(found, took, directory / FILE)
    return 0 if all(target.met for one in found for target in one.targets) else 1
