# SPDX-License-Identifier: GPL-2.0-or-later
"""Which accelerator can run which machine: checked before anything else is done, and never changed silently."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from pathlib import Path

from kpatch_ci.model.errors import UserError, UserErrors
from kpatch_ci.model.machine import Accel, Machine

_HOSTS = {"aarch64": "arm64"}
"""What Linux calls a processor -> our architecture, where they differ."""


def host_arch() -> str:
    """This machine's architecture, by our names."""
    return _HOSTS.get(platform.machine(), platform.machine())


def check_accelerators(machines: Sequence[Machine], folder: Path, chosen: Accel | None) -> None:
    """Raises UserErrors for each machine that its accelerator cannot run. ``chosen``: --accel, where that was given."""
    errors = []
    for machine in machines:
        found = _kvm_error(machine, machines) or _frequency_error(machine)
        if found:
            where = "--accel" if chosen else str(folder / f"{machine.name}.yaml")
            errors.append(UserError(found[0], where=where, expected=found[1]))
    if errors:
        raise UserErrors(errors)


def _kvm_error(machine: Machine, machines: Sequence[Machine]) -> tuple[str, str] | None:
    """KVM runs the host's own architecture only."""
    host = host_arch()
    if machine.accel is not Accel.KVM or machine.arch == host:
        return None
    leave = f"`--arch {host}` to leave it out, or " if any(m.arch == host for m in machines) else ""
    return f"kvm cannot run {machine.name} ({machine.arch}) on this {host} machine", f"{leave}tcg, which emulates"


def _frequency_error(machine: Machine) -> tuple[str, str] | None:
    """Emulated frequencies and switch costs are counted in virtual time: nobody has measured what they come to in real time."""
    if not (machine.real_time and machine.modules):
        return None
    models = "scales frequencies" if machine.scales_frequency else "has a cost of context switches"
    what = f"{machine.name} {models}, which is emulated in virtual time only: not with {machine.accel}"
    return what, "a machine without that, such as arm64-6+2-fixed (--profile fixed), or --arch to leave it out"
