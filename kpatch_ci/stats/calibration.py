# SPDX-License-Identifier: GPL-2.0-or-later
"""How far the verdicts can be trusted: comparisons drawn from pools of measured replicates, and judged by the real code.

A *pool* is one arm measured under S seeds. A *trial* draws n of them, without replacement, and compares two arms under those
seeds with ``compare_series``, as a run of n seeds would. Trials of one pool share its seeds: a rate over them says what n of
these S seeds do, and is as uncertain as S/n disjoint comparisons are, whatever the number of trials (docs/calibration.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kpatch_ci.model.comparison import Comparison
from kpatch_ci.model.status import Status, Verdict
from kpatch_ci.model.workload import COUNTERS, Case, Metric, Replicate, Seed, WorkloadPlan
from kpatch_ci.stats.compare import compare_series
from kpatch_ci.stats.pairs import Replicates, fault
from kpatch_ci.stats.verdict import Thresholds

ALPHAS = (0.05, 0.01)
"""Error rates at which false positives are counted."""
POWER = 0.95
"""Share of trials in which a slow-down of the minimum detectable size is found."""
PRIMARY, FIGURE, COUNTER = "primary figures", "cases", "counters"
_DRAW_SEED = 0x63616C69
_TOGETHER = Case((("cases", "all"),))

Metrics = Mapping[str, Sequence[Metric]]


@dataclass(frozen=True, slots=True)
class Rate:
    """``hits`` of ``trials``."""

    hits: int
    trials: int

    @property
    def share(self) -> float:
        """From 0 to 1; 0 of nothing is 0."""
        return self.hits / self.trials if self.trials else 0.0

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Exact binomial interval (C. J. Clopper, E. S. Pearson, Biometrika 26 (1934) 404-413), as if trials were independent."""
        from scipy.stats import beta  # noqa: PLC0415 (a second to import, and --help does not need it)

        tail = (1 - confidence) / 2
        low = beta.ppf(tail, self.hits, self.trials - self.hits + 1) if self.hits else 0.0
        high = beta.ppf(1 - tail, self.hits + 1, self.trials - self.hits) if self.hits < self.trials else 1.0
        return float(low), float(high)


@dataclass(frozen=True, slots=True)
class FalsePositives:
    """Of comparisons in which nothing was to be found, at ``alpha``: those called significant, and those with a verdict.

    ``verdicts`` (improved, regressed) asks for a change of the threshold's size too: it is what a person reads.
    """

    kind: str
    workload: str
    alpha: float
    significant: Rate
    verdicts: Rate


@dataclass(frozen=True, slots=True)
class Noise:
    """What does not differ: one figure of one workload, A against A'. Percent, of n pooled seeds."""

    workload: str
    case: str
    metric: str
    n: int
    mean: float
    """Of A."""
    cv_percent: float
    """Coefficient of variation of A over seeds."""
    spread_percent: float
    """Standard deviation of the paired effects of A' over A."""
    detectable_percent: float
    """Smallest change found in POWER of comparisons of ``seeds`` seeds at alpha 0.05 (detectable())."""


@dataclass(frozen=True, slots=True)
class Power:
    """How often a slow-down was found in trials of ``seeds`` seeds."""

    seeds: int
    significant: Rate
    """Adjusted p below alpha, and the sign right."""
    regressed: Rate
    """Verdict ``regressed``: significant, and at least the practical threshold."""
    expected: float
    """Of a slow-down that is exactly of its level, by the noncentral t distribution of the pool's spread."""


def detectable(spread_percent: float, seeds: int, alpha: float = ALPHAS[0], power: float = POWER) -> float:
    """Smallest change, in the unit of ``spread_percent``, that ``seeds`` pairs find with this ``power``.

    (t(1 - alpha/2) + t(power)) s / sqrt(n), n - 1 degrees of freedom (G. W. Snedecor, W. G. Cochran, Statistical Methods,
    section 6.14). Infinite for one seed.
    """
    from scipy.stats import t  # noqa: PLC0415

    if seeds < 2:
        return math.inf
    return float(t.ppf(1 - alpha / 2, seeds - 1) + t.ppf(power, seeds - 1)) * spread_percent / math.sqrt(seeds)


