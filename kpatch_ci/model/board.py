# SPDX-License-Identifier: GPL-2.0-or-later
"""Boards: real machines that run the kernels under test, as told by a machine file of kind ``board`` (docs/boards.md)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Login:
    """How a board is reached over SSH. No password: a key, in the agent or in a file."""

    address: str
    user: str = "root"
    port: int = 22
    key: str | None = None
    """Private key's file; None: the agent's, and those where ssh looks."""
    known_hosts: str | None = None
    """File that holds the board's host key; None: the user's own."""
    jump: str | None = None
    """[USER@]HOST[:PORT] to go through."""

    @property
    def place(self) -> str:
        """What tells boards apart, whatever a machine file calls them: a file's name."""
        return f"{self.address}-{self.port}"

    def __str__(self) -> str:
        return f"{self.user}@{self.address}:{self.port}"


@dataclass(frozen=True, slots=True)
class Quiet:
    """What is set before each run, and watched beside it. None: left as it is."""

    governor: str | None = None
    boost: bool | None = None
    smt: bool | None = None
    max_celsius: float | None = None
    """A board that is hotter waits before a run, and a run that it gets hotter in does not count."""
    cool_seconds: float = 300.0
    """How long it waits for that at most."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Wall seconds. ``boot``: from a kernel's start to its answer over SSH. ``back``: from a reboot to the board's own system.

    ``silence``: of a console that has shown the kernel's command line, and not yet that it has its address.
    """

    boot: float = 120.0
    silence: float = 60.0
    back: float = 300.0
    command: float = 30.0


@dataclass(frozen=True, slots=True)
class Board:
    """What a machine is, beyond its CPUs and memory, where it is a board."""

    login: Login
    boot_entry: str | None = None
    """Shell command on the board that makes its boot loader start $KERNEL with $INITRD and $CMDLINE once. None: kexec."""
    console: str | None = None
    """Shell command on this machine that prints the board's console until it is ended."""
    power_cycle: str | None = None
    """Shell command on this machine that switches the board off and on."""
    folder: str = "/var/tmp/kpatch-ci"  # noqa: S108 (the board's, and only root writes there)
    """Where the board's own system keeps what is copied to it."""
    kconfig: tuple[str, ...] = ("board",)
    """Fragments that its kernels get besides those of the run."""
    clocksource: str | None = None
    """What the kernel is to tell its time by. None: whatever it does."""
    quiet: Quiet = Quiet()
    timeouts: Timeouts = Timeouts()
