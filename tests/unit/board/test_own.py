# SPDX-License-Identifier: GPL-2.0-or-later
"""A board's address and keys: read from what its own system says, and put into an archive on the board itself."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kpatch_ci.board.own import Network, own_part, read_network
from kpatch_ci.model.errors import InfrastructureError
from tests.fakes.board import NETWORK


def test_the_card_that_the_connection_came_in_through_with_its_gateway() -> None:
    found = read_network(NETWORK, "lab")
    assert found == Network("52:54:00:12:34:56", "192.0.2.7/24", "192.0.2.1")
    assert found.line == "52:54:00:12:34:56 192.0.2.7/24 192.0.2.1"


def test_without_a_default_route_the_line_says_so() -> None:
    text = "\n".join(line for line in NETWORK.splitlines() if not line.startswith("route"))
    assert read_network(text, "lab").line == "52:54:00:12:34:56 192.0.2.7/24 -"


def test_of_two_cards_the_one_that_answers_and_its_own_route() -> None:
    more = (
        "mac usb0 02:00:00:00:00:01\naddr 3: usb0    inet 198.51.100.2/30 scope global usb0\n"
        "route default via 198.51.100.1 dev usb0 metric 10\n"
    )
    assert read_network(more + NETWORK, "lab") == Network("52:54:00:12:34:56", "192.0.2.7/24", "192.0.2.1")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("connection 192.0.2.9 40000 192.0.2.7 22", "connection", "does not say at which IPv4 address"),
        ("192.0.2.7 22", "fe80::1 22", "does not say at which IPv4 address"),
        ("inet 192.0.2.7/24", "inet 192.0.2.8/24", "no network card of it has the address 192.0.2.7"),
        ("mac eth0 52:54:00:12:34:56", "mac eth0", "which is no Ethernet card"),
    ],
)
def test_what_is_missing_is_said(old: str, new: str, message: str) -> None:
    with pytest.raises(InfrastructureError, match=message) as raised:
        read_network(NETWORK.replace(old, new), "lab")
    assert "board lab" in str(raised.value)


@pytest.mark.parametrize("user", ["root", "ci"])
def test_the_script_packs_what_init_reads_and_keys_for_root_alone(tmp_path: Path, user: str) -> None:
    """Run for real, with this machine's files moved aside and a busybox that only lists what it would pack."""
    busybox = tmp_path / "busybox"
    busybox.write_text(
        '#!/bin/sh\nwhile read -r n; do [ -f "$n" ] && { stat -c "%n %a" "$n"; cat "$n"; }; done; true\n'
    )
    busybox.chmod(0o755)
    home, etc = tmp_path / "home", tmp_path / "etc"
    (etc / "ssh").mkdir(parents=True)
    (home / ".ssh").mkdir(parents=True)
    (etc / "ssh/ssh_host_ed25519_key").write_text("HOST KEY\n")
    (etc / "passwd").write_text(f"root:x:0:0:root:/nowhere:/bin/sh\n{user}:x:0:0:me:{home}:/bin/sh\n")
    (home / ".ssh/authorized_keys").write_text("ssh-ed25519 AAAA me\n")
    script = own_part(Network("52:54:00:12:34:56", "192.0.2.7/24", None), user, str(tmp_path / "own"), str(busybox))
    script = script.replace("/etc/ssh/", f"{etc}/ssh/").replace("</etc/passwd", f"<{etc}/passwd")
    script = script.replace("/etc/dropbear/", f"{etc}/dropbear/")
    done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    packed = (tmp_path / "own").read_text()
    assert "kpci/net 600\n52:54:00:12:34:56 192.0.2.7/24 -\n" in packed
    assert "kpci/keys/ssh_host_ed25519_key 600\nHOST KEY\n" in packed
    assert "root/.ssh/authorized_keys 600\nssh-ed25519 AAAA me\n" in packed
    assert "etc/passwd 644\nroot:x:0:0:root:/root:/bin/sh\n" in packed
    assert ("ci:x:0:0:board:/root:/bin/sh" in packed) == (user == "ci")
    assert (tmp_path / "own").stat().st_mode & 0o777 == 0o600
    assert not (tmp_path / "own.d").exists(), "no copy of the keys stays"


def test_a_board_without_keys_to_take_along_says_so(tmp_path: Path) -> None:
    script = own_part(Network("52:54:00:12:34:56", "192.0.2.7/24", None), "root", str(tmp_path / "own"), "false")
    script = script.replace("/etc/ssh/", f"{tmp_path}/ssh/").replace("/etc/dropbear/", f"{tmp_path}/dropbear/")
    done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (3, "no host keys in /etc/ssh or /etc/dropbear")
