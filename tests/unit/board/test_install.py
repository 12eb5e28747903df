# SPDX-License-Identifier: GPL-2.0-or-later
"""What is asked of a board first, and how a kernel gets there: checked on arrival, loaded, started once."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from kpatch_ci.board.install import Files, _prune, copy, examine, install, start
from kpatch_ci.model.errors import InfrastructureError
from tests.conftest import FakeTool
from tests.fakes.board import NETWORK, FakeBoard, FakeShell, machine

HEAD = "0\nx86_64\n6.12.0-own\nboot-1\nroot=/dev/sda1\n"


def shell(board: FakeBoard | None = None) -> FakeShell:
    return FakeShell(board or FakeBoard())


def test_a_board_that_can_be_used_says_what_it_runs() -> None:
    known = examine(shell(), machine())
    assert (known.release, known.boot_id, known.network.address) == ("6.12.0-own", "boot-0", "192.0.2.7/24")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("", "it does not say what it is"),
        (HEAD.replace("0\n", "1000\n", 1) + NETWORK, "root is not root there"),
        (HEAD.replace("x86_64", "aarch64") + NETWORK, "it is aarch64, and the machine file says x86_64"),
        (HEAD.replace("root=", "kpci.token=1 root=") + NETWORK, "it still runs a kernel under test"),
        (HEAD + "missing kexec\n" + NETWORK, "its own system has no kexec"),
        (HEAD + "no-folder\n" + NETWORK, "/var/tmp/kpatch-ci cannot be made there"),
    ],
)
def test_what_is_not_so_is_said_with_the_boards_name(answer: str, message: str) -> None:
    with pytest.raises(InfrastructureError) as raised:
        examine(shell(FakeBoard(answers={"id -u": answer})), machine())
    assert message in str(raised.value)
    assert "board lab (root@board.example:22)" in str(raised.value)


def test_kexec_is_not_asked_for_where_a_boot_entry_is() -> None:
    board = FakeBoard()
    examine(shell(board), machine(boot_entry="grub-reboot kpatch-ci"))
    assert "kexec" not in board.asked[0]


def test_what_is_there_is_not_copied_again() -> None:
    board = FakeBoard()
    path = copy(shell(board), machine(), "kernel", b"an image")
    assert board.files == {path: b"an image"}
    asked = len(board.asked)
    assert copy(shell(board), machine(), "kernel", b"an image") == path
    assert len(board.asked) == asked + 1, "its digest was asked for, and nothing was sent"


def test_what_arrives_damaged_is_not_started() -> None:
    with pytest.raises(InfrastructureError, match=r"board lab .*: what arrived is not what was sent"):
        copy(shell(FakeBoard(damages=True)), machine(), "kernel", b"an image")


def files(place: Path) -> Files:
    for name in ("kernel", "initrd", "busybox"):
        (place / name).write_text(name)
    return Files(place / "kernel", place / "initrd", place / "busybox")


def test_kexec_gets_the_command_line_and_leaves_no_keys_behind(tmp_path: Path) -> None:
    board = FakeBoard()
    install(shell(board), machine(), examine(shell(board), machine()), files(tmp_path), "panic=-1 kpci.token=7")
    assert board.loaded == "panic=-1 kpci.token=7"
    load = board.asked[-1]
    assert load.startswith("kexec -c --args-linux -l /var/tmp/kpatch-ci/kernel-")
    assert load.endswith("; s=$?; rm -f /var/tmp/kpatch-ci/initrd; exit $s")
    start(shell(board), machine())
    assert (board.state, board.command_line) == ("test", "panic=-1 kpci.token=7")


def test_a_boot_entry_gets_the_files_and_the_board_reboots(tmp_path: Path) -> None:
    board = FakeBoard()
    entry = machine(boot_entry="my-loader --once")
    install(shell(board), entry, examine(shell(board), entry), files(tmp_path), "a b")
    assert board.asked[-1].endswith("INITRD=/var/tmp/kpatch-ci/initrd CMDLINE='a b'; my-loader --once")
    assert "export KERNEL=/var/tmp/kpatch-ci/kernel-" in board.asked[-1]
    start(shell(board), entry)
    assert "systemctl reboot" in board.asked[-1]
    assert "kexec" not in board.asked[-1]


def test_what_was_used_last_stays_on_the_board_and_the_oldest_goes(tmp_path: Path) -> None:
    for number in range(9):
        path = tmp_path / f"kernel-{number}"
        path.write_text("")
        os.utime(path, (number, number))
    (tmp_path / "initrd").write_text("the one that is packed")
    done = subprocess.run(["/bin/sh", "-c", _prune(str(tmp_path), [f"{tmp_path}/kernel-0"])], check=False)
    assert done.returncode == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["initrd", *(f"kernel-{n}" for n in (0, 4, 5, 6, 7, 8))]


def test_what_is_used_now_stays_on_a_board_whose_clock_is_wrong(tmp_path: Path, fake_tool: FakeTool) -> None:
    """Without a battery it begins at 1970 with each boot, and what was touched now looks the oldest."""
    for number in range(9):
        path = tmp_path / f"kernel-{number}"
        path.write_text("")
        os.utime(path, (1e9 + number, 1e9 + number))
    fake_tool("touch", 'exec /usr/bin/touch -d 1970-01-01T00:01 "$@"')
    subprocess.run(["/bin/sh", "-c", _prune(str(tmp_path), [f"{tmp_path}/kernel-4"])], check=True)
    assert sorted(p.name for p in tmp_path.iterdir() if p.is_file()) == [f"kernel-{n}" for n in range(2, 9)]


def test_a_copy_that_finds_no_room_leaves_nothing_of_itself(tmp_path: Path, fake_tool: FakeTool) -> None:
    board, folder = FakeBoard(), tmp_path / "folder"
    folder.mkdir()
    copy(shell(board), machine(folder=str(folder)), "kernel", b"an image")
    script = board.asked[-1]
    fake_tool("gzip", 'echo part; echo "gzip: stdout: No space left on device" >&2; exit 1')
    done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "gzip: stdout: No space left on device\n")
    assert list(folder.iterdir()) == []


def test_what_was_packed_goes_away_also_where_kexec_does_not_take_it(tmp_path: Path, fake_tool: FakeTool) -> None:
    board, folder = FakeBoard(), tmp_path / "folder"
    folder.mkdir()
    lab = machine(folder=str(folder))
    install(shell(board), lab, examine(shell(board), lab), files(tmp_path), "panic=-1")
    (folder / "initrd").write_text("with host keys")
    fake_tool("kexec", 'echo "kexec_load failed: Invalid argument" >&2; exit 255')
    done = subprocess.run(["/bin/sh", "-c", board.asked[-1]], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (255, "kexec_load failed: Invalid argument\n")
    assert list(folder.iterdir()) == []
