# SPDX-License-Identifier: GPL-2.0-or-later
"""What was read of a series' claims before anything was measured: for `check` and `try`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from kpatch_ci.model.claim import Claim
from kpatch_ci.report.claims import claimed_percent
from kpatch_ci.report.clean import one_line


def claim_lines(claims: Sequence[Claim], *, every: bool = False) -> Iterator[str]:
    """How many claims were read, and how many have a figure of ours beside them; with ``every`` each. Nothing where none was read."""
    if not claims:
        return
    kinds = Counter(claim.statistic or str(claim.kind) for claim in claims)
    beside = Counter(claim.workload for claim in claims if claim.workload)
    guessed = sum(bool(claim.guessed) for claim in claims)
    ours = (
        ", ".join(f"{count} beside {name}" for name, count in beside.items()) or "none has a figure of ours beside it"
    )
    words = f"claims: {len(claims)} read ({', '.join(f'{n} {kind}' for kind, n in kinds.items())}); {ours}"
    yield one_line(f"{words}{f' ({guessed} guessed)' if guessed else ''}{'' if every else '; -v lists them'}")
    for note in dict.fromkeys(claim.note for claim in claims if claim.note):
        yield one_line(f"  note: {note}")
    if every:
        yield from (f"  {one_line(_told(claim))}" for claim in claims)


def _told(claim: Claim) -> str:
    where = f"line {claim.line}: " if claim.line else ""
    name = f"{claim.name}: " if claim.name else f'"{claim.text}" '
    before, after = claim.baseline, claim.patched
    change = "" if claim.change_percent is None else f"{claimed_percent(claim.change_percent)} %"
    parts = (
        f"{before.text}{before.unit} to {after.text}{after.unit}" if before and after else "",
        f"{change}{'*' if claim.significant else ''}",
        claim.says,
    )
    ours = f"{claim.workload} {claim.metric} {claim.case or 'all'}"
    beside = f"beside {ours}" if claim.workload else f"not measured: {claim.unmeasured}"
    guessed = f" (guessed from {claim.guessed})" if claim.guessed else ""
    return f"{where}{name}{', '.join(filter(None, parts))}; {beside}{guessed}"
