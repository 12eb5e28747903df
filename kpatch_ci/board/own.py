# SPDX-License-Identifier: GPL-2.0-or-later
"""What is the board's own and goes into the kernel under test's initramfs: its address, its host keys, who may log in.

It is put together on the board, from the system that the board usually runs: host keys never leave it. So the kernel under test
answers at the same address, with the same host key, to the same users.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from kpatch_ci.model.errors import InfrastructureError

ASK = (
    'for n in /sys/class/net/*; do [ -e "$n/address" ] && echo "mac ${n##*/} $(cat "$n/address")"; done; '
    "ip -o -4 addr show | sed 's/^/addr /'; ip -4 route show default | sed 's/^/route /'; "
    'echo "connection $KPCI_CONNECTION"'
)
"""Network cards, IPv4 addresses, default routes, and who talks to whom over this connection."""


@dataclass(frozen=True, slots=True)
class Network:
    """The card that the board is reached through, by its hardware address, and what it is called in the network."""

    mac: str
    address: str
    """With the prefix's length."""
    gateway: str | None

    @property
    def line(self) -> str:
        """As qemu/board/init reads it."""
        return f"{self.mac} {self.address} {self.gateway or '-'}"


def read_network(text: str, name: str) -> Network:
    """From the answer to ASK. Raises InfrastructureError with what is missing; ``name`` is the board's."""
    lines = [line.split() for line in text.splitlines()]
    peers = next((words[1:] for words in lines if words[:1] == ["connection"]), [])
    if len(peers) != 4 or not re.fullmatch(r"[0-9.]+", peers[2]):
        what = f"board {name}: its SSH server does not say at which IPv4 address it was reached ({' '.join(peers) or 'nothing'})"
        raise InfrastructureError(what, hint="boards are reached over IPv4, by OpenSSH's or Dropbear's server")
    mine = peers[2]
    for words in lines:
        if words[:1] == ["addr"] and "inet" in words:
            full = words[words.index("inet") + 1]
            if full.split("/")[0] == mine and "/" in full:
                card = words[2].split("@")[0].rstrip(":")
                return Network(_mac(lines, card, name), full, _gateway(lines, card))
    raise InfrastructureError(f"board {name}: no network card of it has the address {mine}")


def _mac(lines: list[list[str]], card: str, name: str) -> str:
    found = next((words[2] for words in lines if words[:2] == ["mac", card] and len(words) > 2), None)
    if not found or not re.fullmatch(r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}", found):
        what = f"board {name} is reached through {card}, which is no Ethernet card with an address of its own"
        raise InfrastructureError(
            what, hint="a bridge or a bond is made by the board's own system; give it a plain card"
        )
    return found


def _gateway(lines: list[list[str]], card: str) -> str | None:
    for words in lines:
        if words[:1] == ["route"] and "via" in words and f"dev {card}" in " ".join(words):
            return words[words.index("via") + 1]
    return None


def own_part(network: Network, user: str, into: str, busybox: str) -> str:
    """Script that writes the archive ``into``. Ends with status 3 and a word where there are no keys to take along."""
    folder = shlex.quote(f"{into}.d")
    lines = (
        "set -e; umask 077",
        f"rm -rf {folder}; mkdir -p {folder}; cd {folder}",
        "mkdir -p kpci/keys etc root/.ssh",
        f"echo {shlex.quote(network.line)} > kpci/net",
        f"printf '%s\\n' {shlex.quote('root:x:0:0:root:/root:/bin/sh')} > etc/passwd",
        *([] if user == "root" else [f"echo {shlex.quote(f'{user}:x:0:0:board:/root:/bin/sh')} >> etc/passwd"]),
        "for k in /etc/ssh/ssh_host_*_key /etc/dropbear/dropbear_*_host_key; do "
        '[ -e "$k" ] && cp "$k" kpci/keys/; done || true',
        '[ -n "$(ls kpci/keys)" ] || { echo "no host keys in /etc/ssh or /etc/dropbear"; exit 3; }',
        f"while IFS=: read -r n x u g c h s; do [ $n = {user} ] && home=$h; done </etc/passwd || true",
        'for a in "${home:-/root}/.ssh/authorized_keys" /etc/dropbear/authorized_keys; do '
        '[ -e "$a" ] && cat "$a" >> root/.ssh/authorized_keys; done || true',
        '[ -s root/.ssh/authorized_keys ] || { echo "no authorized_keys of the user"; exit 3; }',
        "chmod 644 etc/passwd; chmod 755 etc",
        f"find etc kpci root | {shlex.quote(busybox)} cpio -o -H newc > {shlex.quote(into)}",
        f"cd /; rm -rf {folder}",
    )
    return "\n".join(lines)
