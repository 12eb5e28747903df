# SPDX-License-Identifier: GPL-2.0-or-later
"""Deterministic mode: what two nights say of one figure, over the seeds of both. The unit is the boot, as between a run's arms."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from kpatch_ci.model.history import Limit, Line, Night
from kpatch_ci.stats import signedrank
from kpatch_ci.stats.detect import mde_percent
from kpatch_ci.stats.paired import LOG_RATIO, Estimate, estimate

_ROUNDING = 1 + 1e-9


@dataclass(frozen=True, slots=True)
class Step:
    """From one night to the next. ``before`` and ``after``: means of the shared seeds, in the metric's unit."""

    before: float
    after: float
    highest: float
    """What ``before`` would be, had every boot had its larger value there."""
    estimate: Estimate
    """Positive where ``after`` is better."""
    better: str

    @property
    def size(self) -> float:
        """Hodges and Lehmann's estimate without its sign, on the estimate's scale."""
        return abs(signedrank.median(signedrank.walsh(np.array(self.estimate.effects))))

    def crosses(self, limit: Limit) -> bool:
        """Whether the estimate reaches it: no single wild boot does."""
        change = self.estimate.change_percent / 100 * (1 if self.better == "higher" else -1)
        scale = self.before if self.estimate.scale == LOG_RATIO else self.estimate.reference or 0.0
        return limit.crossed(self.before, self.before + change * scale * _ROUNDING)

    def could_cross(self, limit: Limit) -> bool:
        """Whether it would reach the limit, had every boot gone the same way: no other signs give a larger estimate.

        It looks at sizes alone. So figures for which it does not hold can be left out of a family before it is tested: the
        test's null distribution, over the signs, is what it was (R. E. Tarone, Biometrics 46 (1990) 515-522, leaves out
        what cannot become significant; this leaves out what cannot become large).
        """
        largest = signedrank.median(signedrank.walsh(np.abs(np.array(self.estimate.effects)))) * _ROUNDING
        if self.estimate.scale == LOG_RATIO:
            return limit.crossed(self.highest, self.highest * math.exp(min(largest, 700.0)))
        return limit.crossed(0.0, largest * (self.estimate.reference or 0.0))

    def detectable(self, limit: Limit, alpha: float) -> float | None:
        """Percent of change that another such pair of nights would tell in four of five; ``alpha``: divided by the tests already."""
        amount = 100 * limit.amount / self.before if limit.amount and self.before else 0.0
        return mde_percent(self.estimate, alpha, max(limit.percent or 0.0, amount))


def step_of(line: Line, before: Night, after: Night) -> Step | None:
    """None where the nights share no seed, or nothing differs on those they share."""
    shared = sorted(before.values.keys() & after.values.keys())
    seeds = [s for s in shared if all(math.isfinite(n.values[s]) and n.values[s] >= 0 for n in (before, after))]
    olds, news = ([night.values[seed] for seed in seeds] for night in (before, after))
    if olds == news:
        return None
    names = [seed.partition(".")[0] for seed in seeds]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for name, old, new in zip(names, olds, news, strict=True):
        sums[name][0] += old
        sums[name][1] += new
    return Step(
        before=math.fsum(olds) / len(olds),
        after=math.fsum(news) / len(news),
        highest=math.fsum(max(both) for both in sums.values()) / len(olds),
        estimate=estimate(olds, news, line.better, boots=[numbers[name] for name in names]),
        better=line.better,
    )
