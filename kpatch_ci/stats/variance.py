# SPDX-License-Identifier: GPL-2.0-or-later
"""How much of the paired differences' variance lies between boots."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

_NOISE = 1e-12


def boot_variance_share(differences: Sequence[float], boots: Sequence[int]) -> float | None:
    """Share (0..1) of the variance between boots: s_b / (s_b + MS_w), the intraclass correlation.

    One-way random-effects ANOVA with unequal group sizes (S. R. Searle, G. Casella, C. E. McCulloch, Variance
    Components, Wiley 1992, section 3.6): s_b = max(0, (MS_b - MS_w) / n_0), n_0 = (N - sum n_i^2 / N) / (a - 1), for N
    differences in a boots. None where it cannot be estimated: one boot, one run a boot, or no variance at all.
    Raises ValueError for unequal lengths.
    """
    groups: defaultdict[int, list[float]] = defaultdict(list)
    for difference, boot in zip(differences, boots, strict=True):
        groups[boot].append(difference)
    total, count = len(differences), len(groups)
    if count < 2 or total == count:
        return None
    sizes = np.array([len(g) for g in groups.values()], dtype=float)
    means = np.array([np.mean(g) for g in groups.values()])
    grand = float(np.mean(differences))
    within = sum(float(np.sum((np.array(g) - np.mean(g)) ** 2)) for g in groups.values()) / (total - count)
    between = float(np.sum(sizes * (means - grand) ** 2)) / (count - 1)
    size = (total - float(np.sum(sizes**2)) / total) / (count - 1)
    component = max(0.0, (between - within) / size)
    if component + within <= (_NOISE * max(1.0, abs(grand))) ** 2:
        return None
    return component / (component + within)
