# SPDX-License-Identifier: GPL-2.0-or-later
"""Which CPUs ran the tasks: running time by CPU from /proc/schedstat, of all replicates of a case together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kpatch_ci.model.result import ArmResult
from kpatch_ci.model.status import Status
from kpatch_ci.model.workload import Replicate
from kpatch_ci.report.recorded import is_count
from kpatch_ci.report.schema import ArchDoc
from kpatch_ci.report.view import figure

LEAST_SHIFT = 5
"""Percent points by which a cluster's share must differ between the arms for a line of its own in text reports."""

Clusters = Mapping[str, tuple[int, ...]]


@dataclass(slots=True)
class _Times:
    """Sums over replicates, in ns."""

    run: dict[int, int] = field(default_factory=dict)
    wait: int = 0
    replicates: int = 0


def placement_times(baseline: ArmResult | None, patched: ArmResult | None, clusters: Clusters) -> list[dict[str, Any]]:
    """For each case both arms' running time and its shares by CPU and cluster. Only replicates that passed."""
    arms = {"baseline": _times(baseline), "patched": _times(patched)}
    keys = dict.fromkeys(key for times in arms.values() for key in times)
    return [
        {
            "workload": workload,
            "case": case,
            **{arm: _shares(times.get((workload, case), _Times()), clusters) for arm, times in arms.items()},
        }
        for workload, case in keys
    ]


def _times(arm: ArmResult | None) -> dict[tuple[str, str], _Times]:
    found: dict[tuple[str, str], _Times] = {}
    for run in arm.replicates if arm else ():
        told = list(_cpus(run)) if run.status is Status.PASSED else []
        if told:
            times = found.setdefault((run.workload, run.case), _Times())
            times.replicates += 1
            for cpu, ran, waited in told:
                times.run[cpu] = times.run.get(cpu, 0) + ran
                times.wait += waited
    return found


def _cpus(run: Replicate) -> Iterator[tuple[int, int, int]]:
    """CPU, running and waiting ns, as far as the guest said something that can be read."""
    told = run.extra.get("cpu_times")
    for name, times in (told if isinstance(told, Mapping) else {}).items():
        number = str(name).removeprefix("cpu")
        ran, waited = (times.get(key) for key in ("run_ns", "wait_ns")) if isinstance(times, Mapping) else (None, None)
        if number.isdecimal() and is_count(ran) and is_count(waited):
            yield int(number), ran, waited


def _shares(times: _Times, clusters: Clusters) -> dict[str, Any]:
    total = sum(times.run.values())
    share = {cpu: ran / total for cpu, ran in sorted(times.run.items())} if total else {}
    several = clusters if len(clusters) > 1 and share else {}
    return {
        "replicates": times.replicates,
        "seconds": total / 1e9,
        "wait_seconds": times.wait / 1e9,
        "cpus": {str(cpu): part for cpu, part in share.items()},
        "clusters": {name: math.fsum(share.get(cpu, 0.0) for cpu in cpus) for name, cpus in several.items()},
    }


def shift_lines(arch: ArchDoc, workload: str) -> list[str]:
    """A line for each case whose tasks ran elsewhere in the patched kernel: the cluster whose share grew most. Not tested.

    Its running time must have grown too: a share also grows where the others' CPUs only got faster.
    """
    lines = []
    for one in arch.placement_times:
        before, after = one.baseline.clusters, one.patched.clusters
        if one.workload != workload or not before or before.keys() != after.keys():
            continue
        name = max(before, key=lambda n: after[n] - before[n])
        ran = one.baseline.each(before[name]), one.patched.each(after[name])
        if 100 * (after[name] - before[name]) >= LEAST_SHIFT and ran[1] > ran[0]:
            shares = f"{100 * before[name]:.0f} % -> {100 * after[name]:.0f} %"
            lines.append(
                f"{one.case}: {name} CPUs {shares} of the running time ({figure(ran[0])} -> {figure(ran[1])} s)"
            )
    return lines
