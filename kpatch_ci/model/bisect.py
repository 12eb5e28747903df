# SPDX-License-Identifier: GPL-2.0-or-later
"""Bisections: what is searched for, what each commit was found to be, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

SHORT = 12
"""Hex digits of a commit that people are shown, as the kernel's Fixes: lines have them."""


class Class(StrEnum):
    """What a commit is to git bisect."""

    GOOD = "good"
    BAD = "bad"
    SKIP = "skip"


class How(StrEnum):
    """How a commit got its class."""

    MEASURED = "measured"
    SAME_KERNEL = "same kernel"
    """Image and modules are, byte for byte, those of a commit that has its class already."""
    TRIED = "tried"
    """Built, booted or run, and looked at for the failure that is searched for."""
    NOT_BUILT = "does not build"
    NOT_BOOTED = "does not boot"
    NOT_RUN = "workload fails"
    UNDECIDED = "undecided"
    TOLD = "told"
    """By the log that was given (--replay)."""


class Find(StrEnum):
    """What the first bad commit changed."""

    METRIC = "metric"
    BUILD = "build"
    BOOT = "boot"
    CRASH = "crash"
    WORKLOAD = "workload"
    SYMBOL = "symbol"
    LOG = "log"


class Ending(StrEnum):
    """How a bisection ended."""

    FOUND = "found"
    SKIPPED = "skipped"
    """The first bad commit is one of several: the others of them could not be classified."""
    NO_DIFFERENCE = "no difference"
    """Nothing tells the two ends apart."""
    UNUSABLE = "unusable"
    """An end cannot be judged: it does not build, boot or run, or is not what it was said to be."""
    MERGE_BASE_BAD = "merge base bad"
    """Good is no ancestor of bad, and what both come from is bad already."""
    CONTRADICTED = "contradicted"
    """What was found does not hold when it is compared with the commit before it."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit. ``date`` is the author's, YYYY-MM-DD."""

    hash: str
    tree_id: str
    parents: tuple[str, ...]
    author: str
    email: str
    date: str
    subject: str

    @property
    def short(self) -> str:
        """Enough of the hash for a person."""
        return self.hash[:SHORT]

    @property
    def fixes(self) -> str:
        """As a ``Fixes:`` line of a kernel patch."""
        return f'Fixes: {self.short} ("{self.subject}")'


@dataclass(frozen=True, slots=True)
class Change:
    """One kernel against another, paired by seed. Percent; positive is better, whatever the metric's direction."""

    change_percent: float
    ci_percent: tuple[float, float] | None
    boots: int
    """Boots of each, with one run each: the independent units."""
    confidence: float
    method: str
    before: tuple[float, ...] = ()
    """Samples of the first kernel, in the order of the boot seeds."""
    after: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Tally:
    """How often what is searched for was seen. ``first``: the words of the first time."""

    seen: int
    of: int
    first: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """A commit and its class."""

    commit: Commit
    cls: Class
    how: How
    why: str
    """One sentence."""
    kernel: str = ""
    """Digest of image and modules; empty where it does not build."""
    like: str = ""
    """Hash of the commit that has the same kernel."""
    change: Change | None = None
    """Against the good end."""
    tally: Tally | None = None
    objects: int = 0
    build_seconds: float = 0.0
    seconds: float = 0.0
    """Wall time of the whole step."""


@dataclass(frozen=True, slots=True)
class Ends:
    """What the two ends are. Not ``usable``: ``why`` says why there is nothing to bisect, ``ending`` in which way."""

    usable: bool
    why: str
    good_kernel: str = ""
    bad_kernel: str = ""
    ending: Ending = Ending.FOUND
    change: Change | None = None
    """Good against bad."""
    half_percent: float | None = None
    """A step whose interval lies on the bad's side of this is bad; on the other side it is good."""
    tally: Tally | None = None
    boots: int = 1
    """Boots that a step begins with."""
    most: int = 1
    """Boots after which an undecided step is skipped."""
    spread_percent: float | None = None
    """Standard deviation of the paired effects over boots."""
    mde_percent: float | None = None
    """Smallest change that the comparison of the ends would have found in four of five."""


@dataclass(frozen=True, slots=True)
class Proof:
    """The first bad commit against one of its parents."""

    parent: Commit
    cls: Class
    """The parent's own class, judged as a step is."""
    why: str
    change: Change | None = None
    """Parent against the commit."""
    share_percent: float | None = None
    """Of the whole difference between the ends."""
    tally: Tally | None = None


@dataclass(frozen=True, slots=True)
class Spent:
    """What this process did; what was reused is not in it. ``resumed``: steps that an earlier one had done."""

    seconds: float = 0.0
    builds: int = 0
    build_seconds: float = 0.0
    boots: int = 0
    replicates: int = 0
    resumed: int = 0


@dataclass(frozen=True, slots=True)
class Bisection:
    """A bisection, done. ``question`` says in words what was searched for."""

    ending: Ending
    why: str
    question: str
    find: Find
    arch: str
    machine: str
    tree: str
    good: Commit
    bad: Commit
    commits: int
    """Between the ends, the bad one among them."""
    ends: Ends | None
    steps: tuple[Step, ...]
    first_bad: Commit | None = None
    files: tuple[str, ...] = ()
    """That the first bad commit changes."""
    candidates: tuple[Commit, ...] = ()
    """Any of which may be the first bad one."""
    proofs: tuple[Proof, ...] = ()
    notes: tuple[str, ...] = ()
    log: str = ""
    """As `git bisect log` gives it, for `git bisect replay`."""
    patch: tuple[int, int] | None = None
    """Of a series: which patch it is, and of how many."""
    error: float | None = None
    """Bound on the probability that a measured step has the wrong class."""
    spent: Spent = Spent()
    command: str = ""
