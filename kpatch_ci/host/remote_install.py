# SPDX-License-Identifier: GPL-2.0-or-later
"""Installs Debian packages on another machine, where that is allowed without a question."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kpatch_ci.host.ssh import ssh_command
from kpatch_ci.model.errors import InfrastructureError

ASK_TIMEOUT = 10
INSTALL_TIMEOUT = 600
GRACE = 30
"""Seconds after which our own end gives up, later than the other end's `timeout`, which leaves nothing running."""
APT = "env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=120"
Say = Callable[[str], None]


def install(made: Any, name: str, packages: Sequence[str], say: Say) -> None:
    """Install ``packages`` through an open connection, saying so. Raises InfrastructureError: no Debian, no root, apt's own words."""
    wanted = " ".join(packages)
    by_hand = f"{ssh_command(made)} -t sudo apt-get install -y {wanted}"
    if not _run(made, "command -v apt-get").ok:
        raise InfrastructureError(
            f"{name} lacks {wanted}, and is no Debian (no apt-get)",
            hint="hosts run Debian 12 and 13 and what derives from them",
        )
    apt = f"{_as_root(made, name, wanted, by_hand)}timeout -k 10 {INSTALL_TIMEOUT} {APT}"
    say(f"{name}: installing {wanted}")
    command = f"{apt} install -y --no-install-recommends {wanted}"
    done = _run(made, command, INSTALL_TIMEOUT + GRACE)
    if not done.ok:  # lists that are old, or not there
        say(f"{name}: fetching its package lists")
        _run(made, f"{apt} update", INSTALL_TIMEOUT + GRACE)
        done = _run(made, command, INSTALL_TIMEOUT + GRACE)
    if not done.ok:
        said = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        raise InfrastructureError(f"{name}: cannot install {wanted}", log=said, hint=f"by hand: {by_hand}")


def _as_root(made: Any, name: str, wanted: str, by_hand: str) -> str:
    if _run(made, "id -u").stdout.strip() == "0":
        return ""
    if _run(made, "sudo -n true").ok:
        return "sudo -n "
    raise InfrastructureError(
        f"{name} lacks {wanted}, and {getattr(made, 'user', None) or 'who logs in'} may not install there without a password",
        hint=by_hand,
    )


def _run(made: Any, script: str, seconds: int = ASK_TIMEOUT) -> Any:
    import invoke  # noqa: PLC0415 (fabric takes long to import)

    try:
        return made.run(f"sh -c '{script}'", hide=True, warn=True, pty=False, in_stream=False, timeout=seconds)
    except invoke.exceptions.CommandTimedOut as error:
        raise InfrastructureError(f"no answer within {seconds} s: {script}") from error
    except (OSError, EOFError) as error:
        raise InfrastructureError(f"the connection broke: {str(error) or type(error).__name__}: {script}") from error
