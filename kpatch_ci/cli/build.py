# SPDX-License-Identifier: GPL-2.0-or-later
"""``kpatch-ci build``: baseline and patched kernels, nothing booted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from kpatch_ci.cli.options import chosen, output_directory, progress, selection, stderr_console
from kpatch_ci.cli.output import print_json, say, tables
from kpatch_ci.kernel.diagnostics import introduced
from kpatch_ci.model.build import BuildResult
from kpatch_ci.model.series import BASELINE, ApplyResult
from kpatch_ci.model.status import Status
from kpatch_ci.pipeline.engine import Values
from kpatch_ci.pipeline.plan import Depth
from kpatch_ci.pipeline.run import execute, load_all
from kpatch_ci.pipeline.session import open_session
from kpatch_ci.pipeline.stages import apply_name, build_name


@click.command(name="build")
@selection
@click.option(
    "--output", type=click.Path(path_type=Path), help="Directory for logs of failing builds [results/<run-id>]."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def command(output: Path | None, as_json: bool, **options: Any) -> int:
    """Build the baseline and every selected series, and say where images, configurations and logs are.

    \b
    Example:
      ./kpatch-ci build --series wakeup-gran --arch arm64
    """
    config = chosen(options)
    series = load_all(config)
    _, directory = output_directory(output)
    session = open_session(config, jobs=options["jobs"], logs=directory / "logs", say=say)
    with progress(stderr_console()) as observer:
        values = execute(session, series, observer, Depth(boots=False)).values
    arms = list(dict.fromkeys((BASELINE, *(arm.kernel for s in series for arm in s.arms))))
    rows = [_row(machine.arch, arm, values) for machine in config.machines for arm in arms]
    if as_json:
        print_json(rows)
    else:
        _show(rows)
    return 0 if all(row["status"] == Status.PASSED for row in rows) else 1


def _row(arch: str, arm: str, values: Values) -> dict[str, Any]:
    build: BuildResult | None = values[build_name(arch, arm)]
    if build is None:
        applied: ApplyResult | None = values.get(apply_name(arm))
        reason = applied.reason if applied and applied.status is not Status.PASSED else "the baseline does not build"
        return {"arch": arch, "arm": arm, "status": str(Status.SKIPPED), "reason": reason}
    baseline: BuildResult | None = values[build_name(arch, BASELINE)]
    new = introduced(build.warnings, baseline.warnings) if baseline else ()
    return {
        "arch": arch,
        "arm": arm,
        "status": str(build.status),
        "release": build.release,
        "objects": build.objects,
        "seconds": build.seconds,
        "cached": build.cached,
        "warnings": len(build.warnings),
        "new_warnings": [f"{w.path}:{w.line}: {w.text} [{w.option}]" for w in new],
        "artifact": str(build.artifact or ""),
        "log": str(build.log or ""),
        "reason": build.reason,
        "log_tail": build.log_tail,
        "reproduce": build.reproduce,
    }


def _show(rows: list[dict[str, Any]]) -> None:
    out = tables()
    table = Table(box=None, pad_edge=False)
    for heading in ("arch", "arm", "status", "objects", "seconds", "new warnings"):
        table.add_column(heading)
    for row in rows:
        status = f"{row['status']}{' (reused)' if row.get('cached') else ''}"
        new = row.get("new_warnings", [])
        table.add_row(
            row["arch"],
            Text(row["arm"]),
            status,
            str(row.get("objects", "")),
            str(row.get("seconds", "")),
            str(len(new)),
        )
    out.print(table)
    for row in rows:
        name = f"{row['arch']} {row['arm']}"
        if row["status"] == Status.PASSED:
            out.print(Text(f"{name}: {row['artifact']}"), soft_wrap=True)
        else:
            out.print(
                Text(f"{name}: {row['status']}: {row['reason']}\n{row.get('log_tail', '')}\nlog: {row.get('log', '')}"),
                soft_wrap=True,
            )
        for warning in row.get("new_warnings", []):
            out.print(Text(f"  new: {warning}"), soft_wrap=True)
