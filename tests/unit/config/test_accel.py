# SPDX-License-Identifier: GPL-2.0-or-later
"""--accel and `accel:`: what cannot run is refused before anything is done, and nothing is left out silently."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from kpatch_ci.config import accel
from kpatch_ci.config.load import Selection, load_config
from kpatch_ci.model.errors import UserError
from kpatch_ci.model.machine import Accel

PROJECT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def _x86_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accel, "host_arch", lambda: "x86_64")


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    for folder in ("patches", "kconfigs"):
        (tmp_path / folder).symlink_to(PROJECT / folder)
    shutil.copytree(PROJECT / "qemu", tmp_path / "qemu")
    shutil.copy(PROJECT / "pipeline.yaml", tmp_path / "pipeline.yaml")
    return tmp_path / "pipeline.yaml"


def test_the_option_overrides_the_machines_own(pipeline: Path) -> None:
    config = load_config(pipeline, Selection(profile="fixed", accel=Accel.TCG))
    assert [m.accel for m in config.machines] == [Accel.TCG, Accel.TCG]
    (only,) = load_config(pipeline, Selection(arches=("x86_64",), accel=Accel.KVM)).machines
    assert (only.accel, only.cpu) == (Accel.KVM, "qemu64,-rdrand,-rdseed")
    assert {m.accel for m in load_config(pipeline).machines} == {Accel.DETERMINISTIC}


def test_kvm_is_for_the_hosts_architecture_and_drops_no_other(pipeline: Path) -> None:
    both = r"--accel: kvm cannot run arm64-6\+2-fixed \(arm64\) on this x86_64 machine \(`--arch x86_64` to leave it out, or tcg"
    with pytest.raises(UserError, match=both):
        load_config(pipeline, Selection(profile="fixed", accel=Accel.KVM))
    with pytest.raises(UserError, match=r"on this x86_64 machine \(tcg, which emulates\)"):
        load_config(pipeline, Selection(profile="fixed", arches=("arm64",), accel=Accel.KVM))


def test_a_machine_file_that_wants_kvm_is_named(pipeline: Path) -> None:
    path = pipeline.parent / "qemu/arm64-6+2-fixed.yaml"
    path.write_text(path.read_text().replace("accel: deterministic", "accel: kvm"))
    with pytest.raises(UserError, match=rf"{re.escape(path.name)}: kvm cannot run arm64-6\+2-fixed"):
        load_config(pipeline, Selection(profile="fixed"))
    assert len(load_config(pipeline, Selection(profile="fixed", arches=("x86_64",))).machines) == 1
    overridden = load_config(pipeline, Selection(profile="fixed", accel=Accel.TCG)).machines
    assert [m.accel for m in overridden] == [Accel.TCG, Accel.TCG]


def test_emulated_frequencies_want_virtual_time(pipeline: Path) -> None:
    what = r"--accel: arm64-6\+2 scales frequencies, which is emulated in virtual time only: not with tcg \(.*--profile fixed"
    with pytest.raises(UserError, match=what):
        load_config(pipeline, Selection(accel=Accel.TCG))
    assert load_config(pipeline, Selection(arches=("x86_64",), accel=Accel.TCG)).machines[0].accel is Accel.TCG
    assert load_config(pipeline, Selection(accel=Accel.DETERMINISTIC)).machines[0].scales_frequency
