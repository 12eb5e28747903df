# SPDX-License-Identifier: GPL-2.0-or-later
"""What a patch's own text claims, and how that stands to what was measured."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kpatch_ci.model.comparison import Comparison


class ClaimKind(StrEnum):
    """How the text says it."""

    ROW = "row"
    """A row of a table as mmtests prints it, each figure with a percentage."""
    DURATION = "duration"
    """A row of figures of the whole benchmark run (User, System, Elapsed), without percentages."""
    SENTENCE = "sentence"
    WORDS = "words"
    """Words without a number, entered by hand (``claims:`` of series.yaml)."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One number as the text has it. ``percent`` stands beside it in a table; ``star``: marked there as significant."""

    text: str
    value: float
    unit: str = ""
    percent: str = ""
    star: bool = False
    kernel: str = ""
    """Heading of its column; empty where there is none, or it cannot be told from its neighbour's."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What a patch's own text says of a figure, and which of ours stands beside it."""

    text: str
    """As the mail has it."""
    change_percent: float | None = None
    """Positive where patched is better. The text's own percentage where its two figures can give it (or where there are
    none), else what they give; None where there is neither, or the text does not say which direction is better."""
    workload: str = ""
    """Empty: none of ours stands beside it, and ``unmeasured`` says why."""
    metric: str = ""
    case: str = ""
    """A case's label; empty: the primary figure."""
    arch: str = ""
    """Empty: on each architecture."""
    kind: ClaimKind = ClaimKind.WORDS
    statistic: str = ""
    """First words of a row: ``Amean``, ``Duration User``."""
    label: str = ""
    """What the row is for: groups, clients."""
    figures: tuple[Figure, ...] = ()
    """All of a row; the two of a sentence."""
    columns: tuple[int, int] = (0, -1)
    """Which of ``figures`` are baseline and patched."""
    stated_percent: str = ""
    """The text's own percentage of the change, sign and ``~`` as it has them."""
    significant: bool | None = None
    """Whether the mail marks it; None where it marks nothing in that table."""
    better: str = ""
    """``lower`` or ``higher``; empty where the text does not tell."""
    says: str = ""
    """Without a usable number: ``better``, ``worse``, ``no change``, ``changes``."""
    source: str = ""
    """The mail: a patch's source, or ``cover letter``."""
    line: int = 0
    """Line of its message, from 1."""
    note: str = ""
    """Where the mail's percentage is not what its figures give."""
    unmeasured: str = ""
    guessed: str = ""
    """What workload and case were guessed from; empty where series.yaml names them."""

    @property
    def name(self) -> str:
        """``Amean 4``; empty for what is no row."""
        return f"{self.statistic} {self.label}".strip()

    @property
    def baseline(self) -> Figure | None:
        """What it was before; None without two figures."""
        return self.figures[self.columns[0]] if len(self.figures) > 1 else None

    @property
    def patched(self) -> Figure | None:
        """What it became."""
        return self.figures[self.columns[1]] if len(self.figures) > 1 else None


class Agreement(StrEnum):
    """How a claim stands to what was measured (docs/claims.md)."""

    AGREES = "agrees"
    DISAGREES = "disagrees"
    UNDECIDED = "undecided"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """A claim on one architecture. ``measured``: the comparison that stands beside it, None where there is none."""

    claim: Claim
    agreement: Agreement
    reason: str
    """One sentence."""
    measured: Comparison | None = None
