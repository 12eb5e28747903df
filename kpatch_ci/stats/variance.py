# SPDX-License-Identifier: GPL-2.0-or-later
"""How much of the paired effects' variance lies between boots, and how much between the runs of one."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_NOISE = 1e-12


@dataclass(frozen=True, slots=True)
class Components:
    """Variances, in the effects' unit squared; None where they cannot be estimated."""

    between: float | None = None
    """Between boots. Needs two of them, and one with two runs."""
    within: float | None = None
    """Between the runs of one boot. Needs a boot with two runs."""

    @property
    def share(self) -> float | None:
        """The share (0..1) between boots, the intraclass correlation; None too where nothing varies."""
        if self.between is None or self.within is None or not self.between + self.within:
            return None
        return self.between / (self.between + self.within)

    @property
    def spreads_percent(self) -> tuple[float | None, float | None]:
        """Between and within as standard deviations, in percent where the effects are log ratios or shares."""
        between, within = (None if v is None else 100 * math.sqrt(v) for v in (self.between, self.within))
        return between, within


def components(effects: Sequence[float], boots: Sequence[int]) -> Components:
    """Variance components: s_b = max(0, (MS_b - MS_w) / n_0) and s_w = MS_w.

    One-way random-effects ANOVA with unequal group sizes (S. R. Searle, G. Casella, C. E. McCulloch, Variance
    Components, Wiley 1992, section 3.6): n_0 = (N - sum n_i^2 / N) / (a - 1), for N effects in a boots. What is no more than
    rounding is 0. Raises ValueError for unequal lengths.
    """
    groups: defaultdict[int, list[float]] = defaultdict(list)
    for effect, boot in zip(effects, boots, strict=True):
        groups[boot].append(effect)
    total, count = len(effects), len(groups)
    if total == count:
        return Components()
    sizes = np.array([len(g) for g in groups.values()], dtype=float)
    means = np.array([np.mean(g) for g in groups.values()])
    grand = float(np.mean(effects))
    noise = (_NOISE * max(1.0, abs(grand))) ** 2
    within = sum(float(np.sum((np.array(g) - np.mean(g)) ** 2)) for g in groups.values()) / (total - count)
    if count < 2:
        return Components(within=_beyond(within, noise))
    mean_square = float(np.sum(sizes * (means - grand) ** 2)) / (count - 1)
    size = (total - float(np.sum(sizes**2)) / total) / (count - 1)
    return Components(_beyond((mean_square - within) / size, noise), _beyond(within, noise))


def _beyond(value: float, noise: float) -> float:
    return value if value > noise else 0.0


def boot_variance_share(differences: Sequence[float], boots: Sequence[int]) -> float | None:
    """Share (0..1) of the variance between boots. None where it cannot be estimated: one boot, one run a boot, or no variance."""
    return components(differences, boots).share
