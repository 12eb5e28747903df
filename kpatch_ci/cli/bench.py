# SPDX-License-Identifier: GPL-2.0-or-later
"""``kpatch-ci bench``: samples of one kernel, without a comparison."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from kpatch_ci.cli.options import chosen, output_directory, progress, selection, stderr_console
from kpatch_ci.cli.output import print_json, say, tables
from kpatch_ci.model.status import Status
from kpatch_ci.model.workload import Replicate
from kpatch_ci.pipeline.run import execute, load_all
from kpatch_ci.pipeline.session import on_cluster, open_session


@click.command(name="bench")
@selection
@click.option(
    "--output", type=click.Path(path_type=Path), help="Directory for logs of failing guests [results/<run-id>]."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def command(output: Path | None, as_json: bool, **options: Any) -> int:
    """Measure the baseline (or --series NAME) and print its figures: mean, spread over seeds, counters.

    \b
    Example:
      ./kpatch-ci bench --arch arm64 --workload hackbench --seeds 6
    """
    config = chosen(options)
    series = load_all(config) if options["series"] else ()
    _, directory = output_directory(output)
    session = open_session(config, jobs=options["jobs"], logs=directory / "logs", say=say)
    with on_cluster(session, say) as session, progress(stderr_console()) as observer:
        values = execute(session, series, observer, baseline=not series).values
    rows = [
        (name.split(" ")[1], name.split(" ")[2], value)
        for name, value in values.items()
        if isinstance(value, Replicate)
    ]
    if as_json:
        print_json([{"arch": arch, "arm": arm, **_plain(r)} for arch, arm, r in rows])
    else:
        _show(rows)
    return 0 if rows and all(r.status is Status.PASSED for _, _, r in rows) else 1


def _plain(r: Replicate) -> dict[str, Any]:
    return {
        "workload": r.workload,
        "case": r.case,
        "seed": str(r.seed),
        "mode": str(r.mode),
        "status": str(r.status),
        "samples": dict(r.samples),
        "extra": dict(r.extra),
        "reason": r.reason,
        "cached": r.cached,
        "seconds": r.seconds,
    }


def _show(rows: Sequence[tuple[str, str, Replicate]]) -> None:
    groups: dict[tuple[str, ...], list[float]] = defaultdict(list)
    cost: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for arch, arm, r in rows:
        for metric, value in r.samples.items():
            groups[arch, arm, r.workload, r.case, metric].append(value)
            cost[arch, arm, r.workload, r.case, metric].append(r.seconds)
    out = tables()
    table = Table(box=None, pad_edge=False)
    for heading in ("arch", "arm", "workload", "case", "metric"):
        table.add_column(heading)
    for heading in ("n", "mean", "CoeffVar %", "min", "max", "host s"):
        table.add_column(heading, justify="right")
    for key, values in groups.items():
        mean = statistics.fmean(values)
        spread = statistics.stdev(values) / mean * 100 if len(values) > 1 and mean else 0.0
        figures = (
            f"{mean:.6g}",
            f"{spread:.2f}",
            f"{min(values):.6g}",
            f"{max(values):.6g}",
            f"{statistics.fmean(cost[key]):.2f}",
        )
        table.add_row(*(Text(part) for part in key), str(len(values)), *figures)
    out.print(table)
    for arch, arm, r in rows:
        if r.status is not Status.PASSED:
            out.print(
                Text(f"{arch} {arm} {r.workload} {r.case} seed {r.seed}: {r.status}: {r.reason}\n{r.log_tail}"),
                soft_wrap=True,
            )
