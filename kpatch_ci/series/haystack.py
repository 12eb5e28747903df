# SPDX-License-Identifier: GPL-2.0-or-later
"""Finds the place of a file that is most like some lines of text."""

from __future__ import annotations

import difflib
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property

_CANDIDATES = 8
"""Places that are compared in full."""
_COMMON = 100
"""A line or word that stands on more lines than this says nothing about the place."""
_WORD = re.compile(r"\w{4,}")


class Haystack:
    """The lines of one file, indexed at the first search: several hunks of a patch look in the same file."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines

    def exact(self, wanted: Sequence[str]) -> list[int]:
        """Lines (from 0) at which exactly ``wanted`` begins."""
        length, text = len(wanted), list(wanted)
        if not text:
            return []
        return [i for i, line in enumerate(self.lines) if line == text[0] and self.lines[i : i + length] == text]

    def nearest(self, wanted: Sequence[str], expected: int) -> int | None:
        """Line (from 0) at which the file is most like ``wanted``, None where it has nothing like it.

        Of equally good places the one nearer to ``expected`` is taken. Lines and words that both have vote for the places
        they imply, rare ones more than common ones, and difflib compares the best few in full: milliseconds for a file of
        12,000 lines.
        """
        plain = [_plain(line) for line in wanted]
        votes: Counter[int] = Counter()
        for index, line in enumerate(plain):
            for places, weight in self._evidence(line):
                if len(places) <= _COMMON:
                    for place in places:
                        votes[max(0, place - index)] += weight // len(places)
        matcher = difflib.SequenceMatcher(autojunk=False)
        matcher.set_seq2("\n".join(plain))
        ranked = []
        for place, weight in votes.most_common(_CANDIDATES):
            matcher.set_seq1("\n".join(self._keys[place : place + len(plain)]))
            ranked.append((round(matcher.ratio(), 2), weight, -abs(place - expected), place))
        return max(ranked)[-1] if ranked else None

    def _evidence(self, line: str) -> Iterator[tuple[list[int], int]]:
        """Where a line stands, or, if it stands nowhere, where its words do; with the weight of either."""
        if line in self._where:
            if line:
                yield self._where[line], 100_000
            return
        for word in _WORD.findall(line):
            yield self._words.get(word, []), 20_000

    @cached_property
    def _keys(self) -> list[str]:
        return [_plain(line) for line in self.lines]

    @cached_property
    def _where(self) -> dict[str, list[int]]:
        return _index((key, i) for i, key in enumerate(self._keys))

    @cached_property
    def _words(self) -> dict[str, list[int]]:
        return _index((word, i) for i, key in enumerate(self._keys) for word in set(_WORD.findall(key)))


def _plain(line: str) -> str:
    return " ".join(line.split())


def _index(pairs: Iterator[tuple[str, int]]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for key, place in pairs:
        found[key].append(place)
    return dict(found)
