# SPDX-License-Identifier: GPL-2.0-or-later
"""From values to places on an axis. Places are percent of the plot's width, so that a plot is as wide as the page lets it be."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

MARGIN = 0.08
"""Free at either end, as a share of the values' range: room for a tick's label."""
TICKS = 5
_STEPS = (1, 2, 2.5, 5, 10)


@dataclass(frozen=True, slots=True)
class Scale:
    """A linear axis from ``low`` to ``high`` (low < high)."""

    low: float
    high: float

    def at(self, value: float) -> float:
        """Place of ``value``, 0..100; what lies outside is put at the end."""
        return 100 * (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)

    def outside(self, value: float) -> int:
        """-1 below the axis, 1 above it, 0 on it."""
        return (value > self.high) - (value < self.low)

    def ticks(self) -> list[float]:
        """Round values on the axis, few enough for a phone; 0 is one of them where it is on the axis."""
        step = _round_step((self.high - self.low) / TICKS)
        first, last = math.ceil(self.low / step), math.floor(self.high / step)
        return [step * i for i in range(first, last + 1)]


def scale_of(values: Iterable[float], least: float = 0.0, most: float = math.inf) -> Scale:
    """An axis that shows ``values``, 0, and ``least`` on either side of 0, but nothing beyond ``most`` on either side."""
    there = [v for v in values if math.isfinite(v)]
    low = max(min([0.0, -least, *there]), -most)
    high = min(max([0.0, least, *there]), most)
    room = MARGIN * (high - low) or 1.25  # nothing but 0: ticks at 1 with room for their labels
    return Scale(low - room, high + room)


def _round_step(size: float) -> float:
    """The smallest of 1, 2, 2.5, 5 times a power of ten that is not below ``size``."""
    power = 10.0 ** math.floor(math.log10(size))
    return next(s * power for s in _STEPS if s * power >= size * (1 - 1e-9))
