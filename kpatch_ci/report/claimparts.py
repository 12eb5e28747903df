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
    value: Number
    unit: str = ""
    percent: str = ""
    star: bool = False
    kernel: str = ""


class ClaimDoc(Part):
    """What the patch's text says of a figure, and which comparison stands beside it (``case`` empty: the primary one).

    ``change_percent`` is positive where patched is better, and is what the figures ``baseline`` and ``patched`` give;
    ``stated_percent`` is the text's own, and ``note`` says where the two differ by more than rounding.
    """

    text: str
    change_percent: Number | None = None
    workload: str = ""
    metric: str = ""
    case: str = ""
    arch: str = ""
    kind: KindText = ClaimKind.WORDS
    statistic: str = ""
    label: str = ""
    figures: tuple[FigureDoc, ...] = ()
    """All of a row; ``baseline`` and ``patched`` are two of them."""
    baseline: FigureDoc | None = None
    patched: FigureDoc | None = None
    stated_percent: str = ""
    significant: bool | None = None
    better: str = ""
    says: str = ""
    source: str = ""
    line: int = 0
    note: str = ""
    unmeasured: str = ""
    guessed: str = ""

    @property
    def name(self) -> str:
        """``Amean 4``; empty for what is no row."""
        return f"{self.statistic} {self.label}".strip()


class MeasuredDoc(Part):
    """The comparison that stands beside a claim, in short."""

    workload: str
    metric: str
    case: str
    change_percent: Number | None = None
    ci_percent: tuple[Number, Number] | None = None
    p_adjusted: Number | None = None
    verdict: VerdictText


class JudgedClaimDoc(ClaimDoc):
    """A claim on one architecture: what was measured, whether it agrees, and why."""

    measured: MeasuredDoc | None = None
    agreement: AgreementText
    reason: str = ""
