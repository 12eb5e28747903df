# SPDX-License-Identifier: GPL-2.0-or-later
"""Of result.json: what guests recorded while workloads ran. A result.json from before they did has none of it."""

from __future__ import annotations

from typing import Annotated, TypeGuard

from pydantic import BaseModel, Field

from kpatch_ci.report.parts import KEEP_UNKNOWN, Number

LARGEST = 2**63 - 1
"""Of a count, of ns, of kHz: what a guest can count to."""
Count = Annotated[int, Field(ge=0, le=LARGEST)]


class Part(BaseModel):
    """Base of every object here."""

    model_config = KEEP_UNKNOWN


def is_count(value: object) -> TypeGuard[int]:
    """Whether a guest's ``value`` can be one."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST


class RunningTimesDoc(Part):
    """Time that tasks ran on any CPU in all ``replicates`` of one arm together, and the shares (0..1) of it by CPU and by cluster.

    ``wait_seconds``: for how long tasks waited for a CPU meanwhile. It is time, not work: at half the frequency a task runs twice
    as long, so the other CPUs' shares rise where one gets faster.
    """

    replicates: Count = 0
    seconds: Number = 0.0
    wait_seconds: Number = 0.0
    cpus: dict[str, Number] = {}
    clusters: dict[str, Number] = {}
    """By the machine file's names; empty where it has one cluster."""

    def each(self, share: float | None) -> float:
        """Seconds that ``share`` (0..1) of the running time is in one replicate, on average."""
        return (share or 0.0) * self.seconds / self.replicates if self.replicates else 0.0


class PlacementTimesDoc(Part):
    """Which CPUs ran the tasks of one case."""

    workload: str
    case: str
    baseline: RunningTimesDoc = RunningTimesDoc()
    patched: RunningTimesDoc = RunningTimesDoc()


class FrequencyLineDoc(Part):
    """One policy's frequency over one replicate. Times are ns since the workload started.

    ``khz``: frequency at the start (at ``known_from_ns``, where the module's ring lost what was before). ``changes``: time and
    the frequency in kHz from then on. Where the guest told of more than are kept here (``total``), they are what was in force at
    evenly spaced times.
    """

    span_ns: Count = 0
    khz: Count = 0
    changes: list[tuple[Count, Count]] = []
    total: Count = 0
    lost: Count = 0
    known_from_ns: Count = 0


class TimelineDoc(Part):
    """Frequency over time of one policy in one case, under the first seed that both arms passed."""

    workload: str
    case: str
    seed: str
    policy: str
    baseline: FrequencyLineDoc = FrequencyLineDoc()
    patched: FrequencyLineDoc = FrequencyLineDoc()
