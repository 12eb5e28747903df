# SPDX-License-Identifier: GPL-2.0-or-later
"""One revision of a series out of all that came, each of its patches once, what is missing named."""

from __future__ import annotations

from collections.abc import Sequence

from kpatch_ci.model.errors import UserError
from kpatch_ci.series.draft import Account, Draft

Rank = tuple[int, int, bool]


def choose(family: Sequence[Draft], revision: int | None, account: Account) -> list[Draft]:
    """The newest posting of a family, or the newest of ``revision``; its patches in the order of their numbers.

    Raises UserError where two different patches claim one number.
    """
    ranks = sorted({draft.subject.rank for draft in family})
    fitting = [rank for rank in ranks if revision is None or rank[0] == revision]
    if not fitting:
        return []
    rank = fitting[-1]
    chosen = [draft for draft in family if draft.subject.rank == rank]
    chosen = _numbered_alone(chosen, account)
    chosen += _from_before(chosen, family, [older for older in ranks if older < rank], account)
    chosen = _once_each(chosen, account)
    if all(draft.subject.number is not None and not draft.letter.source.ordered for draft in chosen):
        chosen = sorted(chosen, key=lambda draft: draft.subject.number or 0)
        _name_missing(chosen, account)
    _name_others(family, chosen, rank, revision, account)
    return chosen


def name(rank: Rank) -> str:
    """``v2``, ``v2.1``, ``v2 RESEND``."""
    revision, minor, again = rank
    return f"v{revision}" + (f".{minor}" if minor else "") + (" RESEND" if again else "")


def _numbered_alone(drafts: list[Draft], account: Account) -> list[Draft]:
    """Where some patches of a thread are numbered, one without a number is somebody's proposal, not part of the series."""
    numbered = [draft for draft in drafts if draft.subject.number is not None]
    if not numbered or len(numbered) == len(drafts):
        return drafts
    for draft in drafts:
        if draft.subject.number is None:
            account.left_out.append(draft.left_out("has no number, in the thread of a series whose patches have"))
    return numbered


def _from_before(
    chosen: Sequence[Draft], family: Sequence[Draft], older: Sequence[Rank], account: Account
) -> list[Draft]:
    """Patches of earlier revisions where the newest is a few patches only, each sent in answer to the one it replaces."""
    total = max((draft.subject.total or 0 for draft in chosen), default=0)
    have = {draft.subject.number for draft in chosen}
    missing = [number for number in range(1, min(total, 1000) + 1) if number not in have]
    if not missing or None in have or not older:
        return []
    earlier = {
        draft.letter.message_id: draft for draft in family if draft.subject.rank in older and draft.letter.message_id
    }
    for draft in chosen:
        replaced = earlier.get(draft.letter.answers[0]) if draft.letter.answers else None
        if replaced is None or replaced.subject.number != draft.subject.number:
            return []
    taken = []
    for number in missing:
        found = [
            d for d in family if d.subject.rank in older and d.subject.number == number and d.subject.total == total
        ]
        if found:
            taken.append(max(found, key=lambda draft: draft.subject.rank))
    if taken:
        new = ", ".join(f"{draft.subject.number}/{total}" for draft in chosen)
        old = ", ".join(f"{draft.subject.number}/{total} of {name(draft.subject.rank)}" for draft in taken)
        account.notes.append(f"{new} sent anew, each in answer to the patch it replaces; taken with {old}")
    return taken


def _once_each(drafts: Sequence[Draft], account: Account) -> list[Draft]:
    """Each patch once. Patches without numbers may share a subject; those with one number must be the same."""
    known: dict[object, list[Draft]] = {}
    chosen = []
    for draft in drafts:
        before = known.setdefault(draft.subject.number or draft.subject.key, [])
        same = next((first for first in before if _same(first, draft)), None)
        if same is not None:
            account.left_out.append(draft.left_out(f"the same patch again as in {same.source}"))
            continue
        if before and (draft.subject.number is not None or _answers(draft, before[0])):
            raise _clash(before[0], draft)
        if before:
            account.notes.append(f"two different patches are called `{draft.subject.text}`: both are taken")
        before.append(draft)
        chosen.append(draft)
    return chosen


def _same(first: Draft, again: Draft) -> bool:
    """The same diff, or two copies of one mail of which the second was damaged on its way."""
    if first.patch is None:
        return False
    if again.patch is None:
        return bool(first.letter.message_id) and first.letter.message_id == again.letter.message_id
    return first.patch.digest == again.patch.digest


def _answers(draft: Draft, first: Draft) -> bool:
    return bool(first.letter.message_id) and first.letter.message_id in draft.letter.answers


def _clash(first: Draft, draft: Draft) -> UserError:
    number = f"numbered {draft.subject.number}" if draft.subject.number else f"called `{draft.subject.text}`"
    return UserError(
        f"two different patches are {number}: `{first.subject.text}` ({first.source}) and `{draft.subject.text}`",
        where=draft.where,
        expected="one revision of one series",
    )


def _name_missing(chosen: Sequence[Draft], account: Account) -> None:
    totals = {draft.subject.total for draft in chosen}
    total = max(draft.subject.total or 0 for draft in chosen)
    have = {draft.subject.number for draft in chosen}
    missing = [f"{number}/{total}" for number in range(1, min(total, 1000) + 1) if number not in have]
    if missing:
        shown = ", ".join(missing[:20]) + (f" and {len(missing) - 20} more" if len(missing) > 20 else "")
        account.notes.append(f"{shown} {'is' if len(missing) == 1 else 'are'} missing: tested without")
    if len(totals) > 1:
        said = ", ".join(str(draft.subject.prefix) for draft in chosen)
        account.notes.append(f"the patches do not agree on how many they are: {said}")


def _name_others(
    family: Sequence[Draft], chosen: Sequence[Draft], rank: Rank, revision: int | None, account: Account
) -> None:
    others = sorted({draft.subject.rank for draft in family} - {rank})
    if not others:
        return
    why = "was asked for" if revision is not None else "is the newest"
    said = ", ".join(name(other) for other in others)
    account.notes.append(f"several revisions in it: {name(rank)} {why} and is taken, {said} left out")
    taken = {id(draft) for draft in chosen}
    for draft in family:
        if draft.subject.rank != rank and id(draft) not in taken:
            account.left_out.append(draft.left_out(f"{name(draft.subject.rank)}, another revision"))
