# SPDX-License-Identifier: GPL-2.0-or-later
"""Who last changed what a hunk found."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kpatch_ci.series.apply import apply_on, open_index
from kpatch_ci.series.blame import with_last_changes
from tests.unit.series.conftest import make_series

if TYPE_CHECKING:
    from tests.unit.series.conftest import Lab

LAMP = "kernel/lamp.c"
TEXT = "".join(f"int line_{i};\n" for i in range(1, 41))


def test_lines_are_those_of_the_tree_though_an_earlier_patch_moved_them(lab: Lab) -> None:
    root = lab.commit({LAMP: TEXT}, "root", day=1)
    theirs = TEXT.replace("int line_20;", "char line_20;")
    culprit = lab.commit({LAMP: theirs}, "lamp: a char", root, day=2)
    tree = lab.at(lab.commit({LAMP: theirs + "// more\n"}, "later", culprit, day=3))
    moved = "// one\n// two\n" + TEXT
    first = lab.patch({LAMP: TEXT}, {LAMP: moved})
    second = lab.patch({LAMP: moved}, {LAMP: moved.replace("int line_20;", "long line_20;")})
    patches = [replace(p, diff=p.diff.replace(b"\nindex ", b"\nindex 0")) for p in (first, second)]
    with open_index(tree) as index:
        result = with_last_changes(index, tree, apply_on(index, make_series(*patches), tree))
        (failure,) = result.patches[1].failures
        (change,) = failure.last_changes
        assert failure.differing == (22,)
        assert (change.commit, change.lines, change.date, change.author) == (culprit, (20,), "2020-01-02", "Ada")
        late = with_last_changes(index, tree, apply_on(index, make_series(*patches), tree), seconds=0)
        assert late.patches[1].failures[0].last_changes == ()
        alone = lab.at(lab.commit({LAMP: theirs}, "no history"))
        alike = with_last_changes(index, alone, apply_on(index, make_series(*patches), alone))
        assert alike.patches[1].failures[0].last_changes == ()
