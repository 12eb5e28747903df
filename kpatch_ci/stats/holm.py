# SPDX-License-Identifier: GPL-2.0-or-later
"""Several tests at once: Holm's step-down adjustment (S. Holm, Scand. J. Statist. 6 (1979) 65-70)."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values in the order given: with p_(1) <= ... <= p_(m), max over j <= i of min(1, (m - j + 1) p_(j)).

    Rejecting where the adjusted value is below alpha keeps the chance of any false rejection below alpha, whatever the
    dependence. Raises ValueError for a value outside [0, 1].
    """
    if any(not 0 <= p <= 1 for p in p_values):
        raise ValueError(f"p-values lie in [0, 1]: {list(p_values)}")
    adjusted = [0.0] * len(p_values)
    floor = 0.0
    for rank, i in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        floor = max(floor, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = floor
    return adjusted