def expected_power(change: float, spread: float, seeds: int, alpha: float) -> float:
    """Chance that a two-sided t test of ``seeds`` pairs finds ``change``, both in one unit; zero for one seed."""
    from scipy.stats import nct, t  # noqa: PLC0415

    if seeds < 2:
        return 0.0
    if not spread:
        return float(change != 0)
    limit, shift = t.ppf(1 - alpha / 2, seeds - 1), abs(change) / spread * math.sqrt(seeds)
    return float(nct.sf(limit, seeds - 1, shift))


def draw(seeds: Sequence[Seed], n: int, trials: int, stream: int = 0) -> list[tuple[Seed, ...]]:
    """``trials`` draws of n seeds each, without replacement, always the same ones for the same arguments."""
    rng = np.random.default_rng([_DRAW_SEED, stream, n])
    return [tuple(seeds[i] for i in rng.choice(len(seeds), n, replace=False)) for _ in range(trials)]


def take(arm: Replicates, seeds: Sequence[Seed]) -> dict[tuple[str, str, Seed], Replicate]:
    """The part of an arm that was measured under ``seeds``."""
    wanted = frozenset(seeds)
    return {key: one for key, one in arm.items() if key[2] in wanted}


def rename(arm: Replicates, seeds: Mapping[Seed, Seed]) -> dict[tuple[str, str, Seed], Replicate]:
    """What an arm gave under the keys of ``seeds``, as if it were under their values."""
    return {(w, c, seeds[seed]): replace(one, seed=seeds[seed]) for (w, c, seed), one in arm.items() if seed in seeds}


def layout_trials(
    arms: tuple[Replicates, Replicates],
    plans: Sequence[WorkloadPlan],
    metrics: Metrics,
    draws: Sequence[Sequence[Seed]],
) -> list[list[Comparison]]:
    """A against A', both under the same drawn seeds: one list of comparisons a trial."""
    pairs = (tuple(take(arm, seeds) for arm in arms) for seeds in draws)
    return [_compare((a, b), plans, metrics) for a, b in pairs]


def split_trials(
    arm: Replicates, plans: Sequence[WorkloadPlan], metrics: Metrics, draws: Sequence[Sequence[Seed]]
) -> list[list[Comparison]]:
    """One kernel against itself: each draw's first half of seeds against its second half, which is paired with it by chance."""
    found = []
    for seeds in draws:
        half = len(seeds) // 2
        first, second = seeds[:half], seeds[half : 2 * half]
        other = rename(arm, dict(zip(second, first, strict=True)))
        found.append(_compare((take(arm, first), other), plans, metrics))
    return found


def _compare(
    arms: tuple[Replicates, Replicates], plans: Sequence[WorkloadPlan], metrics: Metrics, alpha: float = ALPHAS[0]
) -> list[Comparison]:
    return compare_series({"": arms}, plans, metrics, Thresholds(alpha=alpha))[""]


def false_positives(trials: Sequence[Sequence[Comparison]], metrics: Metrics) -> list[FalsePositives]:
    """By workload, kind and alpha; a comparison without a p-value is none."""
    own = {metric.name for some in metrics.values() for metric in some}
    found: dict[tuple[str, str, float], list[tuple[bool, bool]]] = {}
    for one in (c for trial in trials for c in trial if c.p_adjusted is not None):
        kind = PRIMARY if one.primary else FIGURE if one.metric in own else COUNTER
        for alpha in ALPHAS:
            below = one.p_adjusted is not None and one.p_adjusted < alpha
            found.setdefault((one.workload, kind, alpha), []).append((below, below and one.verdict in _CHANGED))
    return [
        FalsePositives(kind, workload, alpha, *(Rate(sum(both[i] for both in some), len(some)) for i in (0, 1)))
        for (workload, kind, alpha), some in found.items()
    ]


_CHANGED = (Verdict.IMPROVED, Verdict.REGRESSED)


def together(arm: Replicates, plan: WorkloadPlan, metric: Metric) -> dict[tuple[str, str, Seed], Replicate]:
    """A workload's primary figure as a replicate of one case: the geometric mean over cases, for seeds that have all of them.

    It has the primary figure's effects, and a comparison of it costs one case instead of all of them and their counters.
    """
    found = {}
    for seed in dict.fromkeys(seed for name, _, seed in arm if name == plan.name):
        each = [arm.get((plan.name, case.label, seed)) for case in plan.cases]
        if any(fault(one, metric) for one in each):
            continue
        values = [one.samples[metric.name] for one in each if one]
        value = math.exp(float(np.log(values).mean()))
        mode = next(one.mode for one in each if one)
        one = Replicate(plan.name, _TOGETHER.label, seed, Status.PASSED, mode, {metric.name: value})
        found[plan.name, _TOGETHER.label, seed] = one
    return found


