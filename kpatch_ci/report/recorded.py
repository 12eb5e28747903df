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
    """How many were added up."""
    seconds: Number = 0.0
    """Running time of all CPUs together."""
    wait_seconds: Number = 0.0
    """For how long tasks waited for a CPU meanwhile."""
    cpus: dict[str, Number] = {}
    """CPU -> share (0..1) of the running time."""
    clusters: dict[str, Number] = {}
    """By the machine file's names; empty where it has one cluster."""

    def each(self, share: float | None) -> float:
        """Seconds that ``share`` (0..1) of the running time is in one replicate, on average."""
        return (share or 0.0) * self.seconds / self.replicates if self.replicates else 0.0


class PlacementTimesDoc(Part):
    """Which CPUs ran the tasks of one case."""

    workload: str
    """Name, with its suffix."""
    case: str
    """``key=value[,key=value]``."""
    baseline: RunningTimesDoc = RunningTimesDoc()
    """Of the baseline's replicates."""
    patched: RunningTimesDoc = RunningTimesDoc()
    """Of the patched arm's."""


class FrequencyLineDoc(Part):
    """One policy's frequency over one replicate. Times are ns since the workload started.

    ``khz``: frequency at the start (at ``known_from_ns``, where the module's ring lost what was before). ``changes``: time and
    the frequency in kHz from then on. Where the guest told of more than are kept here (``total``), they are what was in force at
    evenly spaced times.
    """

    span_ns: Count = 0
    """For how long the workload ran."""
    khz: Count = 0
    """At the start, or where it is known from."""
    changes: list[tuple[Count, Count]] = []
    """Time, and the frequency in kHz from then on."""
    total: Count = 0
    """Changes that the guest told of."""
    lost: Count = 0
    """Changes that the module's ring had no room for."""
    known_from_ns: Count = 0
    """0 where nothing was lost."""


class TimelineDoc(Part):
    """Frequency over time of one policy in one case, under the first seed that both arms passed."""

    workload: str
    """Name, with its suffix."""
    case: str
    """``key=value[,key=value]``."""
    seed: str
    """``boot.run``: the first under which both arms passed."""
    policy: str
    """``policy0``: its first CPU's number."""
    baseline: FrequencyLineDoc = FrequencyLineDoc()
    """Without the patch."""
    patched: FrequencyLineDoc = FrequencyLineDoc()
    """With it."""
