# SPDX-License-Identifier: GPL-2.0-or-later
"""Samples of two arms that make no pairs: what one arm lacks is dropped there alone, and named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from kpatch_ci.model.status import Mode
from kpatch_ci.model.workload import Metric, Replicate, Seed
from kpatch_ci.stats.pairs import BASELINE, PATCHED, Dropped, Replicates, fault
from kpatch_ci.stats.ranksum import Floats


@dataclass(slots=True)
class Groups:
    """One metric of one case: seed -> (baseline, patched), None where that arm gave no sample. ``modes`` are those seen."""

    case: str
    values: dict[Seed, tuple[float | None, float | None]] = field(default_factory=dict)
    all_dropped: list[Dropped] = field(default_factory=list)
    modes: set[Mode] = field(default_factory=set)

    @property
    def arms(self) -> tuple[list[float], list[float]]:
        """Samples of baseline and patched, in seed order."""
        baseline, patched = ([v[i] for v in self.values.values()] for i in (0, 1))
        return [b for b in baseline if b is not None], [p for p in patched if p is not None]

    @property
    def complete(self) -> dict[Seed, tuple[float, float]]:
        """The seeds that both arms have."""
        return {s: (b, p) for s, (b, p) in self.values.items() if b is not None and p is not None}

    @property
    def enough(self) -> bool:
        """Whether both arms have a sample."""
        return all(self.arms)

    @property
    def dropped(self) -> list[Dropped]:
        """What was dropped; where the baseline has nothing at all, that alone: it is no fault of the patch then."""
        if self.all_dropped and not self.arms[0]:
            return [d for d in self.all_dropped if d.arm == BASELINE]
        return self.all_dropped


def make_groups(
    workload: str, case: str, metric: Metric, seeds: Sequence[Seed], arms: tuple[Replicates, Replicates]
) -> Groups:
    """The samples of ``metric``; ``arms`` are baseline and patched."""
    groups = Groups(case)
    for seed in seeds:
        both = [arm.get((workload, case, seed)) for arm in arms]
        groups.modes |= {r.mode for r in both if r is not None}
        values = [_sample(groups, seed, arm, r, metric) for arm, r in zip((BASELINE, PATCHED), both, strict=True)]
        if values != [None, None]:
            groups.values[seed] = (values[0], values[1])
    return groups


def _sample(groups: Groups, seed: Seed, arm: str, replicate: Replicate | None, metric: Metric) -> float | None:
    found = fault(replicate, metric)
    if found:
        groups.all_dropped.append(Dropped(groups.case, seed, arm, *found))
    return None if found or replicate is None else replicate.samples[metric.name]


def over_cases(case: str, cases: Sequence[Groups], seeds: Sequence[Seed]) -> tuple[Groups, tuple[Floats, Floats]]:
    """Geometric means over cases, in each arm for the seeds that it has in every case; and their logarithms by arm."""
    together = Groups(case, modes=set().union(*(c.modes for c in cases)))
    together.all_dropped = [d for c in cases for d in c.all_dropped]
    logs: tuple[list[float], list[float]] = ([], [])
    for seed in seeds if cases else ():
        found = [c.values.get(seed, (None, None)) for c in cases]
        means = [_mean_log([v[i] for v in found]) for i in (0, 1)]
        for arm, mean in zip(logs, means, strict=True):
            if mean is not None:
                arm.append(mean)
        if means != [None, None]:
            baseline, patched = (None if m is None else float(np.exp(m)) for m in means)
            together.values[seed] = (baseline, patched)
    return together, (np.array(logs[0]), np.array(logs[1]))


def _mean_log(values: Sequence[float | None]) -> float | None:
    there = [v for v in values if v is not None]
    return float(np.log(there).mean()) if len(there) == len(values) else None
