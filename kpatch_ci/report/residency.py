# SPDX-License-Identifier: GPL-2.0-or-later
"""How long CPUs ran at which frequency: cpufreq's time_in_state, of all replicates of a case together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kpatch_ci.model.result import ArmResult
from kpatch_ci.model.status import Status
from kpatch_ci.model.workload import Replicate

TICKS_PER_SECOND = 100
"""time_in_state counts units of 10 ms (Documentation/cpu-freq/cpufreq-stats.rst)."""

Times = dict[str, int]
"""Frequency in kHz -> ticks."""


def residencies(baseline: ArmResult | None, patched: ArmResult | None) -> list[dict[str, Any]]:
    """For each case and policy both arms' time, and the shares (0..1) of it by frequency in kHz, rising.

    Only replicates that passed. A policy that one arm tells nothing of has 0 seconds and no shares there.
    """
    arms = {"baseline": _times(baseline), "patched": _times(patched)}
    keys = dict.fromkeys(key for times in arms.values() for key in times)
    return [
        {
            "workload": workload,
            "case": case,
            "policy": policy,
            **{arm: _shares(times.get((workload, case, policy), {})) for arm, times in arms.items()},
        }
        for workload, case, policy in keys
    ]


def _times(arm: ArmResult | None) -> dict[tuple[str, str, str], Times]:
    found: dict[tuple[str, str, str], Times] = {}
    for run in arm.replicates if arm else ():
        if run.status is Status.PASSED:
            for policy, khz, ticks in _states(run):
                times = found.setdefault((run.workload, run.case, policy), {})
                times[khz] = times.get(khz, 0) + ticks
    return found


def _states(run: Replicate) -> Iterator[tuple[str, str, int]]:
    """Policy, frequency and ticks, as far as the guest said something that can be read."""
    policies = run.extra.get("time_in_state")
    for policy, states in (policies if isinstance(policies, Mapping) else {}).items():
        for khz, ticks in (states if isinstance(states, Mapping) else {}).items():
            if str(khz).isdecimal() and isinstance(ticks, int) and ticks >= 0:
                yield str(policy), str(khz), ticks


def _shares(times: Times) -> dict[str, Any]:
    total = sum(times.values())
    order = sorted(times, key=int)
    return {
        "seconds": total / TICKS_PER_SECOND,
        "shares": {khz: times[khz] / total for khz in order} if total else {},
    }
