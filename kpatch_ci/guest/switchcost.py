# SPDX-License-Identifier: GPL-2.0-or-later
"""The cost of context switches of a machine: for our module (qemu/switchcost), and the check of the facts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kpatch_ci.model.machine import Machine

MODULE = "kpci_switchcost"
"""The module's name."""
FACT = "switch_cost"
"""Where the facts have what the module says of itself: its parameters, by name."""


def parameters(machine: Machine) -> str:
    """The module's parameters, as its source explains them."""
    return f"cost_ns={machine.context_switch_cost_ns}"


def switch_cost_differences(facts: Mapping[str, Any], machine: Machine) -> list[str]:
    """The cost that the module has been told, in ns; without one in the machine file there must be no module."""
    seen: Mapping[str, Any] | None = facts.get(FACT)
    wanted = machine.context_switch_cost_ns
    if seen is None:
        return [] if wanted is None else [f"cost of a context switch: none, the machine file says {wanted} ns"]
    if wanted is None:
        return [f"cost of a context switch: {seen.get('cost_ns')} ns, the machine file has none"]
    found = []
    if seen.get("cost_ns") != wanted:
        found.append(f"cost of a context switch: {seen.get('cost_ns')} ns, the machine file says {wanted}")
    own = int(seen.get("event_ns") or 0) + int(seen.get("interrupt_ns") or 0)
    if not 0 < own <= wanted:
        found.append(
            f"cost of a context switch: its mechanism takes {own} ns, which must be above 0 and up to {wanted}"
        )
    return found
