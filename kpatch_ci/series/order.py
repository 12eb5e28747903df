# SPDX-License-Identifier: GPL-2.0-or-later
"""Order and completeness: which of the mails are the series, and in what order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kpatch_ci.model.errors import UserError
from kpatch_ci.model.series import Patch
from kpatch_ci.series.subject import Subject


@dataclass(frozen=True, slots=True)
class Draft:
    """A mail that may be a patch (``patch`` is None where it holds no diff)."""

    subject: Subject
    source: str
    where: str
    """``file:line`` of its body."""
    patch: Patch | None


def arrange(drafts: Sequence[Draft]) -> tuple[Patch, ...]:
    """The patches in the order to apply them: by their numbering where every one has a number, else as they came.

    Cover letters, replies, older revisions and repeated mails are left out; these and missing numbers are named in the
    first patch's notes. Raises UserError where no patch is left or two different ones claim one number.
    """
    notes: list[str] = []
    chosen = _only_patches(drafts, notes)
    if not chosen:
        raise UserError(
            "no diff in it" if drafts else "no mail in it",
            where=drafts[0].where if drafts else None,
            expected="a patch: lines `diff --git a/... b/...`, or `--- a/...` and `+++ b/...`, and hunks",
        )
    chosen = _latest_revision(chosen, notes)
    chosen = _without_repeats(chosen, notes)
    if all(draft.subject.number is not None for draft in chosen):
        chosen = sorted(chosen, key=lambda draft: draft.subject.number or 0)
        _note_missing(chosen, notes)
    patches = [draft.patch for draft in chosen if draft.patch is not None]
    return (replace(patches[0], notes=(*patches[0].notes, *notes)), *patches[1:])


def _only_patches(drafts: Sequence[Draft], notes: list[str]) -> list[Draft]:
    chosen = []
    for draft in drafts:
        subject = draft.subject
        if subject.number == 0:
            notes.append(f"cover letter, not applied: {subject.text} ({draft.source})")
        elif subject.reply and len(drafts) > 1:
            notes.append(f"reply, not applied: {subject.text} ({draft.source})")
        elif draft.patch is not None:
            chosen.append(draft)
        elif subject.number is not None or len(drafts) == 1:
            raise UserError(
                f"no diff in `{' '.join((subject.prefix, subject.text)).strip()}`",
                where=draft.where,
                expected="a patch: lines `diff --git a/... b/...`, or `--- a/...` and `+++ b/...`, and hunks",
            )
        else:
            notes.append(f"mail without a diff, not applied: {subject.text} ({draft.source})")
    return chosen


def _latest_revision(drafts: list[Draft], notes: list[str]) -> list[Draft]:
    numbered = [draft for draft in drafts if draft.subject.number is not None]
    revisions = {draft.subject.revision for draft in numbered}
    if len(revisions) < 2:
        return drafts
    latest = max(revisions)
    older = ", ".join(f"v{revision}" for revision in sorted(revisions - {latest}))
    notes.append(f"several revisions in it: v{latest} is taken, {older} left out")
    return [draft for draft in drafts if draft.subject.number is None or draft.subject.revision == latest]


def _without_repeats(drafts: list[Draft], notes: list[str]) -> list[Draft]:
    by_number: dict[int, Draft] = {}
    chosen = []
    for draft in drafts:
        number = draft.subject.number
        first = by_number.get(number) if number is not None else None
        if first is None:
            chosen.append(draft)
            if number is not None:
                by_number[number] = draft
        elif first.patch and draft.patch and first.patch.digest == draft.patch.digest:
            notes.append(f"the same patch again, left out: {draft.source}")
        else:
            raise UserError(
                f"two different patches are numbered {number}: `{first.subject.text}` ({first.source}) and `{draft.subject.text}`",
                where=draft.where,
                expected="one revision of one series",
            )
    return chosen


def _note_missing(drafts: Sequence[Draft], notes: list[str]) -> None:
    total = max(draft.subject.total or 0 for draft in drafts)
    have = {draft.subject.number for draft in drafts}
    missing = [str(number) for number in range(1, min(total, 1000) + 1) if number not in have]
    if missing:
        notes.append(f"of {total} patches {', '.join(missing)} not given: tested without")
