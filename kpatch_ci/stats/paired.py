# SPDX-License-Identifier: GPL-2.0-or-later
"""From paired samples to a change, its interval and its p-value (docs/statistics.md). No result is ever NaN or infinite.

The unit is the boot: runs of one boot share what was drawn when it booted, so their effects are averaged, and all that is
computed is over boots.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from kpatch_ci.stats import signedrank
from kpatch_ci.stats.signedrank import Floats

LOG_RATIO, DIFFERENCE = "log ratio", "difference"
_LARGEST_LOG = 700.0
"""exp() of more is no float."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What pairs say. ``effects``: one a boot, positive where patched is better, on ``scale``.

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
    pairs: tuple[float, ...] = ()
    """Each pair's own effect, in the order given."""
    sigma: float | None = None
    """Standard deviation of a boot's effect (unpaired: of a sample), on ``scale``; None where one value is all there is."""
    reference: float | None = None
    """Of differences: what they are in percent of, in the metric's unit."""

    @property
    def n(self) -> int:
        """Number of boots."""
        return len(self.effects)

    @property
    def counted(self) -> str:
        """How much was compared, in words."""
        if self.arms:
            return f"{self.arms[0]} and {self.arms[1]} runs"
        return f"{self.n} boot" + "s" * (self.n > 1)


def percent(log_change: float, better: str) -> float:
    """A signed log ratio as percent of the baseline, positive where patched is better.

    100 (p - b) / b where higher is better, 100 (b - p) / b where lower is: what mmtests' tables and patch mails say.
    """
    sign = 1.0 if better == "higher" else -1.0
    return sign * 100 * math.expm1(min(sign * log_change, _LARGEST_LOG))


def rounded(value: float) -> str:
    """A percentage that is no more than an estimate: two digits, and no exponent."""
    return f"{value:.2g}" if value < 10 else f"{value:.0f}"


def estimate(
    baseline: Sequence[float],
    patched: Sequence[float],
    better: str,
    confidence: float = 0.95,
    boots: Sequence[int] | None = None,
) -> Estimate:
    """Compares pairs, ``baseline[i]`` with ``patched[i]`` of ``boots[i]`` (each a boot of its own where it is None).

    ``better`` is ``lower`` or ``higher``. Log ratios where every value is positive. Where a value is 0 (counters), there is
    no ratio: differences in percent of the larger arm are compared, which lie within -100..100, and ``notes`` says so.
    Raises ValueError for no pairs, unequal lengths, negative or infinite values, and an unknown direction.
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
        return from_log_ratios(sign * (np.log(p) - np.log(b)), better, confidence, boots)
    larger = max(_typical(b, boots), _typical(p, boots)) or max(float(b.max()), float(p.max())) or 1.0
    notes = ("zeros among the values: differences compared, in percent of the larger arm",) if (b != p).any() else ()
    by_boot = _by_boot(sign * (p - b) / larger, boots)
    return _estimate(by_boot, lambda x: 100 * x, DIFFERENCE, confidence, notes=notes, reference=larger)


def from_log_ratios(
    effects: Sequence[float] | Floats, better: str, confidence: float = 0.95, boots: Sequence[int] | None = None
) -> Estimate:
    """Compares pairs by their signed log ratios: ln(patched / baseline) where higher is better, else its negative."""
    return _estimate(_by_boot(effects, boots), lambda x: percent(x, better), LOG_RATIO, confidence)


def _typical(values: Floats, boots: Sequence[int] | None) -> float:
    """Hodges and Lehmann's estimate of an arm: no change of differences is larger than the larger arm's."""
    return signedrank.median(signedrank.walsh(_by_boot(values, boots)[1]))


def _by_boot(effects: Sequence[float] | Floats, boots: Sequence[int] | None) -> tuple[Floats, Floats]:
    """The effects, and the mean of each boot's, every boot with the same weight however many runs it has."""
    each = np.asarray(effects, dtype=float)
    if boots is None or len(set(boots)) == len(each):
        return each, each
    if len(boots) != len(each):
        raise ValueError(f"{len(each)} pairs of {len(boots)} boots")
    _, of_boot, counts = np.unique(np.asarray(boots), return_inverse=True, return_counts=True)
    return each, np.bincount(of_boot, weights=each) / counts


def _estimate(
    effects: tuple[Floats, Floats],
    to_percent: Callable[[float], float],
    scale: str,
    confidence: float,
    *,
    notes: tuple[str, ...] = (),
    reference: float | None = None,
) -> Estimate:
    pairs, units = effects
    averages = signedrank.walsh(units)
    ends, method = _interval(units, averages, confidence)
    return Estimate(
        effects=tuple(units.tolist()),
        scale=scale,
        change_percent=to_percent(signedrank.median(averages)),
        ci_percent=(to_percent(ends[0]), to_percent(ends[1])) if ends else None,
        ci_method=f"{method} of {scale}s" if ends else "none",
        p_value=signedrank.p_value(units),
        notes=notes,
        pairs=tuple(pairs.tolist()),
        sigma=float(units.std(ddof=1)) if len(units) > 1 else None,
        reference=reference,
    )


def _interval(units: Floats, averages: Floats, confidence: float) -> tuple[tuple[float, float] | None, str]:
    n = len(units)
    if n == 1:
        return None, ""
    ends = signedrank.interval(averages, n, confidence)
    return (ends, "Hodges-Lehmann (exact signed rank)") if ends else (_student(units, confidence), "Student t")


def _student(units: Floats, confidence: float) -> tuple[float, float]:
    """Of the mean, where there are too few boots for ranks to reject anything at this confidence."""
    n, mean = len(units), float(units.mean())
    from scipy import stats  # noqa: PLC0415 (a second to import, and `check` imports this module)

    half = float(stats.t.ppf((1 + confidence) / 2, n - 1)) * float(units.std(ddof=1)) / math.sqrt(n)
    return mean - half, mean + half
