# SPDX-License-Identifier: GPL-2.0-or-later
"""Of result.json: what a patch's text claims, and how that stands to what was measured (docs/claims.md)."""

from __future__ import annotations

from typing import Annotated

from pydantic import PlainSerializer

from kpatch_ci.model.claim import Agreement, ClaimKind
from kpatch_ci.report.parts import Number, Part, VerdictText

_Plain = PlainSerializer(str, return_type=str)
KindText = Annotated[ClaimKind, _Plain]
AgreementText = Annotated[Agreement, _Plain]


class FigureDoc(Part):
    """A number as the text has it. ``percent``: what stands beside it in a table; ``star``: marked there as significant."""

    text: str
    """As it stands there."""
    value: Number
    """The number."""
    unit: str = ""
    """As it stands there; empty where there is none."""
    percent: str = ""
    """What stands beside it in a table."""
    star: bool = False
    """Whether the table marks it as significant."""
    kernel: str = ""
    """Heading of its column; empty where that could not be told."""


class ClaimDoc(Part):
    """What the patch's text says of a figure, and which comparison stands beside it (``case`` empty: the primary one).

    ``change_percent`` is positive where patched is better, and is what the figures ``baseline`` and ``patched`` give;
    ``stated_percent`` is the text's own, and ``note`` says where the two differ by more than rounding.
    """

    text: str
    """The line or sentence of the mail."""
    change_percent: Number | None = None
    """Positive is better: what the figures give; null where no number is claimed or its direction is open."""
    workload: str = ""
    """Of ours that it is about; empty where none is."""
    metric: str = ""
    """Of ours that it is about."""
    case: str = ""
    """Of ours that it is about; empty: the primary figure."""
    arch: str = ""
    """Empty: every architecture."""
    kind: KindText = ClaimKind.WORDS
    """A row of a table, a sentence with numbers, or words."""
    statistic: str = ""
    """Of a row: ``Amean``, ``Hmean``, ``Stddev``, ..."""
    label: str = ""
    """Of a row: what stands behind the statistic, such as the number of groups."""
    figures: tuple[FigureDoc, ...] = ()
    """All of a row; ``baseline`` and ``patched`` are two of them."""
    baseline: FigureDoc | None = None
    """Without the patch."""
    patched: FigureDoc | None = None
    """With it."""
    stated_percent: str = ""
    """The text's own percentage."""
    significant: bool | None = None
    """Whether the text marks it as significant; null where it does not say."""
    better: str = ""
    """``lower`` or ``higher``; empty where that is open."""
    says: str = ""
    """Of words without a number: what they claim."""
    source: str = ""
    """The mail."""
    line: int = 0
    """Of its message, from 1."""
    note: str = ""
    """Where the text contradicts itself, or leaves something open."""
    unmeasured: str = ""
    """Why nothing of ours can stand beside it; empty where something can."""
    guessed: str = ""
    """What the workload was guessed from; empty where series.yaml names it."""

    @property
    def name(self) -> str:
        """``Amean 4``; empty for what is no row."""
        return f"{self.statistic} {self.label}".strip()


class MeasuredDoc(Part):
    """The comparison that stands beside a claim, in short."""

    workload: str
    """Name, with its suffix."""
    metric: str
    """Of the figure."""
    case: str
    """``key=value[,key=value]``; ``all`` for a primary figure."""
    change_percent: Number | None = None
    """Positive where patched is better."""
    ci_percent: tuple[Number, Number] | None = None
    """Both ends of the change's interval; null where there is none."""
    p_adjusted: Number | None = None
    """Adjusted for the number of comparisons of its family."""
    verdict: VerdictText
    """What the comparison says of the patch."""


class JudgedClaimDoc(ClaimDoc):
    """A claim on one architecture: what was measured, whether it agrees, and why."""

    measured: MeasuredDoc | None = None
    """Ours; null where nothing was measured."""
    agreement: AgreementText
    """``agrees``, ``disagrees``, ``undecided`` or ``not measured`` (docs/claims.md)."""
    reason: str = ""
    """Why, in words."""
