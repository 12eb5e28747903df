# SPDX-License-Identifier: GPL-2.0-or-later
"""``kpatch-ci boot``: one guest, to look at or to look around in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.text import Text

from kpatch_ci.cli.options import chosen, output_directory, progress, selection, stderr_console
from kpatch_ci.cli.output import print_json, say, tables
from kpatch_ci.model.boot import BootResult
from kpatch_ci.model.series import BASELINE
from kpatch_ci.model.status import Status
from kpatch_ci.pipeline.board import refuse_prompt
from kpatch_ci.pipeline.plan import Depth
from kpatch_ci.pipeline.run import execute, load_all
from kpatch_ci.pipeline.session import open_session
from kpatch_ci.pipeline.stagenames import boot_name, build_name, image_name


@click.command(name="boot")
@selection
@click.option("--shell", is_flag=True, help="A prompt in the guest; `exit` or Ctrl-D ends it.")
@click.option(
    "--output", type=click.Path(path_type=Path), help="Directory for logs of failing boots [results/<run-id>]."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def command(shell: bool, output: Path | None, as_json: bool, **options: Any) -> int:
    """Boot the baseline (or --series NAME), check what the guest says of itself, and show it.

    \b
    Examples:
      ./kpatch-ci boot --arch arm64
      ./kpatch-ci boot --arch arm64 --series wakeup-gran --shell
    """
    if shell and (as_json or not options["arch"]):
        raise click.UsageError("--shell wants --arch NAME and no --json: it is for a person at a terminal")
    options["seeds"] = options["seeds"] or 1
    config = chosen(options)
    if shell:
        refuse_prompt(config.machines[0])
    series = load_all(config) if options["series"] else ()
    _, directory = output_directory(output)
    session = open_session(config, jobs=options["jobs"], logs=directory / "logs", say=say, hosts=False)
    with progress(stderr_console()) as observer:
        values = execute(session, series, observer, Depth(replicates=False), baseline=not series).values
    arms = list(dict.fromkeys(one.patched_kernel for one in series)) or [BASELINE]
    if shell:
        machine, arm = config.machines[0], arms[0]
        build = values[build_name(machine.arch, arm)]
        if build is None or build.status is not Status.PASSED:
            click.echo(f"{machine.arch} {arm}: there is no kernel to boot", err=True)
            return 1
        say("booting; the prompt comes after the kernel's messages (exit or Ctrl-D ends the guest)")
        return session.guests().boot_plain(build, values[image_name(machine.arch)], machine, config.seeds[0].boot)
    boots = [values[boot_name(m.arch, arm, config.seeds[0].boot)] for m in config.machines for arm in arms]
    if as_json:
        print_json([_row(b) for b in boots if b])
    else:
        for boot in boots:
            _show(boot)
    return 0 if all(b and b.status is Status.PASSED for b in boots) else 1


def _row(boot: BootResult) -> dict[str, Any]:
    return {
        "arch": boot.arch,
        "arm": boot.arm,
        "machine": boot.machine,
        "status": str(boot.status),
        "seconds": boot.seconds,
        "facts": dict(boot.facts),
        "differences": list(boot.differences),
        "reason": boot.reason,
        "qemu_argv": list(boot.qemu_argv),
    }


def _show(boot: BootResult | None) -> None:
    out = tables()
    if boot is None:
        out.print("skipped: there is no kernel to boot", style="bold")
        return
    facts = boot.facts
    out.print(Text(f"{boot.arch} {boot.arm} on {boot.machine}: {boot.status} ({boot.seconds:.1f} s)", style="bold"))
    if boot.status is not Status.PASSED:
        out.print(
            Text(f"{boot.reason}\n{boot.log_tail}\nconsole: {boot.console}\nreproduce: {boot.reproduce}"),
            soft_wrap=True,
        )
        return
    out.print(Text(f"  linux {facts.get('release')}, {facts.get('cpus')} CPUs, clocksource {facts.get('clocksource')}"))
    for cpu in facts.get("cpu", []):
        told = ", ".join(f"{k} {v}" for k, v in cpu.items() if k != "cpu" and v not in (None, "", -1))
        out.print(Text(f"  CPU {cpu.get('cpu')}: {told}"))
    features = facts.get("features", [])
    out.print(Text(f"  sched features: {' '.join(features) if isinstance(features, list) else features}"))
