# SPDX-License-Identifier: GPL-2.0-or-later
"""The claims of a series: read from its mails' own words, and set beside workloads of ours as series.yaml says, or by guessing.

docs/claims.md has what is read, and what is not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kpatch_ci.model.claim import Claim, ClaimKind
from kpatch_ci.model.series import Intake, Patch
from kpatch_ci.series.claimguess import guess
from kpatch_ci.series.claimprose import prose
from kpatch_ci.series.claimtables import judged, tables

COVER = "cover letter"
NO_COUNTERPART = "no workload here stands for it"
_REGEX = re.compile(r"/(.+)/")


@dataclass(frozen=True, slots=True)
class Beside:
    """One entry of ``claims:``: which claims of the text it is about, and which figure of ours stands beside them."""

    match: str
    """Their first words, or a regular expression in slashes."""
    workload: str
    metric: str
    case: str = ""
    """``{x}`` stands for a row's label."""
    arch: str = ""
    table: int | None = None
    """Only rows of that table of the text, from 1."""
    columns: tuple[int, int] | None = None
    """Baseline and patched among a row's columns, from 1; the first and the last unless given."""

    def check(self) -> None:
        """ValueError where ``match`` is no regular expression though it looks like one."""
        if pattern := _REGEX.fullmatch(self.match):
            try:
                re.compile(pattern[1])
            except re.error as error:
                raise ValueError(f"no regular expression: {error}") from error


@dataclass(frozen=True, slots=True)
class Read:
    """A claim with what a guess may go by. ``table``: which of its text it is a row of, from 1; 0 for a sentence."""

    claim: Claim
    table: int
    near: str
    """The words above a table, or the lines above a sentence."""
    text: str
    """All of the mail's words."""


def read_text(text: str, source: str = "") -> tuple[Read, ...]:
    """Every claim of one text, in the order of its lines. Never raises: what it cannot read is no claim."""
    lines = text.split("\n")
    found = tables(lines, source)
    read = [Read(row, number, table.title, text) for number, table in enumerate(found, 1) for row in table.rows]
    told = prose(lines, [table.lines for table in found], source)
    read += [Read(claim, 0, f"{sentence.before}\n{sentence.text}", text) for claim, sentence in told]
    return tuple(sorted(read, key=lambda one: one.claim.line))


def read_mails(patches: Sequence[Patch], account: Intake | None = None) -> tuple[Read, ...]:
    """Every claim of a series' cover letter and patches, in their order."""
    cover = read_text(account.cover, COVER) if account else ()
    return (*cover, *(one for patch in patches for one in read_text(patch.message, patch.source)))


def guessed(read: Sequence[Read]) -> tuple[Claim, ...]:
    """The claims of a series that nobody wrote a mapping for: each says what its workload was guessed from."""
    return tuple(_settled(guess(one.claim, one.near, one.text)) for one in read)


def placed(read: Sequence[Read], entries: Sequence[Beside]) -> tuple[tuple[Claim, ...], tuple[Beside, ...]]:
    """The claims with the figures of ours that ``entries`` name, the first that fits; and the entries that fit none."""
    claims: list[Claim] = []
    used: set[Beside] = set()
    for one in read:
        fitting = [entry for entry in entries if fits(entry, one)]
        used.update(fitting)
        done = [
            _beside(one.claim, entry) for entry in (fitting if one.claim.kind is ClaimKind.SENTENCE else fitting[:1])
        ]
        claims += done or [_settled(one.claim)]
    return tuple(claims), tuple(entry for entry in entries if entry not in used)


def fits(entry: Beside, one: Read) -> bool:
    """Whether an entry is about a claim."""
    if entry.table is not None and entry.table != one.table:
        return False
    words = " ".join(one.claim.text.split())
    pattern = _REGEX.fullmatch(entry.match)
    if pattern:
        return re.search(pattern[1], words) is not None
    start = " ".join(entry.match.split())
    return words == start or words.startswith(f"{start} ")


def _beside(claim: Claim, entry: Beside) -> Claim:
    """The claim with what an entry says; as it is where nothing of ours can be compared with it, whatever the entry says."""
    if claim.unmeasured:
        return claim
    if entry.columns and claim.kind is not ClaimKind.SENTENCE:
        first, last = (number - 1 for number in entry.columns)
        if max(first, last) < len(claim.figures):
            claim = judged(claim, (first, last))
    case = entry.case.replace("{x}", claim.label)
    return replace(
        claim, workload=entry.workload, metric=entry.metric, case=case, arch=entry.arch, unmeasured="", guessed=""
    )


def _settled(claim: Claim) -> Claim:
    return claim if claim.workload or claim.unmeasured else replace(claim, unmeasured=NO_COUNTERPART)
