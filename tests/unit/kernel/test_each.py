# SPDX-License-Identifier: GPL-2.0-or-later
"""A build after every patch: the first that breaks, and what each newly warns of."""

from __future__ import annotations

from pathlib import Path

from kpatch_ci.kernel.each import find_each
from kpatch_ci.model.each import EachResult
from kpatch_ci.model.status import Status
from tests.unit.kernel.conftest import Lab

OLD = "fn old\nwarn unused x\n"
START = {
    "kernel/a.c": OLD,
    "kernel/b.c": "fn b\n",
    "lib/c.c": "include lib/all.h\nwarn seldom\n",
    "lib/all.h": "fn h\n",
}


def news(each: EachResult) -> list[list[str]]:
    return [[f"{w.path} {w.context} {w.text}" for w in p.new_warnings] for p in each.patches]


def test_the_first_patch_that_breaks_is_named_and_the_later_ones_are_built(lab: Lab) -> None:
    walk = lab.walk(
        START,
        {"kernel/b.c": "fn b\n# 1\n"},
        {"kernel/b.c": "fn b\nerror no such thing\n", "lib/c.c": "include lib/all.h\nwarn seldom\nwarn with it\n"},
        {"kernel/b.c": "fn b\n# 3\n"},
        {"kernel/b.c": "fn b\n# 4\n"},
    )
    each = lab.each(walk)
    assert [p.status for p in each.patches] == [Status.PASSED, Status.FAILED, Status.PASSED, Status.PASSED]
    assert each.status is Status.FAILED
    assert each.reason == "not bisectable: patch 2/4 `patch 2` does not build on arm64; the series' end does"
    broken = each.patches[1]
    assert [(e.path, e.line, e.text) for e in broken.errors] == [("kernel/b.c", 2, "no such thing")]
    assert broken.reason == "make failed with exit status 2"
    assert "no such thing" in broken.log_tail
    assert broken.log is not None
    assert "error: no such thing" in broken.log.read_text()
    assert news(each) == [[], ["lib/c.c  with it"], [], []], (
        "told of the patch that brought it, although that one is broken"
    )


def test_a_break_on_one_architecture_only_is_one_there_only(lab: Lab) -> None:
    patches = ({"kernel/b.c": "arm64 error late\n"}, {"kernel/b.c": "fn b\n# mended\n"})
    assert lab.each(lab.walk(START, *patches, arch="arm64")).first_break is not None
    whole = lab.each(lab.walk(START, *patches, arch="x86_64"))
    assert whole.reason == ""
    assert whole.status is Status.PASSED


def test_a_series_whose_end_is_broken_says_so(lab: Lab) -> None:
    each = lab.each(lab.walk(START, {"kernel/b.c": "error one\n"}, {"kernel/b.c": "error one\nerror two\n"}))
    assert "patch 1/2 `patch 1` does not build on arm64 (one more after it does not either)" in each.reason
    assert each.reason.endswith("nor does the series' end")
    last = lab.each(lab.walk(START, {"kernel/b.c": "fn b\n# 1\n"}, {"kernel/b.c": "error two\n"}))
    assert last.reason == "patch 2/2 `patch 2` is the first that does not build on arm64"


def test_a_step_compiles_what_its_own_patch_touches(lab: Lab) -> None:
    each = lab.each(
        lab.walk(
            START,
            {"lib/all.h": "fn h\n# 1\n", "kernel/a.c": f"{OLD}# 1\n", "kernel/b.c": "fn b\n# 1\n"},
            {"kernel/b.c": "fn b\n# 2\n"},
            {"kernel/b.c": "fn b\n# 3\n"},
        )
    )
    assert [p.objects for p in each.patches[:2]] == [3, 1]


def test_a_warning_that_moved_or_is_only_told_again_is_not_new(lab: Lab) -> None:
    walk = lab.walk(
        START,
        {"kernel/a.c": f"\n\n\n{OLD}"},
        {"lib/all.h": "fn h\n# all that include it are compiled again\n"},
        {"kernel/a.c": f"\n\n\nfn other\n{OLD}warn another\n"},
        {"kernel/b.c": "fn b\n# 4\n"},
    )
    assert news(lab.each(walk)) == [[], [], ["kernel/a.c old another"], []]


