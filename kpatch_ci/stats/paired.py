# SPDX-License-Identifier: GPL-2.0-or-later
"""From paired samples to a change, its interval and its p-value (docs/statistics.md). No result is ever NaN or infinite."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from kpatch_ci.stats import signflip
from kpatch_ci.stats.signflip import Floats

LOG_RATIO, DIFFERENCE = "log ratio", "difference"
FEW = 6
"""Below this many pairs the interval is Student's: the sign-flip test cannot reject at 5 %."""
_LARGEST_LOG = 700.0
"""exp() of more is no float."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What n pairs say. ``effects``: one a pair, positive where patched is better, on ``scale``.

    Unpaired: what ``arms`` (baseline's and patched's number of samples) say; ``effects`` are all pairwise differences then.
    """

    effects: tuple[float, ...]
    scale: str
    change_percent: float
    ci_percent: tuple[float, float] | None
    ci_method: str
    p_value: float
    notes: tuple[str, ...] = ()
    arms: tuple[int, int] | None = None

    @property
    def n(self) -> int:
        """Number of pairs."""
        return len(self.effects)

    @property
    def counted(self) -> str:
        """How much was compared, in words."""
        if self.arms:
            return f"{self.arms[0]} and {self.arms[1]} runs"
        return f"{self.n} seed" + "s" * (self.n > 1)


def percent(log_change: float, better: str) -> float:
    """A mean signed log ratio as percent of the baseline's geometric mean, positive where patched is better.

    100 (p - b) / b where higher is better, 100 (b - p) / b where lower is: what mmtests' tables and patch mails say.
    """
    sign = 1.0 if better == "higher" else -1.0
    return sign * 100 * math.expm1(min(sign * log_change, _LARGEST_LOG))


def estimate(baseline: Sequence[float], patched: Sequence[float], better: str, confidence: float = 0.95) -> Estimate:
    """Compares pairs, ``baseline[i]`` with ``patched[i]``; ``better`` is ``lower`` or ``higher``.

    Log ratios where every value is positive. Where a value is 0 (counters), there is no ratio: differences in percent of
    the larger arm's mean are compared, which lie within -100..100, and ``notes`` says so. Raises ValueError for no
    pairs, unequal lengths, negative or infinite values, and an unknown direction.
    """
    b, p = np.array(baseline, dtype=float), np.array(patched, dtype=float)
    if len(b) != len(p) or not len(b):
        raise ValueError(f"{len(b)} baseline and {len(p)} patched values make no pairs")
    if not all(np.isfinite(v).all() and (v >= 0).all() for v in (b, p)):
        raise ValueError("samples are finite and not negative")
    if better not in ("lower", "higher"):
        raise ValueError(f"better is `lower` or `higher`, not {better!r}")
    sign = 1.0 if better == "higher" else -1.0
    if (b > 0).all() and (p > 0).all():
        return from_log_ratios(sign * (np.log(p) - np.log(b)), better, confidence)
    larger = max(float(b.mean()), float(p.mean())) or 1.0
    notes = ("zeros among the values: differences compared, in percent of the larger arm's mean",)
    return _estimate(
        sign * (p - b) / larger, lambda x: 100 * x, DIFFERENCE, confidence, notes if (b != p).any() else ()
    )


def from_log_ratios(effects: Sequence[float] | Floats, better: str, confidence: float = 0.95) -> Estimate:
    """Compares pairs by their signed log ratios: ln(patched / baseline) where higher is better, else its negative."""
    return _estimate(np.asarray(effects, dtype=float), lambda x: percent(x, better), LOG_RATIO, confidence)


def _estimate(
    effects: Floats, to_percent: Callable[[float], float], scale: str, confidence: float, notes: tuple[str, ...] = ()
) -> Estimate:
    ends, method = _interval(effects, confidence)
    if len(effects) > signflip.EXACT_UP_TO:
        notes = (*notes, f"p and interval from {signflip.SAMPLES} sampled sign flips")
    return Estimate(
        effects=tuple(float(e) for e in effects),
        scale=scale,
        change_percent=to_percent(float(effects.mean())),
        ci_percent=(to_percent(ends[0]), to_percent(ends[1])) if ends else None,
        ci_method=f"{method} of {scale}s" if ends else "none",
        p_value=signflip.p_value(effects),
        notes=notes,
    )


def _interval(effects: Floats, confidence: float) -> tuple[tuple[float, float] | None, str]:
    n = len(effects)
    if n == 1:
        return None, ""
    if n >= FEW:
        ends = signflip.interval(effects, confidence)
        if ends:
            return ends, "sign-flip" if n <= signflip.EXACT_UP_TO else "sign-flip (sampled)"
    mean = float(effects.mean())
    from scipy import stats  # noqa: PLC0415 (a second to import, and `check` imports this module)

    half = float(stats.t.ppf((1 + confidence) / 2, n - 1)) * float(effects.std(ddof=1)) / math.sqrt(n)
    return (mean - half, mean + half), "Student t"
