# SPDX-License-Identifier: GPL-2.0-or-later
"""Before a session uses KVM a guest has run under it; where none does, the session ends with what was tried."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kpatch_ci.debian.toolroot import ToolRoot
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.model.machine import Accel, Cluster, Machine
from kpatch_ci.pipeline import accelerators
from kpatch_ci.pipeline.accelerators import prove_accelerators

MACHINE = Machine("m", "d", "x86_64", "q35", "qemu64", 256, (Cluster("p", (0, 1)),), 0)
TCG, KVM = replace(MACHINE, accel=Accel.TCG), replace(MACHINE, accel=Accel.KVM)


class Probe:
    """Counts how often it was asked."""

    def __init__(self, answer: tuple[bool, str]) -> None:
        self.answer, self.asked = answer, 0

    def __call__(self, tools: ToolRoot) -> tuple[bool, str]:
        self.asked += 1
        return self.answer


def prove(monkeypatch: pytest.MonkeyPatch, probe: Probe, *machines: Machine) -> list[str]:
    said: list[str] = []
    monkeypatch.setattr(accelerators, "probe_kvm", probe)
    prove_accelerators(machines, ToolRoot.__new__(ToolRoot), said.append)
    return said


def test_kvm_is_proven_once_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    probe = Probe((True, "a guest of one disk sector ran to its end under kvm in 0.3 s"))
    said = prove(monkeypatch, probe, KVM, replace(KVM, name="n"))
    assert probe.asked == 1
    assert said == [
        "m: kvm, real time: one guest at a time, nothing measured is kept or reused",
        "n: kvm, real time: one guest at a time, nothing measured is kept or reused",
        "kvm: a guest of one disk sector ran to its end under kvm in 0.3 s",
    ]


def test_kvm_that_hangs_ends_the_session_with_what_was_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    probe = Probe(
        (False, "/dev/kvm opens, but a guest of one disk sector was not done after 15 s: it hangs, or crawls")
    )
    with pytest.raises(
        InfrastructureError, match=r"KVM cannot be used here: .*it hangs, or crawls\n.*--accel tcg"
    ) as caught:
        prove(monkeypatch, probe, MACHINE, KVM)
    assert caught.value.exit_code == 3


def test_nothing_is_tried_where_nothing_wants_kvm(monkeypatch: pytest.MonkeyPatch) -> None:
    probe = Probe((False, "never asked"))
    assert prove(monkeypatch, probe, MACHINE) == []
    assert prove(monkeypatch, probe, TCG) == [
        "m: tcg, real time: one guest at a time, nothing measured is kept or reused"
    ]
    assert probe.asked == 0