def primary_effects(arms: tuple[Replicates, Replicates], plan: WorkloadPlan, metric: Metric) -> list[float]:
    """effects() of a workload's primary figure."""
    whole = (together(arms[0], plan, metric), together(arms[1], plan, metric))
    return effects(whole, plan, _TOGETHER.label, metric)


def primary_alone(
    arms: tuple[Replicates, Replicates], plan: WorkloadPlan, metric: Metric, alpha: float = ALPHAS[0]
) -> Comparison:
    """The comparison of a workload's primary figure, as if nothing else had been measured."""
    pair = (together(arms[0], plan, metric), together(arms[1], plan, metric))
    return _of_together(pair, plan, metric, alpha)


def _of_together(arms: tuple[Replicates, Replicates], plan: WorkloadPlan, metric: Metric, alpha: float) -> Comparison:
    return _compare(arms, [replace(plan, cases=(_TOGETHER,))], {plan.kind: (metric,)}, alpha)[0]


def power(
    arms: tuple[Replicates, Replicates],
    plan: WorkloadPlan,
    metric: Metric,
    draws: Sequence[Sequence[Seed]],
    *,
    level_percent: float,
    alpha: float,
) -> Power:
    """How often the patched arm, which is slower, is found to be."""
    base, slow = (together(arm, plan, metric) for arm in arms)
    found = [_of_together((take(base, s), take(slow, s)), plan, metric, alpha) for s in draws]
    hits = [_worse(one, alpha) for one in found]
    verdicts = [one.verdict is Verdict.REGRESSED for one in found]
    seeds = len(draws[0]) if draws else 0
    each = effects((base, slow), plan, _TOGETHER.label, metric)
    spread = float(np.std(each, ddof=1)) if len(each) > 1 else math.inf
    expected = expected_power(level_percent, spread, seeds, alpha)
    return Power(seeds, Rate(sum(hits), len(hits)), Rate(sum(verdicts), len(verdicts)), expected)


def _worse(one: Comparison, alpha: float) -> bool:
    return one.p_adjusted is not None and one.p_adjusted < alpha and (one.change_percent or 0) < 0


def effects(arms: tuple[Replicates, Replicates], plan: WorkloadPlan, case: str, metric: Metric) -> list[float]:
    """Log ratios of the second arm over the first in percent, by seed, of what both have; none where a value is 0."""
    a, b = arms
    keys = [key for key in a if key[:2] == (plan.name, case) and key in b]
    pairs = [(a[key].samples.get(metric.name, 0.0), b[key].samples.get(metric.name, 0.0)) for key in keys]
    return [100 * math.log(y / x) for x, y in pairs if x > 0 and y > 0]


def noise(arms: tuple[Replicates, Replicates], plan: WorkloadPlan, own: Sequence[Metric], seeds: int) -> list[Noise]:
    """The primary figure's noise, then each case's, its counters included; what has fewer than three seeds is left out."""
    whole = (together(arms[0], plan, own[0]), together(arms[1], plan, own[0]))
    rows = [_noise(whole, plan, ("all", _TOGETHER.label), own[0], seeds)]
    rows += [_noise(arms, plan, (c.label, c.label), m, seeds) for c in plan.cases for m in (*own, *COUNTERS)]
    return [row for row in rows if row]


def _noise(
    arms: tuple[Replicates, Replicates], plan: WorkloadPlan, case: tuple[str, str], metric: Metric, seeds: int
) -> Noise | None:
    name, label = case
    values = [
        r.samples[metric.name] for key, r in arms[0].items() if key[:2] == (plan.name, label) and not fault(r, metric)
    ]
    ratios = effects(arms, plan, label, metric)
    if len(ratios) < 3 or not np.mean(values):
        return None
    mean, spread = float(np.mean(values)), float(np.std(ratios, ddof=1))
    cv = 100 * float(np.std(values, ddof=1)) / mean
    return Noise(plan.name, name, metric.name, len(ratios), mean, cv, spread, detectable(spread, seeds))
