# SPDX-License-Identifier: GPL-2.0-or-later
"""``kpatch-ci doctor``: what this machine, or another one, has and lacks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from kpatch_ci.cli.options import pipeline_file
from kpatch_ci.cli.output import print_json, say, verbosity
from kpatch_ci.config.load import Selection, load_config
from kpatch_ci.host.finding import Finding
from kpatch_ci.store.cache import cache_root

SUITE = "trixie"
PROBE_TIMEOUT = 9.0
"""Well below doctor.DEADLINE: the probe names what it saw, the deadline only that there was no answer."""
_MARKS = {True: "ok", False: "MISSING", None: "-"}


@click.command(name="doctor")
@click.option(
    "--host", metavar="NAME|[USER@]HOST[:PORT]", help="Examine a machine of `hosts:`, or any, over SSH (keys only)."
)
@click.option("--fix", is_flag=True, help="Bring that machine up: packages, our code, this machine's tool root.")
@click.option("-c", "--config", "config_file", type=click.Path(path_type=Path), help="Pipeline file [pipeline.yaml].")
@click.option("--suite", help=f"Debian suite of the tool root [the file's `tools`, or {SUITE}].")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@verbosity
def command(host: str | None, fix: bool, config_file: Path | None, suite: str | None, as_json: bool) -> int:
    """Say what this machine, or another, has and lacks, and what to do about it. This machine takes 15 seconds at most.

    Another one is asked over SSH: host keys are checked, and no password is asked for. Of a machine of `hosts:` it is also said
    whether our code runs there and whether its tool root is this machine's (docs/hosts.md).

    Exit code 0: nothing that is needed is missing; 3: something is.
    \b
    Examples:
      ./kpatch-ci doctor
      ./kpatch-ci doctor --host big-one --fix
      ./kpatch-ci doctor --host me@runner.example:2222
    """
    if fix and host is None:
        raise click.UsageError("--fix is for another machine: --host NAME")
    findings = _here(suite or SUITE) if host is None else _there(host, fix, config_file, suite)
    if as_json:
        print_json({"host": host or "localhost", "findings": [f.as_dict() for f in findings]})
    else:
        for line in lines(findings):
            click.echo(line)
    return 3 if any(f.ok is False for f in findings) else 0


def _there(target: str, fix: bool, config_file: Path | None, suite: str | None) -> list[Finding]:
    from kpatch_ci.host import remote  # noqa: PLC0415 (fabric takes long to import)

    path = pipeline_file({"config_file": config_file})
    config = None if "@" in target and config_file is None else load_config(path, Selection())
    host = next((one for one in config.hosts if one.name == target), None) if config else None
    if host is None and not fix:
        return remote.examine(target)
    from kpatch_ci.cli import doctor_host  # noqa: PLC0415

    host = host or doctor_host.unnamed_host(target)
    wanted = suite or (config.tools if config else SUITE)
    if fix:
        doctor_host.fix(host, wanted, config.archives if config else None, say)
    return doctor_host.examine(host, wanted)


def _here(suite: str) -> list[Finding]:
    from kpatch_ci.debian.toolroot import find_toolroot  # noqa: PLC0415
    from kpatch_ci.guest.kvm import probe_kvm  # noqa: PLC0415
    from kpatch_ci.host import doctor  # noqa: PLC0415

    tools = find_toolroot(cache_root(), suite)
    probe = None if tools is None else partial(probe_kvm, tools, timeout=PROBE_TIMEOUT)
    return doctor.examine(cache_root(), suite, probe=probe)


def lines(findings: Sequence[Finding]) -> list[str]:
    """A table for people: mark, name, detail; what to do stands below."""
    width = max((len(f.name) for f in findings), default=0)
    result = []
    for finding in findings:
        result.append(f"{_MARKS[finding.ok]:8}{finding.name:{width}}  {finding.detail}")
        if finding.fix:
            result.append(f"{'':8}{'':{width}}  -> {finding.fix}")
    return result
