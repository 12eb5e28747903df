# SPDX-License-Identifier: GPL-2.0-or-later
"""How a claim of a patch's text stands to what was measured: agrees, disagrees, undecided, not measured (docs/claims.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kpatch_ci.model.claim import Agreement, Claim, JudgedClaim
from kpatch_ci.model.comparison import Comparison
from kpatch_ci.model.status import Verdict

_NO_FIGURE = (Verdict.FAILED, Verdict.SKIPPED, Verdict.ERROR)


def judge_claims(
    claims: Iterable[Claim], arch: str, comparisons: Sequence[Comparison], thresholds: Mapping[str, float]
) -> tuple[JudgedClaim, ...]:
    """Every claim that is about ``arch``, beside that architecture's comparisons. ``thresholds``: percent, by workload."""
    return tuple(judge(claim, comparisons, thresholds) for claim in claims if claim.arch in ("", arch))


def judge(claim: Claim, comparisons: Sequence[Comparison], thresholds: Mapping[str, float]) -> JudgedClaim:
    """One claim beside the comparison that it names."""
    found, why = _counterpart(claim, comparisons)
    if found is None:
        return JudgedClaim(claim, Agreement.NOT_MEASURED, why)
    if found.change_percent is None or found.verdict in _NO_FIGURE:
        return JudgedClaim(
            claim, Agreement.NOT_MEASURED, f"ours gave no figure: {found.reason or found.verdict}", found
        )
    if claim.better and claim.better != found.better:
        why = (
            f"the mail's figure is better when {claim.better}, ours when {found.better}: they measure different things"
        )
        return JudgedClaim(claim, Agreement.NOT_MEASURED, why, found)
    claimed = _claimed(claim, found.better)
    if claimed is None:
        agreement, why = _by_words(claim.says, found)
    else:
        agreement, why = by_interval(claimed, found.ci_percent, thresholds.get(found.workload, 0.0))
    marked = "; the mail does not mark it as significant" if claim.significant is False else ""
    return JudgedClaim(claim, agreement, why + marked, found)


def by_interval(claimed: float, ci: tuple[float, float] | None, threshold: float) -> tuple[Agreement, str]:
    """The rule for a claim with a number; all in percent, positive better.

    ``threshold`` is the practical one: what differs by less is the same. A claim of less than it claims no change.
    """
    if ci is None:
        return Agreement.UNDECIDED, "one seed gives no interval"
    low, high = ci
    ours = f"{low:+.2f} to {high:+.2f} %"
    small = abs(claimed) <= threshold
    if small and -threshold <= low and high <= threshold:
        return Agreement.AGREES, f"both are no change: ours is {ours}, within the threshold of {threshold:g} %"
    if not low - threshold <= claimed <= high + threshold:
        return Agreement.DISAGREES, f"{_apart(claimed, ci, small=small)}: ours is {ours}"
    if small:
        tight = claimed - threshold <= low and high <= claimed + threshold
        what = f"all of it within {threshold:g} % of the claim" if tight else "too wide to tell no change from one"
        return (Agreement.AGREES if tight else Agreement.UNDECIDED), f"ours is {ours}, {what}"
    if low <= 0 <= high:
        return Agreement.UNDECIDED, f"ours is {ours}: neither no change nor the claim can be excluded"
    return Agreement.AGREES, f"ours is {ours}"


def _apart(claimed: float, ci: tuple[float, float], *, small: bool) -> str:
    """In which way a measured interval is not the claim."""
    low, high = ci
    if small:
        return f"no change is claimed, and it got {'better' if low > claimed else 'worse'}"
    if low <= 0 <= high:
        return "a change is claimed that ours excludes"
    if (low > 0) != (claimed > 0):
        return "the other direction"
    return f"same direction, {'larger' if min(abs(low), abs(high)) > abs(claimed) else 'smaller'}"


def _claimed(claim: Claim, better: str) -> float | None:
    """The change that is claimed; where the text does not say which direction is better, our metric does."""
    if claim.change_percent is not None or claim.says or claim.better:
        return claim.change_percent
    baseline, patched = claim.baseline, claim.patched
    if baseline is None or patched is None or not baseline.value or baseline.unit != patched.unit:
        return None
    sign = 1 if better == "higher" else -1
    return sign * 100 * (patched.value - baseline.value) / baseline.value


def _by_words(says: str, found: Comparison) -> tuple[Agreement, str]:
    """The rule for words: the comparison's own verdict, which knows thresholds and adjusted p."""
    if not says:
        return Agreement.UNDECIDED, f"the text says neither how much nor which way; ours: {found.verdict}"
    if found.verdict is Verdict.INCONCLUSIVE:
        return Agreement.UNDECIDED, f"ours is inconclusive: {found.reason}" if found.reason else "ours is inconclusive"
    meant = {
        "better": (Verdict.IMPROVED,),
        "worse": (Verdict.REGRESSED,),
        "changes": (Verdict.IMPROVED, Verdict.REGRESSED),
        "no change": (Verdict.NO_CHANGE,),
    }[says]
    words = f"the text says: {says}; ours: {found.verdict}{f', {found.reason}' if found.reason else ''}"
    return (Agreement.AGREES if found.verdict in meant else Agreement.DISAGREES), words


def _counterpart(claim: Claim, comparisons: Sequence[Comparison]) -> tuple[Comparison | None, str]:
    """The comparison that a claim names; else why there is none."""
    if not claim.workload:
        return None, claim.unmeasured or "no workload here stands for it"
    if not comparisons:
        return None, "nothing was measured here"
    of_workload = [c for c in comparisons if c.workload == claim.workload]
    if not of_workload:
        return None, f"not among the workloads of this run: {claim.workload}"
    of_metric = [c for c in of_workload if c.metric == claim.metric]
    if not of_metric:
        return None, f"not among the metrics of {claim.workload}: {claim.metric}"
    wanted = _settings(claim.case)
    for one in of_metric:
        if one.primary == (not claim.case) and (one.primary or _settings(one.case) == wanted):
            return one, ""
    return None, f"not among the cases of {claim.workload}: {claim.case or 'all'}"


def _settings(case: str) -> frozenset[str]:
    """A label's settings, whatever their order."""
    return frozenset(case.split(","))
