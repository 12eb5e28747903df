# SPDX-License-Identifier: GPL-2.0-or-later
"""``kpatch-ci doctor``: what this machine, or another one, has and lacks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import click

from kpatch_ci.cli.output import print_json, verbosity
from kpatch_ci.host.finding import Finding
from kpatch_ci.store.cache import cache_root

SUITE = "trixie"
PROBE_TIMEOUT = 9.0
"""Well below doctor.DEADLINE: the probe names what it saw, the deadline only that there was no answer."""
_MARKS = {True: "ok", False: "MISSING", None: "-"}


@click.command(name="doctor")
@click.option("--host", metavar="[USER@]HOST[:PORT]", help="Examine another machine over SSH (keys only).")
@click.option("--suite", default=SUITE, show_default=True, help="Debian suite of the tool root.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@verbosity
def command(host: str | None, suite: str, as_json: bool) -> int:
    """Say what this machine has and lacks, and what to do about it. Takes 15 seconds at most.

    Exit code 0: nothing that is needed is missing; 3: something is.
    """
    findings = _findings(host, suite)
    if as_json:
        print_json({"host": host or "localhost", "findings": [f.as_dict() for f in findings]})
    else:
        for line in lines(findings):
            click.echo(line)
    return 3 if any(f.ok is False for f in findings) else 0


def _findings(host: str | None, suite: str) -> list[Finding]:
    if host is not None:
        from kpatch_ci.host import remote  # noqa: PLC0415 (fabric takes long to import)

        return remote.examine(host)
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
