# SPDX-License-Identifier: GPL-2.0-or-later
"""What is tried, and said, before a session uses anything but virtual time. There is no fallback."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kpatch_ci.debian.toolroot import ToolRoot
from kpatch_ci.guest.kvm import probe_kvm
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.model.machine import Accel, Machine

HINT = "--accel tcg (real time, emulated) and deterministic (virtual time, the default) need no KVM"


def prove_accelerators(machines: Sequence[Machine], tools: ToolRoot, say: Callable[[str], None]) -> None:
    """Boot a tiny guest where any machine wants KVM. Raises InfrastructureError with what was tried."""
    for machine in machines:
        if machine.board:
            say(f"{machine.name}: a board, real time: one kernel at a time, nothing measured is kept or reused")
        elif machine.real_time:
            say(f"{machine.name}: {machine.accel}, real time: one guest at a time, nothing measured is kept or reused")
    if all(m.accel is not Accel.KVM for m in machines):
        return
    ran, words = probe_kvm(tools)
    if not ran:
        raise InfrastructureError(f"KVM cannot be used here: {words}", hint=HINT)
    say(f"kvm: {words}")
