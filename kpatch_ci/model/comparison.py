# SPDX-License-Identifier: GPL-2.0-or-later
"""Comparisons: what statistics say of one metric."""

from __future__ import annotations

from dataclasses import dataclass

from kpatch_ci.model.status import Mode, Verdict
from kpatch_ci.model.workload import Seed


@dataclass(frozen=True, slots=True)
class Comparison:
    """Baseline against patched for one metric of one case (or, ``primary``, of all cases of a workload together).

    ``change_percent`` is positive when patched is better, whatever the metric's direction.
    """

    workload: str
    case: str
    """Case label; ``all`` for a primary figure."""
    metric: str
    unit: str
    better: str
    mode: Mode
    seeds: tuple[Seed, ...]
    baseline: tuple[float | None, ...]
    """In seed order. For a primary figure: the geometric mean over cases. None (in tcg and kvm modes only): this arm has no sample."""
    patched: tuple[float | None, ...]
    change_percent: float | None
    ci_percent: tuple[float, float] | None
    ci_method: str
    p_value: float | None
    p_adjusted: float | None
    verdict: Verdict
    primary: bool = False
    reason: str = ""
    """Why the verdict is what it is, in one sentence."""
    boot_variance_share: float | None = None
    """Share (0..1) of the paired differences' variance that lies between boots; None where it cannot be estimated."""
    spread_between_percent: float | None = None
    """Standard deviation of the paired effects between boots; None where it cannot be estimated, as with one run a boot."""
    spread_within_percent: float | None = None
    """The same between the runs of one boot."""
    units: int | None = None
    """Independent units that the test is over: boots, each with the mean of its runs. None where it is not of pairs."""
    mde_percent: float | None = None
    """Minimum detectable effect: the smallest true change that a comparison like this one finds in four of five (docs/statistics.md)."""
