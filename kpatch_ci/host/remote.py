# SPDX-License-Identifier: GPL-2.0-or-later
"""The same questions to another machine, over SSH. Host keys are checked, and no password is asked for or sent."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from kpatch_ci.host import finding as judge
from kpatch_ci.host.finding import Finding
from kpatch_ci.model.errors import InfrastructureError, UserError

CONNECT_TIMEOUT = 8
STEP = 6
TARGET = re.compile(r"(?:[A-Za-z0-9_][\w.-]*@)?[A-Za-z0-9][\w.-]*(?::\d+)?")

Connect = Callable[[str], Any]
"""user@host[:port] -> a fabric Connection (or what acts like one)."""


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


def connection(target: str) -> Any:
    """A fabric Connection to ``target`` that refuses unknown host keys and knows no password."""
    import fabric  # noqa: PLC0415 (paramiko takes long to import)
    import paramiko  # noqa: PLC0415

    made = fabric.Connection(
        target,
        connect_timeout=CONNECT_TIMEOUT,
        forward_agent=False,
        connect_kwargs={"banner_timeout": CONNECT_TIMEOUT, "auth_timeout": CONNECT_TIMEOUT},
    )
    made.client.load_system_host_keys()
    made.client.set_missing_host_key_policy(paramiko.RejectPolicy())
    return made


def examine(target: str, *, connect: Connect = connection) -> list[Finding]:
    """What ``USER@HOST[:PORT]`` has and lacks. Raises UserError (no such form), InfrastructureError (cannot log in)."""
    if not TARGET.fullmatch(target):
        raise UserError(f"no host: {target}", where="--host", expected="[USER@]HOST[:PORT]")
    with connect(target) as made:
        _open(made, target)
        return [_ask(made, name, script, meaning) for name, script, meaning in CHECKS]


def _open(made: Any, target: str) -> None:
    import paramiko  # noqa: PLC0415

    host, _, port = target.partition(":")
    ssh = f"ssh -p {port} {host}" if port else f"ssh {host}"
    hint = f"`{ssh} true` must work without a question: a key in your agent, the host in known_hosts"
    try:
        made.open()
    except paramiko.AuthenticationException as error:
        raise InfrastructureError(f"{target} does not let you in with a key: {error}", hint=hint) from error
    except paramiko.SSHException as error:
        raise InfrastructureError(f"cannot talk to {target}: {error}", hint=hint) from error
    except (OSError, EOFError) as error:
        said = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise InfrastructureError(f"cannot reach {target}: {said}", hint=hint) from error


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
