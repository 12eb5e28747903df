# SPDX-License-Identifier: GPL-2.0-or-later
"""The same questions to another machine, over SSH."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from kpatch_ci.host import finding as judge
from kpatch_ci.host.finding import Finding
from kpatch_ci.host.ssh import connection, open_connection, parse_target, require_key
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.model.hosts import Host, Login

STEP = 6
DEADLINE = 40.0
"""Seconds for all questions together: a machine that hangs at each is not asked to the end."""

Connect = Callable[[Login], Any]
"""Makes a fabric Connection (or what acts like one)."""
Check = tuple[str, str, Callable[[str], Finding]]
"""Name, POSIX shell command, what its output means."""
PACKAGES = {"python": "python3", "git": "git", "bubblewrap": "bubblewrap"}
"""Finding -> Debian package that mends it."""


def _sandbox(text: str) -> Finding:
    if "works" in text:
        return Finding("sandbox", True, "works (tried on the host's own files)")
    return Finding("sandbox", False, "does not work", "kernel namespaces are needed: a container wants --privileged")


_KEPT = "${KPATCH_CI_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}}"


def _df(where: str) -> str:
    """Shell that tells of the disk that holds ``where``, a word of shell, or will hold it."""
    return f'd="{where}"; while [ ! -e "$d" ]; do d=$(dirname "$d"); done; df -Pk "$d" | tail -n 1'


CHECKS: tuple[Check, ...] = (
    ("python", "python3 --version", judge.python),
    ("git", "git --version", lambda text: judge.program("git", "git", text)),
    ("bubblewrap", "bwrap --version", lambda text: judge.program("bwrap", "bubblewrap", text)),
    ("sandbox", "bwrap --unshare-all --ro-bind / / -- /bin/true && echo works", _sandbox),
    ("cores", "nproc", lambda text: judge.cores(int(text))),
    ("memory", "grep MemTotal: /proc/meminfo", lambda text: judge.memory(int(text.split()[1]) * 1024)),
    ("disk", _df(_KEPT), lambda text: judge.disk(int(text.split()[3]) * 1024, "the cache", warm=False)),
)
"""Each prints nothing when what it asks for is not there."""


def checks_of(host: Host) -> tuple[Check, ...]:
    """What a machine of ``hosts:`` is asked: it needs less room than one that does everything."""
    where = re.sub(r'([\\"$`])', r"\\\1", host.work)
    if where.startswith("~/"):
        where = f"$HOME{where[1:]}"
    there = {"warm": "tools/*/packages.json", "source": "src/*/Makefile"}
    looks = [
        f'for one in "{where}"/{names}; do if [ -e "$one" ]; then echo {word}; fi; done'
        for word, names in there.items()
    ]

    def room(text: str) -> Finding:
        said = text.splitlines()
        source = "build" in host.uses and "source" not in said
        return judge.work(int(text.split()[3]) * 1024, host.work, warm="warm" in said, source=source)

    return (*CHECKS[:-1], ("disk", "; ".join([_df(where), *looks]), room))


def examine(target: str, *, connect: Connect = connection) -> list[Finding]:
    """What ``USER@HOST[:PORT]`` has and lacks. Raises UserError (no such form), InfrastructureError (cannot log in)."""
    with opened(parse_target(target, "--host"), target, connect=connect) as made:
        return ask(made, CHECKS)


@contextmanager
def opened(login: Login, name: str, *, connect: Connect = connection) -> Iterator[Any]:
    """A connection to a machine that is called ``name``. Raises InfrastructureError."""
    require_key(login, name)
    with connect(login) as made:
        open_connection(made, name)
        yield made


def ask(made: Any, checks: Sequence[Check]) -> list[Finding]:
    """One after the other. Raises InfrastructureError when the connection breaks."""
    end = time.monotonic() + DEADLINE
    return [_ask(made, *check, min(float(STEP), end - time.monotonic())) for check in checks]


def lacking(findings: Sequence[Finding]) -> list[str]:
    """Debian packages that would mend what was found missing."""
    return [PACKAGES[one.name] for one in findings if one.ok is False and one.name in PACKAGES]


def _ask(made: Any, name: str, script: str, meaning: Callable[[str], Finding], seconds: float) -> Finding:
    import invoke  # noqa: PLC0415

    if seconds <= 0:
        return Finding(name, None, f"not asked: the others took {DEADLINE:.0f} s")
    quoted = script.replace("'", "'\\''")
    try:
        done = made.run(f"sh -c '{quoted}'", hide=True, warn=True, pty=False, in_stream=False, timeout=seconds)
    except invoke.exceptions.CommandTimedOut:
        return Finding(name, None, f"no answer within {STEP} s")
    except OSError as error:
        raise InfrastructureError(f"the connection broke while asking for {name}: {error}") from error
    try:
        return meaning(done.stdout if done.ok else "")
    except (ValueError, IndexError):
        return Finding(name, None, f"cannot be told: {(done.stderr or done.stdout).strip() or 'no output'}")