def test_the_same_words_in_another_function_are_new(lab: Lab) -> None:
    walk = lab.walk(START, {"kernel/a.c": f"{OLD}fn second\nwarn unused x\n"}, {"kernel/b.c": "fn b\n# 2\n"})
    assert news(lab.each(walk)) == [["kernel/a.c second unused x"], []]


def test_a_warning_that_was_mended_and_comes_back_is_new(lab: Lab) -> None:
    walk = lab.walk(START, {"kernel/a.c": "fn old\n"}, {"kernel/b.c": "fn b\n# 2\n"}, {"kernel/a.c": OLD + "# 3\n"})
    assert news(lab.each(walk)) == [[], [], ["kernel/a.c old unused x"]]


def test_what_a_baseline_patch_warns_of_is_not_the_series(lab: Lab) -> None:
    base = {"kernel/b.c": "fn b\nwarn of the baseline patch\n"}
    patch = {"kernel/b.c": "fn b\nwarn of the baseline patch\nwarn of patch 1\n"}
    walk = lab.walk(START, patch, {"kernel/a.c": OLD + "# 2\n"}, base=base)
    assert news(lab.each(walk)) == [["kernel/b.c b of patch 1"], []]


def test_files_that_come_and_go_are_followed(lab: Lab) -> None:
    walk = lab.walk(START, {"lib/new.c": "fn n\nwarn fresh\n"}, {"lib/new.c": ""}, {"kernel/b.c": "fn b\n# 3\n"})
    each = lab.each(walk)
    assert news(each) == [["lib/new.c n fresh"], [], []]
    assert each.status is Status.PASSED


def test_what_was_built_before_is_not_built_again(lab: Lab) -> None:
    walk = lab.walk(
        START, {"kernel/b.c": "fn b\nwarn w\n"}, {"kernel/b.c": "fn b\nwarn w\n# 2\n"}, {"kernel/a.c": OLD + "#\n"}
    )
    assert find_each(lab.builder, walk) is None
    first = lab.each(walk)
    again = find_each(lab.builder, walk)
    assert again is not None
    assert [p.cached for p in first.patches[:2]] == [False, False]
    assert [p.cached for p in again.patches[:2]] == [True, True]
    assert news(again) == news(first) == [["kernel/b.c b w"], [], []]
    assert again.key == first.key


def test_a_tree_that_another_series_ends_with_is_taken_from_there(lab: Lab) -> None:
    member = {"kernel/b.c": "fn b\nwarn of a member\n"}
    lab.walk(START, member)
    stack = lab.walk(START, member, {"kernel/a.c": OLD + "# 2\n"})
    found = find_each(lab.builder, stack)
    assert found is not None
    assert news(found) == [["kernel/b.c b of a member"], []]


def test_a_broken_patch_is_tried_again_and_the_steps_after_it_are_not(lab: Lab) -> None:
    walk = lab.walk(
        START, {"kernel/b.c": "error x\n"}, {"kernel/b.c": "fn b\nwarn w\n"}, {"kernel/b.c": "fn b\nwarn w\n#\n"}
    )
    first = lab.each(walk)
    assert find_each(lab.builder, walk) is None
    again = lab.each(walk)
    assert [(p.status, p.cached) for p in again.patches[:2]] == [(Status.FAILED, False), (Status.PASSED, True)]
    assert news(first) == news(again) == [[], ["kernel/b.c b w"], []]


def test_nothing_is_left_behind(lab: Lab) -> None:
    lab.each(lab.walk(START, {"kernel/b.c": "error x\n"}, {"kernel/b.c": "fn b\n# 2\n"}))
    cache: Path = lab.builder.cache
    left = [p.name for place in ("out", "src") for p in (cache / place).iterdir() if "each" in p.name]
    assert [name for name in left if not name.endswith(".lock")] == []
