# SPDX-License-Identifier: GPL-2.0-or-later
"""Which patches belong together: the revisions of one series are a family, and so is a patch that stands alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations

from kpatch_ci.series.draft import Draft


def families(drafts: Sequence[Draft], covers: Sequence[Draft], others: Sequence[Draft]) -> list[list[Draft]]:
    """Patches by family, families and members in the order in which they came.

    Evidence, from the strongest: one thread (Message-IDs), a subject in common, numbered patches that came in one file or
    directory, numbered patches of separate files that say the same revision and total.
    """
    everyone = [*drafts, *covers]
    groups = _Groups(len(everyone))
    threads = _threads([*everyone, *others])
    loose = Counter(draft.letter.source.origin for draft in drafts if draft.subject.number is not None)
    by_thread: dict[str, int] = {}
    by_subject: dict[str, int] = {}
    for index, draft in enumerate(everyone):
        if thread := threads.get(id(draft), ""):
            groups.join(index, by_thread.setdefault(thread, index))
        if draft.subject.key and draft.subject.key != draft.letter.source.path.stem.lower():
            groups.join(index, by_subject.setdefault(draft.subject.key, index))
    for left, right in combinations(_kinds(everyone, groups, threads), 2):
        if not groups.same(left, right) and _akin(everyone[left], everyone[right], threads, loose):
            groups.join(left, right)
    found: dict[int, list[Draft]] = {}
    for index, draft in enumerate(drafts):
        found.setdefault(groups.root(index), []).append(draft)
    return list(found.values())


def _kinds(everyone: Sequence[Draft], groups: _Groups, threads: dict[int, str]) -> list[int]:
    """One numbered draft of each kind that _akin can tell apart: a thousand patches of a series are a handful of kinds."""
    kinds: dict[object, int] = {}
    for index, draft in enumerate(everyone):
        if draft.subject.number is not None:
            source, email = draft.letter.source, draft.letter.email.lower()
            thread = threads.get(id(draft), "")
            kind = (groups.root(index), source.origin, draft.subject.rank, draft.subject.total, email, bool(thread))
            kinds.setdefault(kind, index)
    return list(kinds.values())


def _akin(left: Draft, right: Draft, threads: dict[int, str], loose: Counter[int]) -> bool:
    one, other = left.letter.source.origin, right.letter.source.origin
    same_shape = (left.subject.rank, left.subject.total) == (right.subject.rank, right.subject.total)
    if one != other:
        return same_shape and 1 in (loose[one], loose[other])
    apart = threads.get(id(left)) and threads.get(id(right))
    if not apart:
        return True
    same_author = left.letter.email.lower() == right.letter.email.lower()
    return same_author and left.subject.rank != right.subject.rank


def _threads(drafts: Iterable[Draft]) -> dict[int, str]:
    """``id`` of a draft -> its thread's name; drafts that say nothing about threads, or stand alone in theirs, have none."""
    everyone = list(drafts)
    names: dict[str, str] = {}

    def top(name: str) -> str:
        while names.setdefault(name, name) != name:
            names[name] = names[names[name]]
            name = names[name]
        return name

    for draft in everyone:
        letter = draft.letter
        ids = [name for name in (letter.message_id, *letter.answers) if name]
        for name in ids[1:]:
            names[top(name)] = top(ids[0])
    found = {}
    for draft in everyone:
        ids = [name for name in (draft.letter.message_id, *draft.letter.answers) if name]
        if ids:
            found[id(draft)] = top(ids[0])
    sizes = Counter(found.values())
    return {key: name for key, name in found.items() if sizes[name] > 1}


class _Groups:
    """Union of indices."""

    def __init__(self, count: int) -> None:
        self._above = list(range(count))

    def root(self, index: int) -> int:
        while self._above[index] != index:
            self._above[index] = self._above[self._above[index]]
            index = self._above[index]
        return index

    def join(self, left: int, right: int) -> None:
        left, right = sorted((self.root(left), self.root(right)))
        self._above[right] = left

    def same(self, left: int, right: int) -> bool:
        return self.root(left) == self.root(right)
