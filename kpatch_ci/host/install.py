# SPDX-License-Identifier: GPL-2.0-or-later
"""System packages that this machine must have: very few, for compilers and QEMU live in the tool root."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kpatch_ci.debian.apt import KEYRING
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.process import Completed, run

LISTS = Path("/var/lib/apt/lists")
INSTALL_TIMEOUT = 900.0
_STALE = re.compile(r"unable to (fetch|locate)|no installation candidate|404", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Need:
    """``wanted`` is a program looked up on PATH, or a file where it begins with a slash."""

    wanted: str
    package: str
    why: str

    @property
    def there(self) -> bool:
        """Whether this machine has it."""
        return Path(self.wanted).exists() if self.wanted.startswith("/") else shutil.which(self.wanted) is not None


NEEDS = (
    Need("bwrap", "bubblewrap", "the sandbox in which compilers and QEMU run"),
    Need("git", "git", "kernel trees and series are git objects"),
    Need("dpkg-deb", "dpkg", "unpacks compilers, QEMU and the guests' programs"),
    Need(str(KEYRING), "debian-archive-keyring", "verifies every package that is fetched"),
    Need("/etc/ssl/certs/ca-certificates.crt", "ca-certificates", "verifies https archives and git servers"),
)


def missing(wanted: Sequence[Need] | None = None) -> list[Need]:
    """What of ``wanted``, or else of NEEDS, is not there."""
    return [need for need in (NEEDS if wanted is None else wanted) if not need.there]


def command(needs: list[Need]) -> str:
    """What a person types to install them."""
    return f"sudo apt-get install -y {' '.join(dict.fromkeys(n.package for n in needs))}"


def ensure(say: Callable[[str], None], wanted: Sequence[Need] | None = None) -> None:
    """Install what is missing, saying what and why. Raises InfrastructureError: no Debian, no root, or apt's own words."""
    needs = missing(wanted)
    if not needs:
        return
    apt = [*_as_root(needs), "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "-o", "DPkg::Lock::Timeout=120"]
    for need in needs:
        say(f"installing {need.package} ({need.why})")
    if not any(LISTS.glob("*_Packages*")):
        _update(apt)
    done = _install(apt, needs)
    if not done.ok and _STALE.search(done.output):
        _update(apt)
        done = _install(apt, needs)
    if not done.ok:
        raise InfrastructureError(
            f"cannot install {', '.join(n.package for n in needs)}: {done.explain()}",
            log=_last(done),
            hint=f"run it by hand: {command(needs)}",
        )
    still = missing(wanted)
    if still:
        raise InfrastructureError(f"{still[0].package} is installed, but {still[0].wanted} is not there")


def _as_root(needs: list[Need]) -> list[str]:
    names = ", ".join(n.package for n in needs)
    if shutil.which("apt-get") is None:
        raise InfrastructureError(
            f"missing here: {names}, and this is no Debian (no apt-get)",
            hint="kpatch-ci runs on Debian 12 and 13 and what derives from them",
        )
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo") is not None and run(["sudo", "-n", "true"], timeout=10).ok:
        return ["sudo", "-n"]
    why = "; ".join(f"{n.package}: {n.why}" for n in needs)
    raise InfrastructureError(f"missing here: {names} ({why})", hint=command(needs))


def _update(apt: list[str]) -> None:
    done = run([*apt, "update"], timeout=INSTALL_TIMEOUT)
    if not done.ok:
        raise InfrastructureError(
            f"cannot fetch the host's package lists: {done.explain()}", log=_last(done), hint="is the network there?"
        )


def _install(apt: list[str], needs: list[Need]) -> Completed:
    packages = dict.fromkeys(n.package for n in needs)
    return run([*apt, "install", "-y", "--no-install-recommends", *packages], timeout=INSTALL_TIMEOUT)


def _last(done: Completed) -> str:
    return "\n".join(done.output.splitlines()[-15:])
