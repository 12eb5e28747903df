# SPDX-License-Identifier: GPL-2.0-or-later
"""The rule that turns an estimate into a verdict, and the sentence that explains it."""

from __future__ import annotations

from dataclasses import dataclass

from kpatch_ci.model.status import Verdict
from kpatch_ci.stats import ranksum, signedrank
from kpatch_ci.stats.detect import fewest
from kpatch_ci.stats.floor import Floor
from kpatch_ci.stats.paired import Estimate, rounded


@dataclass(frozen=True, slots=True)
class Thresholds:
    """``alpha``: adjusted p below which a change is significant. ``confidence``: of the intervals. Both in (0, 1).

    The practical threshold, in percent, is a plan's own (WorkloadPlan.threshold_percent).
    """

    alpha: float = 0.05
    confidence: float = 0.95

    def __post_init__(self) -> None:
        """ValueError for a value outside (0, 1)."""
        if not (0 < self.alpha < 1 and 0 < self.confidence < 1):
            raise ValueError("alpha and confidence lie between 0 and 1")


def decide(
    estimate: Estimate,
    p_adjusted: float,
    thresholds: Thresholds,
    threshold_percent: float,
    tests: int = 1,
    *,
    floor: Floor | None = None,
    mde: float | None = None,
) -> tuple[Verdict, str]:
    """The verdict and why, in one sentence. ``tests``: how many hypotheses the adjustment was over.

    improved / regressed: p_adjusted < alpha and |change| >= threshold. no change: the whole interval lies inside
    (-threshold, threshold), or no pair differs at all. inconclusive: everything else. Where ``floor`` is larger than the
    threshold it takes its place. ``mde``: the comparison's minimum detectable effect in percent, to be named where nothing
    was found.
    """
    change, ci = estimate.change_percent, estimate.ci_percent
    limit = f"{threshold_percent:g} %"
    if floor and floor.percent > threshold_percent:
        threshold_percent, limit = floor.percent, floor.words
    significant = p_adjusted < thresholds.alpha
    p = f"p = {p_adjusted:.2g}" + (f" after Holm over {tests} tests" if tests > 1 else "")
    if significant and abs(change) >= threshold_percent and change != 0:
        verdict = Verdict.IMPROVED if change > 0 else Verdict.REGRESSED
        word = "better" if change > 0 else "worse"
        return verdict, f"{abs(change):.2f} % {word}, {_span(ci)}{p}"
    if ci and not any(estimate.effects):
        return Verdict.NO_CHANGE, f"all {estimate.counted} are equal"
    if ci and -threshold_percent < ci[0] and ci[1] < threshold_percent:
        power = _power(estimate, thresholds.alpha / tests, mde)
        return Verdict.NO_CHANGE, f"{_span(ci)}all of it within the threshold of {limit}{power}"
    if significant:
        return (
            Verdict.INCONCLUSIVE,
            f"{p}, but {change:+.2f} % is below the threshold of {limit}, {_beyond(estimate)}",
        )
    why = _not_significant(estimate, p, thresholds.alpha, limit, tests)
    return Verdict.INCONCLUSIVE, why + ("" if mde is None else _power(estimate, thresholds.alpha / tests, mde))


def _not_significant(estimate: Estimate, p: str, alpha: float, limit: str, tests: int) -> str:
    arms = estimate.arms
    needed = fewest(estimate, alpha / tests)
    if needed:
        smallest = min(1.0, (ranksum.smallest_p(*arms) if arms else signedrank.smallest_p(estimate.n)) * tests)
        over = f" with {tests} tests" if tests > 1 else ""
        least = f"{estimate.counted} cannot give p below {smallest:.2g}{over}"
        return f"{least}; alpha {alpha:g} needs {needed}; {_beyond(estimate)}"
    return f"{p} is not below {alpha:g}, {_beyond(estimate)} (threshold {limit})"


def _power(estimate: Estimate, alpha: float, mde: float | None) -> str:
    """What a comparison like this one would have found; ``alpha``: of Holm's first step."""
    if mde is not None:
        return f"; would have found a change of {rounded(mde)} % or more in four of five"
    needed = fewest(estimate, alpha)
    return f"; {estimate.counted} could not have shown one: that needs {needed}" if needed else ""


def _span(ci: tuple[float, float] | None) -> str:
    return f"interval {ci[0]:+.2f} to {ci[1]:+.2f} %, " if ci else ""


def _beyond(estimate: Estimate) -> str:
    ci = estimate.ci_percent
    if ci is None:
        return "no interval from one " + ("run an arm" if estimate.arms else "boot")
    return f"interval {ci[0]:+.2f} to {ci[1]:+.2f} %"
