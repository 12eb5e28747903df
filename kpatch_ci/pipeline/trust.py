# SPDX-License-Identifier: GPL-2.0-or-later
"""From calibration pools to what a verdict is worth: noise, false positives, power, and whether the targets are met."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kpatch_ci.config.load import Config
from kpatch_ci.model.comparison import Comparison
from kpatch_ci.model.workload import Metric, Seed, WorkloadPlan
from kpatch_ci.pipeline.calibrate import Pools, Slowed, primary_metric
from kpatch_ci.stats.calibration import (
    PRIMARY,
    FalsePositives,
    Noise,
    Power,
    draw,
    false_positives,
    layout_trials,
    noise,
    power,
    primary_alone,
    split_trials,
)
from kpatch_ci.stats.pairs import Replicates
from kpatch_ci.workloads.table import WORKLOADS

SEED_COUNTS = (5, 10, 12, 20)
"""Seeds of a run for which power is told."""
STRICT, MOST_FALSE = 0.01, 0.01
"""At this alpha so many of the comparisons in which nothing is to be found may have a verdict."""
LEVEL, LEAST_FOUND = 1.0, 0.95
"""A slow-down of so many percent is to be found in this share of trials."""


@dataclass(frozen=True, slots=True)
class Level:
    """A slow-down: what it was to be, what the whole pool says it is, and how often trials found it."""

    workload: str
    level_percent: float
    steps: int
    whole: Comparison
    power: tuple[Power, ...]


@dataclass(frozen=True, slots=True)
class Target:
    """One thing that was promised. ``reached`` in words."""

    machine: str
    what: str
    reached: str
    met: bool


@dataclass(frozen=True, slots=True)
class Trust:
    """One machine. ``split`` is empty where the pool has no two halves of a trial's size."""

    pools: Pools
    seeds: int
    trials: int
    noise: tuple[Noise, ...]
    layout: tuple[FalsePositives, ...]
    split: tuple[FalsePositives, ...]
    whole: tuple[Comparison, ...]
    """Primary figures, A against A', over the whole pool: is there an effect of layout?"""
    levels: tuple[Level, ...]

    @property
    def targets(self) -> tuple[Target, ...]:
        """What was promised, and what was reached."""
        name = self.pools.machine.name
        rows = [_false(name, how, rows) for how, rows in (("A/A'", self.layout), ("A/A", self.split)) if rows]
        found = [
            (level, one)
            for level in self.levels
            for one in level.power
            if level.level_percent == LEVEL and one.seeds == self.seeds
        ]
        return (*rows, *(_found(name, level, one) for level, one in found))


def judge(pools: Pools, config: Config, seeds: int, trials: int) -> Trust:
    """Draw the trials and count."""
    plans = config.workloads
    metrics = {plan.kind: WORKLOADS[plan.kind].metrics for plan in plans}
    arms = (pools.plain, pools.layout)
    pool = _seeds(pools.plain, plans)
    both = [seed for seed in pool if seed in set(_seeds(pools.layout, plans))]
    apart = (
        split_trials(pools.plain, plans, metrics, draw(pool, 2 * seeds, trials, 1)) if len(pool) >= 2 * seeds else []
    )
    return Trust(
        pools=pools,
        seeds=seeds,
        trials=trials,
        noise=tuple(row for plan in plans for row in noise(arms, plan, metrics[plan.kind], seeds)),
        layout=tuple(false_positives(layout_trials(arms, plans, metrics, draw(both, seeds, trials)), metrics)),
        split=tuple(false_positives(apart, metrics)),
        whole=tuple(primary_alone(arms, plan, primary_metric(plan)) for plan in plans),
        levels=tuple(
            _level(pools.plain, plan, slowed, config.thresholds.alpha, sorted({*SEED_COUNTS, seeds}), trials)
            for plan in plans
            for slowed in pools.slowed.get(plan.name, ())
        ),
    )


def _seeds(arm: Replicates, plans: Sequence[WorkloadPlan]) -> tuple[Seed, ...]:
    """Seeds under which something was measured, in order."""
    names = {plan.name for plan in plans}
    return tuple(sorted({seed for name, _, seed in arm if name in names}))


def _level(  # noqa: PLR0917
    plain: Replicates, plan: WorkloadPlan, slowed: Slowed, alpha: float, counts: Sequence[int], trials: int
) -> Level:
    metric: Metric = primary_metric(plan)
    arms = (plain, slowed.arm)
    pool = _seeds(slowed.arm, (plan,))
    levels = [
        power(arms, plan, metric, draw(pool, n, trials, 2), level_percent=slowed.level_percent, alpha=alpha)
        for n in counts
        if n <= len(pool)
    ]
    return Level(plan.name, slowed.level_percent, slowed.steps, primary_alone(arms, plan, metric, alpha), tuple(levels))


def _false(machine: str, how: str, rows: Sequence[FalsePositives]) -> Target:
    some = [row for row in rows if row.kind == PRIMARY and row.alpha == STRICT]
    hits, total = (sum(getattr(row.verdicts, key) for row in some) for key in ("hits", "trials"))
    share = hits / total if total else 0.0
    what = f"{how}: at most {100 * MOST_FALSE:g} % false positives at alpha {STRICT:g}, primary figures"
    return Target(machine, what, f"{hits} of {total}: {100 * share:.2f} %", bool(total) and share <= MOST_FALSE)


def _found(machine: str, level: Level, one: Power) -> Target:
    what = (
        f"{level.workload}: a slow-down of {LEVEL:g} % found in {100 * LEAST_FOUND:g} % of trials of {one.seeds} seeds"
    )
    rate = one.regressed
    reached = f"{rate.hits} of {rate.trials}: {100 * rate.share:.1f} %"
    return Target(machine, what, reached, rate.trials > 0 and rate.share >= LEAST_FOUND)
