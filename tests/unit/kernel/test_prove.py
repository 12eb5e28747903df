# SPDX-License-Identifier: GPL-2.0-or-later
"""Proof that a series is in the image."""

from __future__ import annotations

from pathlib import Path

from kpatch_ci.kernel.prove import prove
from kpatch_ci.model.series import Adds


def artifact(place: Path, symbols: str, strings: bytes) -> Path:
    place.mkdir()
    (place / "System.map").write_text(symbols)
    (place / "vmlinux").write_bytes(b"\x7fELF\0" + strings)
    return place


def test_only_what_is_in_patched_and_not_in_baseline_holds(tmp_path: Path) -> None:
    base = artifact(tmp_path / "b", "ff00 T schedule\n", b"sched_schedstats\0WA_IDLE\0")
    new = artifact(
        tmp_path / "p", "ff00 T schedule\nff08 D sysctl_x\n", b"sched_schedstats\0WA_IDLE\0iowait_x\0NO_WA_STACK\0"
    )
    adds = Adds(("sysctl_x", "schedule"), ("kernel/iowait_x", "kernel/iowait_y"), ("WA_IDLE", "WA_STACK"))
    proofs = {p.name: p for p in prove(adds, base, new)}
    assert proofs["sysctl_x"].holds
    assert not proofs["schedule"].holds
    assert proofs["schedule"].in_baseline
    assert proofs["kernel/iowait_x"].holds
    assert not proofs["kernel/iowait_y"].in_patched
    assert proofs["WA_IDLE"].in_baseline
    assert not proofs["WA_STACK"].in_patched, "a part of a longer string is no proof"
