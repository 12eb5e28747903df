# SPDX-License-Identifier: GPL-2.0-or-later
"""Machine files of kind board: what they may say, and what is said of those that are wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kpatch_ci.board.file import load_any
from kpatch_ci.guest.files import machine_slice
from kpatch_ci.model.digest import digest
from kpatch_ci.model.errors import UserErrors
from kpatch_ci.model.machine import Accel

QEMU = Path(__file__).resolve().parents[3] / "qemu"
LEAST = {
    "kind": "board",
    "name": "lab",
    "description": "On the shelf.",
    "arch": "arm64",
    "address": "board.example",
    "memory_mib": 4096,
    "clusters": [{"name": "little", "cpus": "0-3", "capacity": 512}, {"name": "big", "cpus": "4-5", "capacity": 1024}],
}


def load(place: Path, accel: Accel | None = None, **changes: Any) -> Any:
    path = place / "lab.yaml"
    path.write_text(yaml.safe_dump({k: v for k, v in (LEAST | changes).items() if v is not None}))
    return load_any(path, accel)


def test_the_least_file_is_a_board_in_real_time_that_is_started_through_kexec(tmp_path: Path) -> None:
    made = load(tmp_path)
    assert (made.accel, made.real_time, made.cpus) == (Accel.HARDWARE, True, 6)
    assert str(made.board.login) == "root@board.example:22"
    assert (made.board.boot_entry, made.board.kconfig, made.board.power_cycle) == (None, ("board",), None)
    assert digest(machine_slice(made)), "a fingerprint has a digest of it"


def test_everything_that_it_may_say(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("")
    made = load(
        tmp_path,
        user="ci",
        port=2222,
        key=str(tmp_path / "key"),
        jump="ci@gate.example:22",
        install={"boot_entry": "grub-reboot kpatch-ci"},
        console="conserver lab",
        power={"cycle": "pdu cycle 4"},
        clocksource="arch_sys_counter",
        quiet={"governor": "performance", "boost": False, "smt": False, "max_celsius": 60},
        timeouts={"boot": 300},
        kernel_args=["console=ttyS2"],
    )
    assert str(made.board.login) == "ci@board.example:2222"
    assert (made.board.login.key, made.board.login.jump) == (str(tmp_path / "key"), "ci@gate.example:22")
    assert made.board.boot_entry == "grub-reboot kpatch-ci"
    assert (made.board.quiet.governor, made.board.quiet.boost, made.board.quiet.max_celsius) == (
        "performance",
        False,
        60,
    )
    assert (made.board.timeouts.boot, made.board.timeouts.back) == (300, 300)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "toaster"}, "kind: 'toaster' (board)"),
        ({"address": "board example"}, "address: "),
        ({"password": "secret"}, "unknown key 'password'"),
        ({"arch": "riscv64"}, "arch: 'riscv64' (one of arm64, x86_64)"),
        ({"key": "/nonexistent/key"}, "key: /nonexistent/key is not there"),
        ({"clusters": [{"name": "a", "cpus": "0-1"}, {"name": "b", "cpus": "3"}]}, "CPUs are missing or stand twice"),
        ({"clusters": [{"name": "a", "cpus": "0-1", "capacity": 512}]}, "capacities are not whole"),
        ({"arch": "x86_64"}, "x86_64 has no CPU capacities"),
        ({"name": "other"}, "name: 'other' in lab.yaml (lab)"),
        ({"install": "dd"}, "install"),
        ({"arch": "x86_64", "install": {"boot_entry": "grub-reboot x"}}, "boot loaders start bzImage (kexec)"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserErrors) as raised:
        load(tmp_path, **changes)
    assert message in str(raised.value)
    assert "lab.yaml:" in str(raised.value)


def test_a_board_has_no_accelerator_to_choose(tmp_path: Path) -> None:
    with pytest.raises(UserErrors, match="--accel: lab is a board, which has no accelerator to choose"):
        load(tmp_path, Accel.TCG)


def test_other_machine_files_are_read_as_ever_and_their_slices_say_nothing_of_boards() -> None:
    for path in sorted(QEMU.glob("*.yaml")):
        made = load_any(path)
        assert made.board is None
        assert "board" not in machine_slice(made), "the keys of all that was measured stay"
