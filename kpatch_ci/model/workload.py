# SPDX-License-Identifier: GPL-2.0-or-later
"""Workloads, their cases, and what one run of one gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kpatch_ci.model.boot import Lost
from kpatch_ci.model.status import Mode, Status

Scalar = str | int | float

JOB_BYTES = 4096
"""Size of the agent's fw_cfg item, which is part of a snapshot's layout: a job with its final newline fits into it."""


@dataclass(frozen=True, slots=True)
class Metric:
    """Name, unit, and which direction is better (``lower`` or ``higher``)."""

    name: str
    unit: str
    better: str


CONTEXT_SWITCHES = Metric("context_switches", "count", "lower")
MIGRATIONS = Metric("migrations", "count", "lower")
WAKEUPS = Metric("wakeups", "count", "lower")
COUNTERS = (CONTEXT_SWITCHES, MIGRATIONS, WAKEUPS)
"""What explains every workload's own figures."""
MIGRATIONS_PER_1000 = Metric("migrations_per_1000_switches", "1/1000", "lower")
"""Derived from two counters: a sample, shown but never tested, so that it enlarges no family of tests (docs/statistics.md)."""


@dataclass(frozen=True, slots=True)
class Case:
    """One setting of a workload, in the order that its label shows. ``params`` does not show in the label."""

    settings: tuple[tuple[str, Scalar], ...]
    params: tuple[tuple[str, Scalar], ...] = ()

    @property
    def label(self) -> str:
        """``key=value[,key=value]``."""
        return ",".join(f"{k}={v}" for k, v in self.settings)

    def get(self, key: str) -> Scalar:
        """Value of a setting or parameter; KeyError names the key."""
        return dict(self.settings + self.params)[key]


@dataclass(frozen=True, slots=True)
class WorkloadPlan:
    """A workload as pipeline.yaml wants it. ``name`` may carry a suffix (``dd-slow``); ``kind`` is the workload proper."""

    name: str
    kind: str
    cases: tuple[Case, ...]
    threshold_percent: float


@dataclass(frozen=True, slots=True, order=True)
class Seed:
    """A pair: what the guest was booted with, and what the run was perturbed with."""

    boot: int
    run: int

    def __str__(self) -> str:
        return f"{self.boot}.{self.run}"


@dataclass(frozen=True, slots=True)
class Replicate:
    """One workload run. ``samples``: metric name -> value, the workload's own, the counters, and what derives from them."""

    workload: str
    case: str
    seed: Seed
    status: Status
    mode: Mode
    samples: Mapping[str, float] = field(default_factory=dict)
    extra: Mapping[str, object] = field(default_factory=dict)
    """What explains the samples: residencies, resource usage, counters' hash."""
    reason: str = ""
    log_tail: str = ""
    seconds: float = 0.0
    """Wall time on the host."""
    cached: bool = False
    first: Lost | None = None
    """Of the guest before the one that this is of, under the same seed and with the same job."""
