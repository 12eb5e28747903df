# SPDX-License-Identifier: GPL-2.0-or-later
"""Trailers that replies give: ``Reviewed-by:`` and the like, collected for the patch that is answered."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kpatch_ci.series.draft import Account, Draft
from kpatch_ci.series.mail import split_address

_TRAILER = re.compile(
    r"^((?:Reviewed|Acked|Tested|Reported|Suggested|Requested|Debugged|Co-developed|Signed-off|Reported-and-tested|"
    r"Reviewed-and-tested|Acked-and-tested)-by):[ \t]*(\S.*<[^<>\s]+@[^<>\s]+>)(.*)$",
    re.IGNORECASE | re.MULTILINE,
)


def given(text: str) -> list[tuple[str, str]]:
    """Trailers in a mail's own words (quoted lines are somebody else's): each line, and the address in it."""
    found = []
    for name, person, rest in _TRAILER.findall(text):
        found.append((f"{name}: {person.strip()}{rest.rstrip()}", split_address(person)[1].lower()))
    return found


def collect_trailers(
    chosen: Sequence[Draft], covers: Sequence[Draft], replies: Sequence[Draft], account: Account
) -> dict[int, tuple[str, ...]]:
    """Index of a patch -> what replies to it, or to the cover letter, gave; in the order of the mails.

    A trailer that comes from another address than it names is not taken, and that is said; one that the patch has
    already is not repeated.
    """
    found: dict[int, list[str]] = {}
    ids = {draft.letter.message_id: [i] for i, draft in enumerate(chosen) if draft.letter.message_id}
    ids |= {cover.letter.message_id: list(range(len(chosen))) for cover in covers if cover.letter.message_id}
    parents = {reply.letter.message_id: reply for reply in replies if reply.letter.message_id}
    for reply in replies:
        trailers = given(reply.text)
        targets = _targets(reply, ids, parents, chosen, covers) if trailers else []
        for line, address in trailers:
            if not targets:
                account.notes.append(f"`{line}` answers none of the patches that are taken ({reply.source})")
            elif reply.letter.email and reply.letter.email.lower() != address:
                account.notes.append(f"`{line}` was sent by {reply.letter.email}: not taken ({reply.source})")
            else:
                for index in targets:
                    known = found.setdefault(index, [])
                    if line not in known and line.lower() not in chosen[index].text.lower():
                        known.append(line)
    return {index: tuple(lines) for index, lines in found.items()}


def _targets(
    reply: Draft,
    ids: dict[str, list[int]],
    parents: dict[str, Draft],
    chosen: Sequence[Draft],
    covers: Sequence[Draft],
) -> list[int]:
    """The patches that a reply is about: by Message-ID, up the thread; by its subject where there are none."""
    for answered in _upwards(reply, parents):
        if answered in ids:
            return ids[answered]
    if reply.letter.answers and ids:
        return []
    same = [
        i
        for i, draft in enumerate(chosen)
        if (draft.subject.key, draft.subject.rank, draft.subject.number)
        == (reply.subject.key, reply.subject.rank, reply.subject.number)
    ]
    about_cover = any(cover.subject.key == reply.subject.key for cover in covers) and reply.subject.number == 0
    return same or (list(range(len(chosen))) if about_cover else [])


def _upwards(reply: Draft, parents: dict[str, Draft]) -> list[str]:
    """Message-IDs that a reply answers, nearest first, through the mails in between."""
    ids: list[str] = []
    waiting = list(reply.letter.answers)
    while waiting:
        answered = waiting.pop(0)
        if answered not in ids:
            ids.append(answered)
            if answered in parents:
                waiting += parents[answered].letter.answers
    return ids
