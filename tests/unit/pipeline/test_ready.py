# SPDX-License-Identifier: GPL-2.0-or-later
"""The heaps of Ready give what a search through everything would give (tests/bench/scheduler.py says what they cost)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

import hypothesis
from hypothesis import strategies as st

from kpatch_ci.pipeline.ready import Entry, Group, Ready, Sort

PLACES = ("a", "b", "c")
KINDS = ("boot", "run")
AFFINITIES = ("", "x", "y", "z")


@dataclass
class Searched:
    """What Ready is to do, done by looking at every stage."""

    waiting: dict[Entry, Group] = field(default_factory=dict)
    owners: dict[str, set[str]] = field(default_factory=dict)

    def rank(self, affinity: str, place: str) -> int:
        owners = self.owners.get(affinity) if affinity else None
        return 1 if not owners else 0 if place in owners else 2

    def pop(self, place: str, takes: Callable[[Sort], bool]) -> str | None:
        best = min(
            ((e[0], self.rank(g[1], place), e) for e, g in self.waiting.items() if takes(g[0])),
            default=None,
        )
        if best is None:
            return None
        del self.waiting[best[2]]
        return best[2][2]


sorts = st.tuples(
    st.sampled_from(KINDS), st.booleans(), st.sampled_from((frozenset(), frozenset("a"), frozenset("ab")))
)
groups = st.tuples(sorts, st.sampled_from(AFFINITIES))
steps = st.one_of(
    st.tuples(st.just("push"), groups, st.integers(0, 3)),
    st.tuples(st.just("pop"), st.sampled_from(PLACES), st.sets(sorts)),
    st.tuples(st.just("claim"), st.sampled_from(AFFINITIES), st.sampled_from(PLACES)),
    st.tuples(st.just("forget"), st.sampled_from(PLACES), st.none()),
)


@hypothesis.given(st.lists(steps, max_size=60), st.booleans())
@hypothesis.settings(max_examples=300, deadline=None)
def test_it_gives_what_a_search_through_everything_gives(todo: list[tuple[str, object, object]], again: bool) -> None:
    ready, searched = Ready(), Searched()
    known: dict[str, tuple[Group, Entry]] = {}
    for number, (what, first, second) in enumerate(todo):
        if what == "push":
            entry: Entry = (int(str(second)), number, str(number))
            known[entry[2]] = (first, entry)  # type: ignore[assignment]
            ready.push(*known[entry[2]])
            searched.waiting[entry] = known[entry[2]][0]
        elif what == "pop":
            takes = cast("set[Sort]", second).__contains__
            found = ready.pop(str(first), takes)
            assert found == searched.pop(str(first), takes)
            if again and found is not None and number % 3 == 0:  # as a stage of a lost place comes back
                group, entry = known[found]
                known[found] = ((group[0][0], False, frozenset()), group[1]), entry
                ready.push(*known[found])
                searched.waiting[entry] = known[found][0]
        elif what == "claim":
            ready.claim(str(first), str(second))
            if first:
                searched.owners.setdefault(str(first), set()).add(str(second))
        else:
            ready.forget(str(first))
            for owners in searched.owners.values():
                owners.discard(str(first))
        assert bool(ready) == bool(searched.waiting)
