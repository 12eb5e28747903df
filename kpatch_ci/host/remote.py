# SPDX-License-Identifier: GPL-2.0-or-later
"""The same questions to another machine, over SSH."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kpatch_ci.host import finding as judge
from kpatch_ci.host.finding import Finding
from kpatch_ci.host.ssh import connection, open_connection, parse_target
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.model.hosts import Login

STEP = 6

Connect = Callable[[Login], Any]
"""Makes a fabric Connection (or what acts like one)."""


def _sandbox(text: str) -> Finding:
    if "works" in text:
        return Finding("sandbox", True, "works (tried on the host's own files)")
    return Finding("sandbox", False, "does not work", "kernel namespaces are needed: a container wants --privileged")


_KEPT = "${KPATCH_CI_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}}"
CHECKS: tuple[tuple[str, str, Callable[[str], Finding]], ...] = (
    ("python", "python3 --version", judge.python),
    ("git", "git --version", lambda text: judge.program("git", "git", text)),
    ("bubblewrap", "bwrap --version", lambda text: judge.program("bwrap", "bubblewrap", text)),
    ("sandbox", "bwrap --unshare-all --ro-bind / / -- /bin/true && echo works", _sandbox),
    ("cores", "nproc", lambda text: judge.cores(int(text))),
    ("memory", "grep MemTotal: /proc/meminfo", lambda text: judge.memory(int(text.split()[1]) * 1024)),
    (
        "disk",
        f'd="{_KEPT}"; while [ ! -e "$d" ]; do d=$(dirname "$d"); done; df -Pk "$d" | tail -n 1',
        lambda text: judge.disk(int(text.split()[3]) * 1024, "the cache", warm=False),
    ),
)
"""Name, POSIX shell command, what its output means. Each prints nothing when what it asks for is not there."""


def examine(target: str, *, connect: Connect = connection) -> list[Finding]:
    """What ``USER@HOST[:PORT]`` has and lacks. Raises UserError (no such form), InfrastructureError (cannot log in)."""
    return examine_login(parse_target(target, "--host"), target, connect=connect)


def examine_login(login: Login, name: str, *, connect: Connect = connection) -> list[Finding]:
    """The same of a machine that is called ``name``."""
    with connect(login) as made:
        open_connection(made, name)
        return [_ask(made, check, script, meaning) for check, script, meaning in CHECKS]


def _ask(made: Any, name: str, script: str, meaning: Callable[[str], Finding]) -> Finding:
    import invoke  # noqa: PLC0415

    try:
        done = made.run(f"sh -c '{script}'", hide=True, warn=True, pty=False, in_stream=False, timeout=STEP)
    except invoke.exceptions.CommandTimedOut:
        return Finding(name, None, f"no answer within {STEP} s")
    except OSError as error:
        raise InfrastructureError(f"the connection broke while asking for {name}: {error}") from error
    try:
        return meaning(done.stdout if done.ok else "")
    except (ValueError, IndexError):
        return Finding(name, None, f"cannot be told: {(done.stderr or done.stdout).strip() or 'no output'}")
