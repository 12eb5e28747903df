# SPDX-License-Identifier: GPL-2.0-or-later
"""``kpatch-ci verify-determinism``: the same replicate again and again, and whether it is the same."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from kpatch_ci.cli.options import chosen, names, output_directory, progress, selection, stderr_console
from kpatch_ci.cli.output import print_json, say, tables
from kpatch_ci.config.load import Config
from kpatch_ci.host.load import busy, overload
from kpatch_ci.model.errors import UserError
from kpatch_ci.model.status import Mode
from kpatch_ci.pipeline.determinism import Finding
from kpatch_ci.pipeline.places import HERE
from kpatch_ci.pipeline.repeat import BootPair, Subject, Verified, verify
from kpatch_ci.pipeline.repeat_hosts import HostFinding
from kpatch_ci.pipeline.run import load_all
from kpatch_ci.pipeline.session import open_session

SCHEMA = "kpatch-ci/determinism/1"
MEANING = (
    f"A difference means that something of a host reached the guest. On that machine the workload's mode is {Mode.VIRTUAL_TIME}\n"
    f"from now on, not {Mode.DETERMINISTIC}: a run measures it anew each time and says so; do not reuse its samples.\n"
    "docs/determinism.md lists what was found so far. `./kpatch-ci clean --kind inexact` forgets the mark."
)


@click.command(name="verify-determinism")
@selection
@click.option(
    "--repeats", type=click.IntRange(2, 10_000), default=10, show_default=True, help="Repeats of each replicate."
)
@click.option(
    "--hosts",
    callback=names,
    metavar="HOST,...",
    help="Also on these machines of `hosts:`, and compare with here (docs/hosts.md).",
)
@click.option("--load", is_flag=True, help="Meanwhile run busy loops, one more than there are CPUs.")
@click.option("--all-cases", is_flag=True, help="Every case of the profile, not only each workload's first.")
@click.option(
    "--output", type=click.Path(path_type=Path), help="Directory for logs of failing guests [results/<run-id>]."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def command(
    *,
    repeats: int,
    hosts: tuple[str, ...] | None,
    load: bool,
    all_cases: bool,
    output: Path | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Repeat replicates of the baseline (or --series NAME) and compare all that the guest said: samples, counters, console.

    One boot (--seeds for more) and the quick profile unless told otherwise. Each boot seed is booted twice, and every second repeat
    comes from the second boot. Nothing measured before is used. Exit code 1 when any repeat differs or fails.

    With --hosts every host boots too, and repeats go round: this machine's two boots, then each host. Where a host differs from
    this machine the first counter that differs is named.

    \b
    Example:
      ./kpatch-ci verify-determinism --repeats 100 --load
      ./kpatch-ci verify-determinism --hosts big-one,spare --repeats 8
    """
    wanted = {
        **options,
        "on": _on(hosts, options),
        "profile": options["profile"] or "quick",
        "seeds": options["seeds"] or 1,
    }
    config = narrowed(wanted, all_cases)
    _check_hosts(config)
    _check_repeats(repeats, len(config.hosts))
    series = load_all(config) if options["series"] else ()
    _, directory = output_directory(output)
    session = open_session(config, jobs=options["jobs"], logs=directory / "logs", say=say)
    loops = overload() if load else 0
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        if loops:
            stack.enter_context(busy(loops))
            say(f"load: {loops} busy loops")
        observer = stack.enter_context(progress(stderr_console()))
        verified = verify(session, series, observer, repeats=repeats)
    seconds = time.monotonic() - began
    if as_json:
        head = {"schema": SCHEMA, "repeats": repeats, "busy_loops": loops, "seconds": round(seconds, 1)}
        tools = {"tools": session.tools.fingerprint, "versions": dict(session.tools.versions)}
        print_json({**head, **tools, **_plain(verified)})
    else:
        _show(verified, f"{repeats} repeats each, {loops} busy loops, {seconds:.0f} s")
    return 0 if verified.identical else 1


def _on(hosts: tuple[str, ...] | None, options: dict[str, Any]) -> tuple[str, ...]:
    """Machines to use, as ``--on`` would say it: this one always is."""
    if options.get("on") is not None:
        raise click.UsageError("--on is for runs; here it is --hosts NAME,...")
    return (*(hosts or ()), HERE)


