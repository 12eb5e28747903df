# SPDX-License-Identifier: GPL-2.0-or-later
"""Replicates of two arms -> comparisons with verdicts.

Each workload has one primary figure: its first metric, over all its cases. Primaries are adjusted together (Holm), over
every workload and architecture of a series; cases and counters explain, and are adjusted within their workload.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kpatch_ci.model.comparison import Comparison
from kpatch_ci.model.status import Mode, Status, Verdict
from kpatch_ci.model.workload import CONTEXT_SWITCHES, COUNTERS, MIGRATIONS, Metric, Seed, WorkloadPlan
from kpatch_ci.stats.floor import Floor, migration_floor
from kpatch_ci.stats.holm import holm
from kpatch_ci.stats.paired import Estimate, estimate, from_log_ratios
from kpatch_ci.stats.pairs import PATCHED, Dropped, Pairs, Replicates, describe, make_pairs, seeds_of
from kpatch_ci.stats.signflip import Floats
from kpatch_ci.stats.variance import boot_variance_share
from kpatch_ci.stats.verdict import Thresholds, decide

ALL_CASES = "all"
Arms = tuple[Replicates, Replicates]
"""Baseline, patched."""


@dataclass(frozen=True, slots=True)
class _Draft:
    """A comparison before its adjustment; ``estimate`` is None where there is nothing to decide."""

    comparison: Comparison
    estimate: Estimate | None
    threshold_percent: float
    family: tuple[str, ...]
    dropped: str
    floor: Floor | None = None


def compare_arch(
    baseline: Replicates,
    patched: Replicates,
    plans: Sequence[WorkloadPlan],
    metrics: Mapping[str, Sequence[Metric]],
    thresholds: Thresholds,
) -> list[Comparison]:
    """Every comparison of one series on one architecture, as if it were the only one (see compare_series).

    ``metrics``: workload kind -> its own metrics, the primary one first. For each plan, in this order: the primary
    figure, then case by case the workload's own metrics and the counters. Never raises for what is in the replicates.
    """
    return compare_series({"": (baseline, patched)}, plans, metrics, thresholds)[""]


def compare_series(
    arms: Mapping[str, Arms],
    plans: Sequence[WorkloadPlan],
    metrics: Mapping[str, Sequence[Metric]],
    thresholds: Thresholds,
) -> dict[str, list[Comparison]]:
    """Architecture -> its comparisons, the primaries of all architectures adjusted together."""
    drafts = [
        (arch, draft)
        for arch, both in arms.items()
        for plan in plans
        for draft in _plan_drafts(arch, both, plan, metrics[plan.kind], thresholds)
    ]
    result: dict[str, list[Comparison]] = {arch: [] for arch in arms}
    finished = _finish([draft for _, draft in drafts], thresholds)
    for (arch, _), comparison in zip(drafts, finished, strict=True):
        result[arch].append(comparison)
    return result


def _plan_drafts(
    arch: str, arms: Arms, plan: WorkloadPlan, own: Sequence[Metric], thresholds: Thresholds
) -> list[_Draft]:
    seeds = seeds_of(plan.name, arms)
    modes = {r.mode for arm in arms for key, r in arm.items() if key[0] == plan.name}
    mode = next(iter(modes - {Mode.DETERMINISTIC}), Mode.DETERMINISTIC)

    def draft(pairs: Pairs, metric: Metric, guess: Callable[[], Estimate]) -> _Draft:
        primary = pairs.case == ALL_CASES
        family = ("primary",) if primary else (arch, plan.name)
        blank = replace(_blank(plan, metric, mode), case=pairs.case, primary=primary)
        return _draft(blank, pairs, guess, plan.threshold_percent, family)

    def of_case(case: str, metric: Metric) -> _Draft:
        pairs = make_pairs(plan.name, case, metric, seeds, arms)
        baseline, patched = ([v[i] for v in pairs.values.values()] for i in (0, 1))
        made = draft(pairs, metric, lambda: estimate(baseline, patched, metric.better, thresholds.confidence))
        if metric != MIGRATIONS or made.estimate is None:
            return made
        switches = make_pairs(plan.name, case, CONTEXT_SWITCHES, seeds, arms)
        return replace(made, floor=migration_floor(made.estimate, pairs.values, switches.values))

    each = [make_pairs(plan.name, case.label, own[0], seeds, arms) for case in plan.cases]
    together, effects = _over_cases(each, own[0], seeds)
    return [
        draft(together, own[0], lambda: from_log_ratios(effects, own[0].better, thresholds.confidence)),
        *(of_case(case.label, metric) for case in plan.cases for metric in (*own, *COUNTERS)),
    ]


def _over_cases(cases: Sequence[Pairs], metric: Metric, seeds: Sequence[Seed]) -> tuple[Pairs, Floats]:
    """Geometric means over cases, for the seeds that every case has, and the mean signed log ratios behind them."""
    together = Pairs(ALL_CASES, modes=set().union(*(c.modes for c in cases)))
    together.dropped = [d for c in cases for d in c.dropped]
    sign = 1.0 if metric.better == "higher" else -1.0
    effects = []
    for seed in seeds:
        if not cases or any(seed not in c.values for c in cases):
            continue
        logs = np.log([c.values[seed] for c in cases])
        baseline, patched = np.exp(logs.mean(axis=0))
        together.values[seed] = (float(baseline), float(patched))
        effects.append(sign * float((logs[:, 1] - logs[:, 0]).mean()))
    return together, np.array(effects)


def _blank(plan: WorkloadPlan, metric: Metric, mode: Mode) -> Comparison:
    return Comparison(
        workload=plan.name,
        case="",
        metric=metric.name,
        unit=metric.unit,
        better=metric.better,
        mode=mode,
        seeds=(),
        baseline=(),
        patched=(),
        change_percent=None,
        ci_percent=None,
        ci_method="none",
        p_value=None,
        p_adjusted=None,
        verdict=Verdict.ERROR,
    )


def _draft(
    blank: Comparison, pairs: Pairs, guess: Callable[[], Estimate], threshold: float, family: tuple[str, ...]
) -> _Draft:
    dropped = describe(pairs.dropped)
    if len(pairs.modes) > 1:
        reason = f"samples of unlike modes are not compared: {', '.join(sorted(pairs.modes))}"
        return _Draft(replace(blank, reason=reason), None, threshold, family, dropped)
    if not pairs.values:
        verdict, reason = _nothing(pairs.dropped)
        return _Draft(replace(blank, verdict=verdict, reason=reason), None, threshold, family, dropped)
    found = guess()
    seeds = tuple(pairs.values)
    comparison = replace(
        blank,
        mode=next(iter(pairs.modes)),
        seeds=seeds,
        baseline=tuple(b for b, _ in pairs.values.values()),
        patched=tuple(p for _, p in pairs.values.values()),
        change_percent=found.change_percent,
        ci_percent=found.ci_percent,
        ci_method=found.ci_method,
        p_value=found.p_value,
        boot_variance_share=boot_variance_share(found.effects, [s.boot for s in seeds]),
    )
    return _Draft(comparison, found, threshold, family, dropped)


def _nothing(dropped: Sequence[Dropped]) -> tuple[Verdict, str]:
    """No pair at all. ``failed`` (the patch's fault) only where some patched run failed and its baseline passed."""
    if not dropped:
        return Verdict.ERROR, "no runs to compare"
    patched = {d.status for d in dropped if d.arm == PATCHED}
    if Status.FAILED in patched:
        verdict = Verdict.FAILED
    else:
        verdict = Verdict.SKIPPED if all(d.status is Status.SKIPPED for d in dropped) else Verdict.ERROR
    return verdict, f"no pair of runs to compare: {describe(dropped)}"


def _finish(drafts: Sequence[_Draft], thresholds: Thresholds) -> list[Comparison]:
    """Adjusts each family's p-values together, and decides."""
    families: dict[tuple[str, ...], list[int]] = {}
    for i, draft in enumerate(drafts):
        if draft.estimate:
            families.setdefault(draft.family, []).append(i)
    done = [d.comparison for d in drafts]
    for members in families.values():
        adjusted = holm([e.p_value for i in members if (e := drafts[i].estimate)])
        for i, p in zip(members, adjusted, strict=True):
            done[i] = _decided(drafts[i], p, thresholds, len(members))
    return done


def _decided(draft: _Draft, p_adjusted: float, thresholds: Thresholds, tests: int) -> Comparison:
    assert draft.estimate is not None  # noqa: S101 - _finish takes only those
    verdict, why = decide(draft.estimate, p_adjusted, thresholds, draft.threshold_percent, tests, floor=draft.floor)
    reason = "; ".join(part for part in (why, *draft.estimate.notes, draft.dropped) if part)
    return replace(draft.comparison, p_adjusted=p_adjusted, verdict=verdict, reason=reason)
