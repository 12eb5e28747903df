# SPDX-License-Identifier: GPL-2.0-or-later
"""From two independent samples to a change, its interval and its p-value: where a seed does not repeat a run (tcg, kvm).

The change is Hodges and Lehmann's estimate of the shift on the log scale: the median of all m n log ratios of a patched and
a baseline sample (J. L. Hodges, E. L. Lehmann, Ann. Math. Statist. 34 (1963) 598-611). No result is ever NaN or infinite.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy import stats

from kpatch_ci.stats import ranksum
from kpatch_ci.stats.paired import DIFFERENCE, LOG_RATIO, Estimate, percent
from kpatch_ci.stats.ranksum import Floats


def estimate(baseline: Sequence[float], patched: Sequence[float], better: str, confidence: float = 0.95) -> Estimate:
    """Compares two arms, in no order and not necessarily as many; ``better`` is ``lower`` or ``higher``.

    Log ratios where every value is positive. Where a value is 0 (counters), there is no ratio: differences in percent of the
    larger arm's mean are compared, and ``notes`` says so. Raises ValueError for an empty arm, negative or infinite values, and
    an unknown direction.
    """
    b, p = np.array(baseline, dtype=float), np.array(patched, dtype=float)
    if not len(b) or not len(p):
        raise ValueError(f"{len(b)} baseline and {len(p)} patched values: each arm needs one")
    if not all(np.isfinite(v).all() and (v >= 0).all() for v in (b, p)):
        raise ValueError("samples are finite and not negative")
    if (b > 0).all() and (p > 0).all():
        return from_logs(np.log(b), np.log(p), better, confidence)
    larger = max(float(b.mean()), float(p.mean())) or 1.0
    notes = ("zeros among the values: differences compared, in percent of the larger arm's mean",)
    alike = not b.any() and not p.any()
    sign = _sign(better)
    return _estimate(
        sign * b / larger,
        sign * p / larger,
        lambda x: 100 * x,
        DIFFERENCE,
        confidence=confidence,
        notes=() if alike else notes,
    )


def from_logs(
    baseline: Sequence[float] | Floats, patched: Sequence[float] | Floats, better: str, confidence: float = 0.95
) -> Estimate:
    """Compares two arms by the natural logarithms of their samples."""
    sign = _sign(better)
    b, p = sign * np.asarray(baseline, dtype=float), sign * np.asarray(patched, dtype=float)
    return _estimate(b, p, lambda x: percent(x, better), LOG_RATIO, confidence=confidence)


def _sign(better: str) -> float:
    if better not in ("lower", "higher"):
        raise ValueError(f"better is `lower` or `higher`, not {better!r}")
    return 1.0 if better == "higher" else -1.0


def _estimate(
    b: Floats,
    p: Floats,
    to_percent: Callable[[float], float],
    scale: str,
    *,
    confidence: float,
    notes: tuple[str, ...] = (),
) -> Estimate:
    shifts = np.sort(np.subtract.outer(p, b), axis=None)
    ends, method = _interval(b, p, shifts, confidence)
    if not ranksum.is_exact(len(b), len(p)):
        notes = ("p and interval from the rank sum's normal approximation", *notes)
    return Estimate(
        effects=tuple(float(s) for s in shifts),
        scale=scale,
        change_percent=to_percent(float(np.median(shifts))),
        ci_percent=(to_percent(ends[0]), to_percent(ends[1])) if ends else None,
        ci_method=f"{method} of {scale}s" if ends else "none",
        p_value=ranksum.p_value(b, p),
        notes=notes,
        arms=(len(b), len(p)),
        sigma=_sigma(b, p),
    )


def _sigma(b: Floats, p: Floats) -> float | None:
    """The standard deviation that, the same in both arms, gives the difference of means the standard error that it has."""
    if min(len(b), len(p)) < 2:
        return None
    variance = sum(float(v.var(ddof=1)) / len(v) for v in (b, p))
    return math.sqrt(variance / (1 / len(b) + 1 / len(p)))


def _interval(b: Floats, p: Floats, shifts: Floats, confidence: float) -> tuple[tuple[float, float] | None, str]:
    m, n = len(b), len(p)
    k = ranksum.rank_of_end(m, n, confidence)
    if k:
        method = f"Hodges-Lehmann ({'exact' if ranksum.is_exact(m, n) else 'asymptotic'} rank sum)"
        return (float(shifts[k - 1]), float(shifts[len(shifts) - k])), method
    if min(m, n) < 2:
        return None, ""
    return _welch(b, p, confidence), "Welch t"


def _welch(b: Floats, p: Floats, confidence: float) -> tuple[float, float]:
    """Of the difference of means, where there are too few samples for ranks (B. L. Welch, Biometrika 34 (1947) 28-35)."""
    parts = [float(v.var(ddof=1)) / len(v) for v in (b, p)]
    shift, total = float(p.mean() - b.mean()), sum(parts)
    if total == 0:
        return shift, shift
    freedom = total**2 / sum(part**2 / (len(v) - 1) for part, v in zip(parts, (b, p), strict=True))
    half = float(stats.t.ppf((1 + confidence) / 2, freedom)) * math.sqrt(total)
    return shift - half, shift + half
