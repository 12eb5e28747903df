# SPDX-License-Identifier: GPL-2.0-or-later
"""Which samples make a pair: by seed, both arms passed, in one mode. What does not is named, never passed over."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kpatch_ci.model.status import Mode, Status
from kpatch_ci.model.workload import COUNTERS, Metric, Replicate, Seed

Replicates = Mapping[tuple[str, str, Seed], Replicate]
"""(plan's name, case label, seed) -> replicate, of one arm on one architecture."""

BASELINE, PATCHED = "baseline", "patched"


@dataclass(frozen=True, slots=True)
class Dropped:
    """A seed that makes no pair: for which case, whose fault, and why."""

    case: str
    seed: Seed
    arm: str
    status: Status
    """Of the replicate at fault; ERROR too where there is none, or where it passed but lacks the sample."""
    why: str


@dataclass(slots=True)
class Pairs:
    """One metric of one case: seed -> (baseline, patched), and what was dropped. ``modes`` are those seen."""

    case: str
    values: dict[Seed, tuple[float, float]] = field(default_factory=dict)
    dropped: list[Dropped] = field(default_factory=list)
    modes: set[Mode] = field(default_factory=set)

    @property
    def enough(self) -> bool:
        """Whether there is a pair."""
        return bool(self.values)


def seeds_of(workload: str, arms: Iterable[Replicates]) -> tuple[Seed, ...]:
    """Every seed that either arm has for a workload, in order."""
    return tuple(sorted({seed for arm in arms for name, _, seed in arm if name == workload}))


def make_pairs(
    workload: str, case: str, metric: Metric, seeds: Sequence[Seed], arms: tuple[Replicates, Replicates]
) -> Pairs:
    """The pairs of ``metric``; ``arms`` are baseline and patched. A seed is dropped for the first arm that lacks it."""
    pairs = Pairs(case)
    for seed in seeds:
        both = [arm.get((workload, case, seed)) for arm in arms]
        pairs.modes |= {r.mode for r in both if r is not None}
        faults = [fault(r, metric) for r in both]
        for arm, found in zip((BASELINE, PATCHED), faults, strict=True):
            if found:
                pairs.dropped.append(Dropped(case, seed, arm, *found))
                break
        else:
            baseline, patched = (r.samples[metric.name] for r in both if r)
            pairs.values[seed] = (baseline, patched)
    return pairs


def fault(replicate: Replicate | None, metric: Metric) -> tuple[Status, str] | None:
    """Why a replicate gives no sample of ``metric``; None where it gives one."""
    if replicate is None:
        return Status.ERROR, "no run"
    if replicate.status is not Status.PASSED:
        return replicate.status, f"{replicate.status}" + (f" ({replicate.reason})" if replicate.reason else "")
    value = replicate.samples.get(metric.name)
    if value is None:
        return Status.ERROR, f"no {metric.name}"
    lowest_is_zero = metric in COUNTERS
    if not math.isfinite(value) or value < 0 or (value == 0 and not lowest_is_zero):
        return Status.ERROR, f"{metric.name} is {value:g}"
    return None


def describe(dropped: Sequence[Dropped]) -> str:
    """What was dropped and why, by arm and reason; empty for nothing."""
    groups: dict[tuple[str, str], list[str]] = {}
    for d in dropped:
        groups.setdefault((d.arm, d.why), []).append(f"{d.case} seed {d.seed}")
    return "; ".join(f"dropped {_list(who)}: {arm} {why}" for (arm, why), who in groups.items())


def _list(names: Sequence[str], most: int = 6) -> str:
    unique = list(dict.fromkeys(names))
    more = f" and {len(unique) - most} more" if len(unique) > most else ""
    return ", ".join(unique[:most]) + more
