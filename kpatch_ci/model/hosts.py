# SPDX-License-Identifier: GPL-2.0-or-later
"""Machines that stages may run on, as pipeline.yaml names them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

DEFAULT_WORK = "~/.cache/kpatch-ci"


@dataclass(frozen=True, slots=True)
class Login:
    """How to get into a machine. What is None is left to ~/.ssh/config, or to ssh's own defaults. There is no password."""

    address: str
    user: str | None = None
    port: int | None = None
    key: Path | None = None
    """A private key's file."""
    jump: str | None = None
    """[USER@]HOST[:PORT] through which it is reached."""


@dataclass(frozen=True, slots=True)
class Host:
    """A machine of ``hosts:``. ``work`` is a directory there, with ~ for the user's home; ``slots`` None: one for each of its CPUs."""

    name: str
    login: Login
    work: str = DEFAULT_WORK
    slots: int | None = None
    uses: frozenset[str] = frozenset({"guest"})


@dataclass(frozen=True, slots=True)
class HostUse:
    """What a run had of a place: how many stages it did, bytes sent to it and received, and why it was lost."""

    name: str
    stages: int
    sent: int = 0
    received: int = 0
    lost: str = ""
