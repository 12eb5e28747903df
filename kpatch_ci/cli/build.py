# SPDX-License-Identifier: GPL-2.0-or-later
"""``kpatch-ci build``: baseline and patched kernels, nothing booted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from kpatch_ci.cli.checks import check_options, chosen_checks
from kpatch_ci.cli.options import chosen, output_directory, progress, selection, stderr_console
from kpatch_ci.cli.output import print_json, say, tables
from kpatch_ci.kernel.diagnostics import introduced
from kpatch_ci.model.build import BuildResult
from kpatch_ci.model.series import BASELINE, ApplyResult, Series
from kpatch_ci.model.status import Status
from kpatch_ci.pipeline.each import checks_of, each_of
from kpatch_ci.pipeline.engine import Values
from kpatch_ci.pipeline.plan import Depth
from kpatch_ci.pipeline.run import execute, load_all
from kpatch_ci.pipeline.session import open_session
from kpatch_ci.pipeline.stagenames import apply_name, build_name
from kpatch_ci.report.checks import all_lines, check_json, each_json
from kpatch_ci.report.parts import CheckDoc, EachDoc


@click.command(name="build")
@selection
@check_options
@click.option(
    "--output", type=click.Path(path_type=Path), help="Directory for logs of failing builds [results/<run-id>]."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def command(output: Path | None, as_json: bool, **options: Any) -> int:
    """Build the baseline and every selected series, and say where images, configurations and logs are.

    \b
    Example:
      ./kpatch-ci build --series wakeup-gran --arch arm64
      ./kpatch-ci build --each --w1 --checkpatch         is every patch whole, and what do they newly warn of?
    """
    config, checks = chosen(options), chosen_checks(options)
    series = load_all(config)
    _, directory = output_directory(output)
    session = open_session(config, jobs=options["jobs"], logs=directory / "logs", say=say, hosts=False, boots=False)
    with progress(stderr_console()) as observer:
        values = execute(session, series, observer, Depth(boots=False, checks=checks)).values
    arms = list(dict.fromkeys((BASELINE, *(arm.kernel for s in series for arm in s.arms))))
    asked = {one.patched_kernel: one for one in series}
    rows = [
        _row(machine.arch, arm, values) | _asked(machine.arch, asked.get(arm), values)
        for machine in config.machines
        for arm in arms
    ]
    if as_json:
        print_json(rows)
    else:
        _show(rows)
    return exit_status(rows)


def exit_status(rows: list[dict[str, Any]]) -> int:
    """1 where a kernel does not build, after any patch that was asked about; 3 where a checker could not do its work."""
    if any(check["status"] != Status.PASSED for row in rows for check in row.get("checks", [])):
        return 3
    whole = all(not row.get("each") or row["each"]["status"] == Status.PASSED for row in rows)
    return 0 if whole and all(row["status"] == Status.PASSED for row in rows) else 1


def _asked(arch: str, series: Series | None, values: Values) -> dict[str, Any]:
    """What was asked beside the build: a build after every patch, checkers."""
    if series is None:
        return {}
    each, checks = each_of(values, arch, series), checks_of(values, arch, series)
    docs = (
        {"each": EachDoc.model_validate(each_json(each, {p.log: str(p.log) for p in each.patches if p.log}))}
        if each
        else {}
    )
    found = {name: doc.model_dump(mode="json") for name, doc in docs.items()}
    return found | (
        {"checks": [CheckDoc.model_validate(check_json(c)).model_dump(mode="json") for c in checks]} if checks else {}
    )


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
        each = EachDoc.model_validate(row["each"]) if row.get("each") else None
        for line in all_lines(each, [CheckDoc.model_validate(c) for c in row.get("checks", [])]):
            out.print(Text(f"  {line}"), soft_wrap=True)
