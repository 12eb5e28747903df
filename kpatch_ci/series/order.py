# SPDX-License-Identifier: GPL-2.0-or-later
"""Order and completeness: which of the mails are the series, and in what order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kpatch_ci.model.errors import UserError, UserErrors
from kpatch_ci.model.series import Intake, LeftOut, Patch
from kpatch_ci.series.chain import by_blobs
from kpatch_ci.series.draft import DIFF_EXPECTED, Account, Draft
from kpatch_ci.series.families import families
from kpatch_ci.series.letter import NoDiffError
from kpatch_ci.series.prerequisites import in_order
from kpatch_ci.series.revisions import choose, name
from kpatch_ci.series.subject import Subject
from kpatch_ci.series.trailers import collect_trailers


def arrange(
    drafts: Sequence[Draft], revision: int | None = None, left_out: Sequence[LeftOut] = ()
) -> tuple[tuple[Patch, ...], Intake]:
    """The patches in the order to apply them, and an account of all that was read.

    Of each series the newest revision is taken, or ``revision``, by its numbering; a quilt series, and patches without
    numbers, as they came. Cover letters and replies are never applied. Raises UserErrors for every damaged patch among
    those to take, UserError where no patch is left, two different ones claim one number, or there is no such revision.
    """
    account = Account(left_out=list(left_out))
    drafts = [_as_named(draft) if draft.letter.source.ordered else draft for draft in drafts]
    covers, replies, patches = _sorted_out(drafts, account)
    groups = _groups(patches, covers, replies)
    chosen_of = [choose(group, _wanted(group, revision), account) for group in groups]
    if revision is not None and not any(d.subject.revision == revision for group in chosen_of for d in group):
        raise _no_such(revision, patches)
    chosen_of = _without_copies([group for group in chosen_of if group], account)
    chosen_of = in_order(chosen_of, covers, account)
    chosen = by_blobs(_joined(chosen_of, drafts, account), account)
    problems = [draft.problem for draft in chosen if draft.problem is not None]
    if problems:
        raise problems[0] if len(problems) == 1 else UserErrors(problems)
    cover = _cover(chosen, covers, account)
    trailers = collect_trailers(chosen, [cover] if cover else [], replies, account)
    made = [_finished(draft, cover, trailers.get(i, ())) for i, draft in enumerate(chosen) if draft.patch is not None]
    return tuple(made), _account(chosen, made, cover, account)


def _sorted_out(drafts: Sequence[Draft], account: Account) -> tuple[list[Draft], list[Draft], list[Draft]]:
    """Cover letters, replies, patches."""
    covers = [draft for draft in drafts if draft.subject.number == 0 and not draft.reply]
    replies = [draft for draft in drafts if draft.reply]
    patches = []
    for draft in drafts:
        if draft.reply or draft.subject.number == 0:
            continue
        if draft.patch is None and (draft.problem is None or isinstance(draft.problem, NoDiffError)):
            if draft.subject.number is None and len(drafts) > 1:
                account.left_out.append(draft.left_out("holds no diff"))
                continue
            draft = replace(draft, problem=draft.problem or _no_diff(draft))  # noqa: PLW2901 (the same draft, with its error)
        patches.append(draft)
    patches = _without_asides(patches, account)
    if not patches:
        patches, replies = _offered(drafts, covers, replies, account)
    account.left_out += [reply.left_out("a reply, never applied") for reply in replies]
    return covers, replies, patches


def _without_asides(patches: list[Draft], account: Account) -> list[Draft]:
    """In a mailbox with numbered patches, a mail whose subject does not even say that it is one is talk with a diff in it."""
    boxes = {draft.letter.source.origin for draft in patches if draft.subject.number is not None}
    kept = []
    for draft in patches:
        source = draft.letter.source
        if source.position and source.origin in boxes and not draft.subject.prefix and not source.ordered:
            account.left_out.append(draft.left_out("its subject names no patch, in a mailbox of numbered ones"))
        else:
            kept.append(draft)
    return kept


def _offered(
    drafts: Sequence[Draft], covers: list[Draft], replies: list[Draft], account: Account
) -> tuple[list[Draft], list[Draft]]:
    """Where there are only replies, a single one with a diff is what was meant."""
    offers = [reply for reply in replies if reply.patch is not None or len(drafts) == 1]
    if len(offers) == 1:
        account.notes.append(f"the only diff is in a reply: `{offers[0].subject}` is taken for the patch")
        offer = offers[0] if offers[0].patch or offers[0].problem else replace(offers[0], problem=_no_diff(offers[0]))
        return [offer], [reply for reply in replies if reply is not offers[0]]
    if offers:
        raise UserError(
            f"no patch, but {len(offers)} replies with diffs: {', '.join(offer.source for offer in offers)}",
            where=offers[0].where,
            expected="the one that is meant, in a file of its own",
        )
    if covers:
        raise NoDiffError(
            f"only a cover letter: `{covers[0].subject}`",
            where=covers[0].where,
            expected="the patches that it announces",
        )
    where = drafts[0].where if drafts else None
    raise NoDiffError("no diff in it", where=where, expected=DIFF_EXPECTED)


def _no_diff(draft: Draft) -> UserError:
    return NoDiffError(f"no diff in `{draft.subject}`", where=draft.where, expected=DIFF_EXPECTED)


def _as_named(draft: Draft) -> Draft:
    """A patch of a quilt series: its line there is all that counts. What its subject says is of the day when it was mailed."""
    return replace(draft, subject=Subject(draft.subject.text), reply=False, prerequisites=())


def _groups(patches: Sequence[Draft], covers: Sequence[Draft], replies: Sequence[Draft]) -> list[list[Draft]]:
    """Families, in the order in which they came; each patch of a quilt series is one of its own."""
    named = [[draft] for draft in patches if draft.letter.source.ordered]
    others = [draft for draft in patches if not draft.letter.source.ordered]
    place = {id(draft): index for index, draft in enumerate(patches)}
    groups = [*named, *families(others, covers, replies)]
    return sorted(groups, key=lambda group: min(place[id(draft)] for draft in group))


def _wanted(group: Sequence[Draft], revision: int | None) -> int | None:
    """``--revision`` is about families that have it; a patch given beside the series has revisions of its own."""
    return revision if any(draft.subject.revision == revision for draft in group) else None


def _no_such(revision: int, patches: Sequence[Draft]) -> UserError:
    known = ", ".join(name(rank) for rank in sorted({draft.subject.rank for draft in patches}))
    return UserError(f"no patch of revision {revision}", where=f"--revision {revision}", expected=f"one of {known}")


def _without_copies(groups: list[list[Draft]], account: Account) -> list[list[Draft]]:
    """A patch without a number that came twice is left out the second time, whatever its file is called."""
    seen: dict[str, Draft] = {}
    kept = []
    for group in groups:
        draft = group[0]
        alone = len(group) == 1 and draft.subject.number is None and draft.patch and not draft.letter.source.ordered
        if alone and draft.patch and draft.patch.digest in seen:
            account.left_out.append(draft.left_out(f"the same patch again as in {seen[draft.patch.digest].source}"))
            continue
        seen |= {d.patch.digest: d for d in group if d.patch}
        kept.append(group)
    return kept


def _joined(groups: list[list[Draft]], drafts: Sequence[Draft], account: Account) -> list[Draft]:
    """Several series one after another; as they came where that is the order of their numbers anyhow."""
    place = {id(draft): index for index, draft in enumerate(drafts)}
    chosen = [draft for group in groups for draft in group]
    came = sorted(chosen, key=lambda draft: place.get(id(draft), len(place)))
    series = [group for group in groups if group[0].subject.number is not None]
    if len(series) > 1:
        names = "; then ".join(f"`{group[0].subject}` and {len(group) - 1} more" for group in series)
        account.notes.append(f"{len(series)} series in it, applied one after another: {names}")
    elif series and all(_ascending(group, place) for group in groups):
        return came
    return chosen


def _ascending(group: Sequence[Draft], place: dict[int, int]) -> bool:
    places = [place.get(id(draft), len(place)) for draft in group]
    return places == sorted(places)


def _cover(chosen: Sequence[Draft], covers: Sequence[Draft], account: Account) -> Draft | None:
    """The cover letter of what was taken: of its revision and, where there are several, of its total."""
    ranks = {(draft.subject.rank, draft.subject.total) for draft in chosen}
    fitting = [cover for cover in covers if (cover.subject.rank, cover.subject.total) in ranks]
    fitting = fitting or [cover for cover in covers if cover.subject.rank in {rank for rank, _ in ranks}]
    for cover in covers:
        ours = bool(fitting) and cover is fitting[0]
        account.left_out.append(
            cover.left_out("the cover letter, never applied" if ours else "a cover letter, never applied")
        )
    return fitting[0] if fitting else None


def _finished(draft: Draft, cover: Draft | None, trailers: tuple[str, ...]) -> Patch:
    patch = draft.patch
    if patch is None:
        raise ValueError("a draft without a patch was chosen")
    first = draft.subject.number in (None, 1)
    return replace(
        patch,
        base_commit=patch.base_commit or (cover.base_commit if cover and first else ""),
        prerequisites=patch.prerequisites or (cover.prerequisites if cover and first else ()),
        trailers=trailers,
    )


def _account(chosen: Sequence[Draft], made: Sequence[Patch], cover: Draft | None, account: Account) -> Intake:
    numbered = {draft.subject.revision for draft in chosen if draft.subject.prefix}
    bases = [patch.base_commit for patch in made if patch.base_commit] or [cover.base_commit if cover else ""]
    needed = tuple(dict.fromkeys(p for patch in made for p in patch.prerequisites)) or (
        cover.prerequisites if cover else ()
    )
    return Intake(
        taken=tuple(draft.source for draft in chosen),
        left_out=tuple(dict.fromkeys(account.left_out)),
        notes=tuple(account.notes),
        revision=max(numbered) if numbered else None,
        cover_subject=cover.subject.text if cover else "",
        cover=cover.text if cover else "",
        base_commit=bases[0],
        prerequisites=needed,
    )
