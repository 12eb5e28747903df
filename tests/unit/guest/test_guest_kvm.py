# SPDX-License-Identifier: GPL-2.0-or-later
"""The KVM probe: what it boots, and what it says when it cannot."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kpatch_ci.debian.toolroot import ToolRoot
from kpatch_ci.guest import kvm
from kpatch_ci.guest.kvm import boot_sector, probe_kvm


class Sandbox(ToolRoot):
    """Runs a line of Python in place of everything."""

    script = ""
    devices: tuple[Path, ...] = ()

    def argv(self, command, **options):  # type: ignore[no-untyped-def]
        """Remembers the devices."""
        type(self).devices = tuple(options.get("devices", ()))
        return [sys.executable, "-c", type(self).script]


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    (tmp_path / "kvm").touch()
    monkeypatch.setattr(kvm, "DEVICE", tmp_path / "kvm")
    return Sandbox(tmp_path, "trixie", "t", {})


def test_the_sector_is_bootable() -> None:
    sector = boot_sector()
    assert len(sector) == 512
    assert sector.endswith(b"\x55\xaa")
    assert sector.startswith(bytes.fromhex("b02ae6f4"))


def test_a_guest_that_exits_as_told_proves_kvm(sandbox: Sandbox) -> None:
    Sandbox.script = "raise SystemExit(0x55)"
    works, words = probe_kvm(sandbox)
    assert works
    assert "ran to its end under kvm" in words
    assert Sandbox.devices == (kvm.DEVICE,)


def test_a_guest_that_hangs_is_given_up_in_time(sandbox: Sandbox) -> None:
    Sandbox.script = "import time; time.sleep(60)"
    assert probe_kvm(sandbox, timeout=0.3) == (
        False,
        f"{kvm.DEVICE} opens, but a guest of one disk sector was not done after 0.3 s: it hangs, or crawls",
    )


def test_qemus_own_words_are_passed_on(sandbox: Sandbox) -> None:
    Sandbox.script = "print('failed to initialize kvm: Permission denied'); raise SystemExit(1)"
    works, words = probe_kvm(sandbox)
    assert not works
    assert words.endswith("failed to initialize kvm: Permission denied")


def test_no_device_is_said(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "kvm").unlink()
    works, words = probe_kvm(sandbox)
    assert not works
    assert "is not there" in words
