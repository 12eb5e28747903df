# SPDX-License-Identifier: GPL-2.0-or-later
"""What is said of a hunk that finds no place."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from kpatch_ci.model.series import HunkFailure
from kpatch_ci.series.apply import apply_series
from kpatch_ci.series.haystack import Haystack
from tests.unit.series.conftest import make_patch, make_series

if TYPE_CHECKING:
    from tests.unit.series.conftest import Lab

HEAD = b"diff --git a/x.c b/x.c\n--- a/x.c\n+++ b/x.c\n"
MIDDLE = HEAD + b"@@ -2,3 +2,3 @@ int f(void)\n one\n-two\n+TWO\n three\n"
AT_END = HEAD + b"@@ -2,2 +2,3 @@\n one\n two\n+new\n"


def explain(lab: Lab, diff: bytes, tree: str) -> tuple[HunkFailure, ...]:
    (patch,) = apply_series(make_series(make_patch(diff)), lab.tree({"x.c": tree})).patches
    return patch.failures


def test_git_names_the_first_hunk_of_a_file_and_the_others_that_fail_are_found(lab: Lab) -> None:
    two_more = b"@@ -9,2 +9,2 @@\n-nine\n+NINE\n ten\n@@ -20,2 +20,2 @@\n-twenty\n+TWENTY\n more\n"
    tree = "zero\none\nzwei\nthree\nnine\nten\n"
    found = explain(lab, MIDDLE + two_more, tree)
    assert [(f.line, f.reason) for f in found] == [
        (2, "nearest text is at line 2, in zero"),
        (20, "the tree has nothing like it"),
    ]
    assert (found[0].wanted, found[0].found) == ("one\ntwo\nthree", "one\nzwei\nthree")
    assert found[0].header == "@@ -2,3 +2,3 @@ int f(void)"


def test_a_hunk_without_context_after_it_belongs_at_the_end_of_the_file(lab: Lab) -> None:
    (found,) = explain(lab, AT_END, "zero\none\ntwo\nmore\n")
    assert found.reason == "the text is at line 2, but the patch wants it at the end of the file"
    assert found.found == "one\ntwo\nmore\n"


def test_a_later_hunk_whose_text_is_not_at_the_end_where_it_belongs_is_found_too(lab: Lab) -> None:
    at_end = b"@@ -9,1 +9,2 @@\n nine\n+ten\n"
    found = explain(lab, MIDDLE + at_end, "one\nzwei\nthree\nnine\nmore\n")
    assert [failure.line for failure in found] == [2, 9]
    assert len(explain(lab, MIDDLE + at_end, "one\nzwei\nthree\nnine\n")) == 1


def test_white_space_damage_is_told_apart(lab: Lab) -> None:
    (found,) = explain(lab, MIDDLE, "\tone\ntwo\nthree\n")
    assert found.reason.startswith("line 1 differs in white space alone")


def test_what_git_says_otherwise_is_passed_on(lab: Lab) -> None:
    (found,) = explain(lab, b"garbage", "x\n")
    assert found.reason == 'git: No valid patches in input (allow with "--allow-empty")'


def test_text_that_is_not_utf_8_is_shown_all_the_same(lab: Lab) -> None:
    (found,) = explain(lab, MIDDLE.replace(b"two", b"tw\xf6"), "zero\none\ntwo\nthree\n")
    assert found.wanted == "one\ntw�\nthree"


def test_rare_words_find_a_changed_line_and_common_lines_do_not_lead_astray() -> None:
    lines = ["}", "", "#endif"] * 500 + ["int sysctl_lamp_limit = LIMIT_BREAK;", ""] + ["}", "", "#endif"] * 500
    assert Haystack(lines).nearest(["int sysctl_lamp_limit = 32;", "", "/* gone */"], 0) == 1500


def test_of_two_equal_places_the_nearer_is_taken() -> None:
    lines = [*(str(i) for i in range(50)), "lamp();", *(str(i) for i in range(50)), "lamp();", "0"]
    assert Haystack(lines).nearest(["lamp();", "other"], 95) == 101


def test_a_file_of_twelve_thousand_lines_is_searched_quickly() -> None:
    lines = [f"\tint variable_{i % 3000} = compute_{i}(argument_{i % 7});" for i in range(12_000)]
    place = Haystack(lines)
    start = time.process_time()
    for number in range(0, 12_000, 1000):
        wanted = [line.replace("compute", "calculate") for line in lines[number : number + 7]]
        wanted[3] = lines[number + 3]
        assert place.nearest(wanted, 0) == number
    assert time.process_time() - start < 2
