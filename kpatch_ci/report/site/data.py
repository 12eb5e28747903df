# SPDX-License-Identifier: GPL-2.0-or-later
"""All that the site shows, as plain data. Times are UTC, ISO 8601; changes are percent, positive where it got better."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from kpatch_ci.model.nightly import Night, NightRun


class Kind(StrEnum):
    """What a piece of news is; its value is its class on the page and the word that it begins with."""

    NOT_DONE = "not done"
    FAILED = "failed"
    REGRESSED = "regressed"
    IMPROVED = "improved"
    RECOVERED = "recovered"
    PASSED = "passed"
    VERDICT = "verdict"
    FIRST = "first night"


BAD = (Kind.NOT_DONE, Kind.FAILED, Kind.REGRESSED)
GOOD = (Kind.IMPROVED, Kind.RECOVERED, Kind.PASSED)


@dataclass(frozen=True, slots=True)
class Key:
    """A row of the index."""

    item: str
    series: str
    arch: str


@dataclass(frozen=True, slots=True)
class Point:
    """One night of one primary figure. Levels are means over the seeds, in the metric's unit."""

    run: str
    change: float | None
    low: float | None
    high: float | None
    verdict: str
    baseline: float | None
    patched: float | None


@dataclass(frozen=True, slots=True)
class Trend:
    """A workload's primary figure over nights, oldest first."""

    workload: str
    metric: str
    unit: str
    better: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """A series on an architecture in one run: how it ended."""

    key: Key
    status: str
    reason: str
    applied: str
    verdicts: Mapping[str, tuple[str, float | None]] = field(default_factory=dict)
    """Workload -> verdict and change of its primary figure."""


@dataclass(frozen=True, slots=True)
class Event:
    """A change point of a workload's primary figure: an alert."""

    item: str
    series: str
    """``baseline`` where it is the tree's own kernel."""
    arch: str
    workload: str
    case: str
    metric: str
    unit: str
    arm: str
    run: str
    before_run: str
    before: float
    after: float
    change: float | None
    better: bool
    causes: str
    """What changed with it, in words."""
    range: str
    """The commits, or the releases, that it falls in; empty where the kernel is the same."""
    git_range: str
    """For ``git log``; empty where the tree is no git tree of the user's."""
    standing: str
    closed_by: str
    reason: str
    shows_in: tuple[str, ...] = ()
    """Cases and counters that surely moved with it, the largest first: ``groups=8 time -12.57 %``."""
    told: str = ""
    """The run with which it was first certain, and so is news; empty: ``run``."""
    closed_told: str = ""
    """The same of its end; empty: ``closed_by``."""

    @property
    def words(self) -> str:
        """``wakeup-gran (patched), arm64: hackbench time``."""
        case = "" if self.case == "all" else f" {self.case}"
        arm = self.series if self.series == self.arm else f"{self.series} ({self.arm})"
        return f"{arm}, {self.arch}: {self.workload}{case} {self.metric}"


@dataclass(frozen=True, slots=True)
class Run:
    """A run with its parts, and what is not as in the run of the same item before it."""

    run: NightRun
    parts: tuple[Part, ...]
    before: str = ""
    differences: tuple[tuple[str, str, str], ...] = ()
    """Key of the fingerprint, before, now."""
    fingerprint: tuple[tuple[str, str], ...] = ()
    reach: str = ""
    """What a change since that run would have to be to be told, in words; empty where no figure differs."""


@dataclass(frozen=True, slots=True)
class News:
    """Something that happened tonight. ``series`` and ``run`` say which pages tell more; either may be empty."""

    kind: Kind
    item: str
    words: str
    detail: str = ""
    series: str = ""
    run: str = ""


@dataclass(frozen=True, slots=True)
class Site:
    """Everything. ``runs``: oldest first; ``nights``: from the log of this machine, which may know less than the history."""

    made: str
    tonight: Night | None
    news: tuple[News, ...]
    runs: tuple[Run, ...]
    trends: Mapping[Key, tuple[Trend, ...]]
    events: tuple[Event, ...]
    nights: tuple[Night, ...] = ()
    url: str = ""
    items: tuple[str, ...] = ()
    """Those of the pipeline file now: others are of the past."""
    older_news: Mapping[str, tuple[News, ...]] = field(default_factory=dict)
    """Night -> what was news in it, for the feed."""
