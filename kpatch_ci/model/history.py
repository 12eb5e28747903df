# SPDX-License-Identifier: GPL-2.0-or-later
"""What a history holds of one figure over many runs, and the changes that were found in it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


@dataclass(frozen=True, slots=True, order=True)
class Line:
    """One figure of one arm, as it is followed over runs of one tree line."""

    tree: str
    """Label of the tree as it was asked for (``debian:6.1``, ``~/linux@for-next``): what stays while its tip moves."""
    series: str
    """``baseline`` for the tree's own kernel, which all series share."""
    arch: str
    workload: str
    case: str
    metric: str
    arm: str
    mode: str
    profile: str = ""
    """Another profile has other cases, seeds and machines: it is another line."""
    unit: str = field(default="", compare=False)
    better: str = field(default="lower", compare=False)
    """``lower`` or ``higher``."""
    cases: tuple[str, ...] = ()
    """Of a primary figure: those that it is over, in order. Over others (``--budget`` leaves some out) it is another line."""

    @property
    def words(self) -> str:
        """For people."""
        case = "" if self.case == "all" else f" {self.case}"
        arm = self.series if self.arm == self.series else f"{self.series} ({self.arm})"
        return f"{arm} on {self.tree}, {self.arch}: {self.workload}{case} {self.metric}"


class Condition(StrEnum):
    """What a sample rests on, by the name that a person is told."""

    KERNEL = "kernel source"
    """The baseline's."""
    SERIES = "series"
    """The patches' own text."""
    PATCHED_TREE = "patched source"
    CONFIG = "kernel config"
    COMPILER = "compiler"
    IMAGE = "kernel image"
    QEMU = "QEMU"
    QEMU_ARGV = "QEMU's arguments"
    GUEST = "guest image"
    MACHINE = "machine"
    MACHINE_FILE = "machine file"
    WORKLOAD = "workload definition"
    TOOLS = "tool root"
    OURS = "kpatch-ci"
    HOST = "host"


@dataclass(frozen=True, slots=True)
class Night:
    """One run's part of a line. ``values``: seed -> sample. ``conditions``: what the sample rests on, by name."""

    run: str
    started: str
    values: Mapping[str, float]
    conditions: Mapping[str, str]
    """Condition -> digest, version or name; what is not known is not there."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Something that a figure rests on and that is not as it was the night before."""

    what: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Limit:
    """What a change must reach to be an alert: percent of the figure before, an amount in the metric's unit, or both."""

    name: str
    """The key that it stands under: ``time``, ``hackbench.time``, ``default``."""
    percent: float | None = None
    amount: float | None = None

    def crossed(self, before: float, after: float) -> bool:
        """Whether the change from ``before`` to ``after`` reaches it. From 0 every change reaches a percentage."""
        size = abs(after - before)
        enough = self.amount is None or size >= self.amount
        return size > 0 and enough and (self.percent is None or size >= abs(before) * self.percent / 100)

    @property
    def words(self) -> str:
        """``time: 2 %``."""
        parts = [
            f"{self.percent:g} %" if self.percent is not None else "",
            "" if self.amount is None else f"{self.amount:g}",
        ]
        return f"{self.name}: {' and '.join(filter(None, parts))}"


class Standing(StrEnum):
    """What became of a change."""

    OPEN = "open"
    RECOVERED = "recovered"
    """A regression whose figure is back."""
    IMPROVED = "improved"
    NOTED = "noted"
    """Real, and no alert."""


@dataclass(frozen=True, slots=True)
class Change:
    """A figure that is another from one night to the next. ``change_percent`` is positive when it got better."""

    line: Line
    run: str
    """The first night it appeared."""
    started: str
    before_run: str
    """The last night before it."""
    before: float
    after: float
    """Both in the metric's unit: means of the seeds that both nights share, or levels of the nights before and after."""
    change_percent: float | None
    """None where it was 0 before."""
    causes: tuple[Cause, ...]
    method: str
    p_value: float | None
    """Of the test alone; ``reason`` has what Holm's adjustment makes of it."""
    threshold: str
    """The one that it crossed or did not reach, in words."""
    alert: bool
    standing: Standing
    reason: str
    closed_by: str = ""
    """The night that had it back."""
    told: str = ""
    """Of an alert: the night with which it was first certain, empty where that is the one it appeared in. A level must last first."""
    closed_told: str = ""
    """The same of its end; empty where that was certain in ``closed_by``."""
    shows_in: tuple[Change, ...] = ()
    """Of an alert: cases and counters of its workload that surely moved with it, the largest first. None is an alert itself."""


@dataclass(frozen=True, slots=True)
class Reach:
    """What a night could have told against the one before it, had something changed."""

    run: str
    boots: int
    """The most that a figure has in both nights."""
    tests: int
    """Figures that are tested together."""
    needed: int
    """Boots with which the test can tell anything, with so many figures."""
    percent: Mapping[str, float]
    """Workload -> the change of its primary figure that would be told in four of five; empty where the boots are too few."""
    too_few: tuple[str, ...] = ()
    """Workloads of which some figure has too few boots for that, where others have enough."""

    @property
    def words(self) -> str:
        """For people."""
        boots = f"{self.boots} boot" + "s" * (self.boots > 1)
        figures = f"{self.tests} figures together" if self.tests > 1 else "one figure"
        if self.boots < self.needed:
            return f"{boots}: no test of {figures} can tell any change from noise; {self.needed} boots or more can"
        found = ", ".join(f"{name} from {round_up(size):g} %" for name, size in sorted(self.percent.items()))
        lacking = f"; too few boots for {', '.join(self.too_few)}" if self.too_few else ""
        return f"{boots}: a change would be told in four of five: {found}{lacking}"


def round_up(percent: float) -> float:
    """To a tenth of a percent: what is said to be enough is."""
    return math.ceil(10 * percent - 1e-9) / 10
