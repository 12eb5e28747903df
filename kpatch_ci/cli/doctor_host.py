# SPDX-License-Identifier: GPL-2.0-or-later
"""``kpatch-ci doctor --host``: a machine of ``hosts:``, or any that can be logged in to; with ``--fix`` it is brought up."""

from __future__ import annotations

from kpatch_ci.debian.apt import Archives
from kpatch_ci.debian.toolroot import find_toolroot
from kpatch_ci.host import remote, remote_install
from kpatch_ci.host.finding import Finding
from kpatch_ci.host.ssh import parse_target
from kpatch_ci.model.hosts import Host
from kpatch_ci.pipeline.far.bringup import bring_up
from kpatch_ci.pipeline.far.look import look
from kpatch_ci.pipeline.session import Say, open_tools
from kpatch_ci.store.artifacts import ArtifactStore
from kpatch_ci.store.cache import cache_root


def unnamed_host(target: str) -> Host:
    """``[USER@]HOST[:PORT]`` as a host with a work directory where it is by default. Raises UserError."""
    return Host(target, parse_target(target, "--host"))


def examine(host: Host, suite: str) -> list[Finding]:
    """What the host has and lacks, and whether it can do what this machine does. Raises InfrastructureError (cannot log in)."""
    with remote.opened(host.login, host.name) as made:
        found = remote.ask(made, remote.checks_of(host))
    if any(one.ok is False for one in found if one.name in ("python", "git")):
        return [*found, Finding("worker", None, "not tried: python3 or git is not there")]
    return [*found, *look(host, suite, find_toolroot(cache_root(), suite))]


def fix(host: Host, suite: str, archives: tuple[str, str | None] | None, say: Say) -> None:
    """Bring the host up: packages, our code, our tool root. Says what it does.

    Raises InfrastructureError with what is in the way; what was done until then stays, and is not done again.
    """
    with remote.opened(host.login, host.name) as made:
        found = remote.ask(made, remote.checks_of(host))
        packages = remote.lacking(found)
        if packages:
            remote_install.install(made, host.name, packages, say)
        else:
            say(f"{host.name}: no package is missing")
    cache, tools, _ = open_tools(suite, Archives(*archives) if archives else None, say)
    bring_up(host, tools, ArtifactStore(cache / "store"), say)
