# SPDX-License-Identifier: GPL-2.0-or-later
"""The absolute floor of a counter that may be near zero: below it a change is too small to mean anything, whatever its percentage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kpatch_ci.model.workload import Seed
from kpatch_ci.stats.paired import DIFFERENCE, Estimate

PER_1000_SWITCHES = 5.0
"""Migrations per 1000 context switches: about what two boots of one kernel differ by where tasks hardly migrate."""
FEWEST = 5.0
"""Migrations a run, for runs of few switches."""


@dataclass(frozen=True, slots=True)
class Floor:
    """``percent``: the floor on an estimate's scale. ``words``: what to call it in a reason."""

    percent: float
    words: str


def migration_floor(
    estimate: Estimate,
    migrations: Mapping[Seed, tuple[float, float]],
    switches: Mapping[Seed, tuple[float, float]],
) -> Floor:
    """The floor of a change in migrations; both mappings: seed -> (baseline, patched).

    It is the larger of 5 per 1000 of the baseline's context switches and 5 a run (the latter alone where no switches were
    counted), in percent of what the estimate's change is in percent of: the baseline's geometric mean, or (where zeros
    occur) the larger arm.
    """
    mean_switches = float(np.mean([switches[s][0] for s in migrations if s in switches] or [0.0]))
    share = PER_1000_SWITCHES * mean_switches / 1000
    absolute = max(share, FEWEST)
    words = f"{absolute:.3g} migrations a run" + (f" ({PER_1000_SWITCHES:g} per 1000 switches)" * (share >= FEWEST))
    return Floor(100 * absolute / _reference(estimate, list(migrations.values())), words)


def _reference(estimate: Estimate, pairs: Sequence[tuple[float, float]]) -> float:
    """What ``estimate.change_percent`` is in percent of."""
    values = np.array(pairs, dtype=float)
    if estimate.scale == DIFFERENCE:
        return estimate.reference or float(values.mean(axis=0).max()) or 1.0
    return float(np.exp(np.log(values[:, 0]).mean()))