def _check_hosts(config: Config) -> None:
    for host in config.hosts:
        if "guest" not in host.uses:
            what = f"{host.name} boots no guests (`for: [build]`), and guests are compared"
            raise UserError(what, where="--hosts", expected="machines with `guest` in their `for:`")


def _check_repeats(repeats: int, hosts: int) -> None:
    if hosts and repeats < 2 + hosts:
        what = f"{repeats} repeats do not go round this machine's two boots and {hosts} hosts"
        raise UserError(what, where="--repeats", expected=f"{2 + hosts} at least")


def narrowed(options: dict[str, Any], all_cases: bool) -> Config:
    """The configuration, with each workload's first case only unless ``all_cases``. Raises UserError."""
    config = chosen(options)
    for machine in config.machines:
        if machine.real_time:
            what = f"{machine.name} runs in real time ({machine.accel}): no two of its replicates are alike"
            raise UserError(what, where="--accel", expected="deterministic: that is what is verified")
    if all_cases:
        return config
    return dataclasses.replace(
        config, workloads=tuple(dataclasses.replace(plan, cases=plan.cases[:1]) for plan in config.workloads)
    )


def _plain(verified: Verified) -> dict[str, Any]:
    return {
        "identical": verified.identical,
        "hosts": [_host(one) for one in verified.hosts],
        "boots": [
            {"arch": b.machine.arch, "arm": b.arm, "seed": b.seed, **_finding(b.finding)} for b in verified.boots
        ],
        "cases": [
            {
                "arch": s.machine.arch,
                "arm": s.arm.label,
                "workload": s.plan.name,
                "case": s.case.label,
                "seed": str(s.seed),
                **_finding(f),
            }
            for s, f in verified.subjects
        ],
    }


def _host(one: HostFinding) -> dict[str, Any]:
    return {**dataclasses.asdict(one), "identical": one.identical}


def _finding(f: Finding) -> dict[str, Any]:
    return {
        "repeats": f.repeats,
        "alike": f.alike,
        "identical": f.identical,
        "mode": str(f.mode) if f.mode else None,
        "first_difference": f.first,
        "failed": f.failed,
        "odd": [dataclasses.asdict(odd) for odd in f.odd],
    }


def _show(verified: Verified, how: str) -> None:
    out = tables()
    table = Table(box=None, pad_edge=False)
    for heading in ("arch", "arm", "workload", "case", "seed"):
        table.add_column(heading)
    table.add_column("identical", justify="right")
    table.add_column("first difference")
    for row in [*map(_boot_row, verified.boots), *(_row(*one) for one in verified.subjects)]:
        table.add_row(*map(Text, row))
    out.print(table)
    alike, total = sum(f.alike for _, f in verified.subjects), sum(f.repeats for _, f in verified.subjects)
    out.print(Text(f"{alike} of {total} replicates identical: samples, counters, console ({how})"))
    for one in verified.hosts:
        out.print(Text(_host_line(one)), soft_wrap=True)
    if any(f.unlike for _, f in verified.subjects):
        out.print(Text(MEANING), soft_wrap=True)


def _host_line(one: HostFinding) -> str:
    if one.identical:
        return f"{one.name}: all {one.compared} boots and replicates as on this machine"
    if not one.compared:
        return f"{one.name}: nothing was measured there"
    return (
        f"{one.name} DIFFERS: {one.alike} of {one.compared} boots and replicates as on this machine; first {one.first}"
    )


def _row(subject: Subject, f: Finding) -> Sequence[str]:
    name = (subject.machine.arch, subject.arm.label, subject.plan.name, subject.case.label, str(subject.seed))
    return (*name, f"{f.alike} of {f.repeats}", f.first or "-")


def _boot_row(boot: BootPair) -> Sequence[str]:
    name = (boot.machine.arch, boot.arm, "(boot)", "memory,facts,console", str(boot.seed))
    return (*name, f"{boot.finding.alike} of {boot.finding.repeats}", boot.finding.first or "-")
