# SPDX-License-Identifier: GPL-2.0-or-later
"""Whoever logs in to the hosts of the tests."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.e2e.sshd import SshHost


@dataclass
class Client:
    """Whoever logs in: a home with known_hosts and keys. ``env`` goes to the commands that are to have it."""

    home: Path

    @property
    def env(self) -> dict[str, str]:
        """No agent: the keys of whoever tests are nobody's business."""
        return {"HOME": str(self.home), "SSH_AUTH_SOCK": ""}

    @property
    def known_hosts(self) -> Path:
        """The file of host keys."""
        return self.home / ".ssh" / "known_hosts"

    def trust(self, host: SshHost) -> None:
        """Take down the key that a host has now, in place of what was known of it."""
        public = (host.place / "host_key.pub").read_text().split()
        kept = [line for line in self._lines() if line.split()[0] != host.known_as]
        self._write([*kept, f"{host.known_as} {public[0]} {public[1]}"])

    def forget(self, host: SshHost) -> None:
        """As if the host had never been seen."""
        self._write([line for line in self._lines() if line.split()[0] != host.known_as])

    def _lines(self) -> list[str]:
        return self.known_hosts.read_text().splitlines() if self.known_hosts.exists() else []

    def _write(self, lines: list[str]) -> None:
        self.known_hosts.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.known_hosts.write_text("".join(f"{line}\n" for line in lines))
