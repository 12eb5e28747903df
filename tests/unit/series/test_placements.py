# SPDX-License-Identifier: GPL-2.0-or-later
"""Where hunks go: offsets, fuzz, and the same text in two functions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from kpatch_ci.model.series import ApplyMethod, ApplyResult, Fit, Patch
from kpatch_ci.model.status import Status
from kpatch_ci.series.apply import apply_series
from kpatch_ci.series.fates import read_fates
from kpatch_ci.series.functions import function_at, is_same, short_name
from kpatch_ci.series.sections import sections
from tests.unit.series.conftest import make_series

if TYPE_CHECKING:
    from tests.unit.series.conftest import Lab

BODY = "{\n\tint ret;\n\n\tret = lamp_lock();\n\tif (ret)\n\t\treturn ret;\n\tlamp_write();\n\treturn 0;\n}\n\n"
FILLER = "".join(f"#define LAMP_{i} {i}\n" for i in range(20))
ON, OFF = f"static int lamp_on(int a)\n{BODY}", f"static int lamp_off(int a)\n{BODY}"
BOTH = FILLER + ON + OFF
"""Two functions with one text."""


def foreign(patch: Patch) -> Patch:
    """The patch, made for files that the repository does not have: no three-way merge."""
    return replace(patch, diff=patch.diff.replace(b"\nindex ", b"\nindex 0"))


def off_patch(lab: Lab, before: str = BOTH) -> Patch:
    after = before.replace(OFF, OFF.replace("lamp_write();", "lamp_clear();"))
    return lab.patch({"k.c": before}, {"k.c": after})


def put(lab: Lab, patch: Patch, tree: str, fuzz: int = 0) -> ApplyResult:
    return apply_series(make_series(patch), lab.tree({"k.c": tree}), fuzz=fuzz)


def test_a_hunk_that_moved_is_named_with_its_function_and_offset(lab: Lab) -> None:
    result = put(lab, foreign(off_patch(lab, FILLER + OFF)), "// one\n" + FILLER + OFF)
    (placement,) = result.placements
    assert (placement.path, placement.hunk, placement.line, placement.offset) == ("k.c", 1, 26, 1)
    assert (placement.function, placement.found_in) == ("static int lamp_off(int a)",) * 2
    assert (placement.fuzz, placement.also, placement.warning) == (0, (), "")
    assert (result.fit, result.warnings) == (Fit.AS_MAILED, ())


def test_text_that_stands_in_two_functions_goes_into_the_one_that_the_mail_names(lab: Lab) -> None:
    patch = foreign(off_patch(lab))
    tree = "\n" * 10 + BOTH
    result = put(lab, patch, tree)
    expected = tree.replace(OFF, OFF.replace("lamp_write();", "lamp_clear();"))
    assert lab.text(result.tree_id, "k.c") == expected
    (placement,) = result.placements
    assert (placement.line, placement.offset, placement.also) == (46, 10, (35,))
    assert placement.warning.startswith("the same text at line 35 is nearer, but in another function")
    assert result.warnings[0].startswith("k.c: hunk 1 at line 46: ")
    assert (result.fit, result.patches[0].offsets) == (Fit.AS_MAILED, (10,))


def test_git_alone_would_have_put_it_into_the_wrong_function(lab: Lab) -> None:
    """What the test above guards against is real."""
    tree = lab.tree({"k.c": "\n" * 10 + BOTH})
    lab.repo.git.read_tree(tree.tree_id)
    (lab.path / "patch").write_bytes(foreign(off_patch(lab)).diff)
    lab.repo.git.read_tree(tree.tree_id)
    lab.repo.git.execute(["git", "apply", "--cached", str(lab.path / "patch")])
    text = str(lab.repo.git.cat_file("blob", ":k.c"))
    assert text.index("lamp_clear") < text.index("lamp_off")


def test_where_two_places_in_no_named_function_would_do_nothing_is_applied_without_a_word(lab: Lab) -> None:
    patch = foreign(off_patch(lab))
    patch = replace(patch, diff=patch.diff.replace(b"@@ static int lamp_off(int a)", b"@@"))
    result = put(lab, patch, "\n" * 10 + BOTH)
    (placement,) = result.placements
    assert (placement.line, placement.warning) == (35, "the same text stands at line 46, too")
    assert result.warnings == ("k.c: hunk 1 at line 35: the same text stands at line 46, too",)


def test_two_places_in_the_named_function_are_one_too_many(lab: Lab) -> None:
    block = "\tret = lamp_lock();\n\tif (ret)\n\t\treturn ret;\n\tlamp_write();\n\treturn 0;\n"
    tree = FILLER + ON + "\n" * 9 + f"static int lamp_off(int a)\n{{\n\tint ret;\n\n{block}{block}}}\n\n"
    patch = foreign(off_patch(lab))
    diff = patch.diff.replace(b" }\n \n", b"").replace(b"-36,7 +36,7", b"-25,5 +25,5")
    result = put(lab, replace(patch, diff=diff), tree)
    (failure,) = result.patches[0].failures
    assert failure.reason.endswith("the mail changes lamp_off(), where the text stands at lines 45, 50")


def test_three_way_is_asked_before_a_hunk_is_sent_elsewhere(lab: Lab) -> None:
    result = put(lab, off_patch(lab), "\n" * 10 + BOTH)
    assert (result.fit, result.method) == (Fit.THREE_WAY, ApplyMethod.THREE_WAY)
    assert lab.text(result.tree_id, "k.c").index("lamp_off") < lab.text(result.tree_id, "k.c").index("lamp_clear")


def test_a_function_that_was_renamed_is_a_warning(lab: Lab) -> None:
    patch = foreign(off_patch(lab, FILLER + OFF))
    result = put(lab, patch, FILLER + OFF.replace("lamp_off", "lamp_dark"))
    (placement,) = result.placements
    assert (placement.offset, placement.warning) == (0, "the mail says lamp_off(), this is lamp_dark()")
    assert result.status is Status.PASSED


def test_an_argument_that_was_added_is_none(lab: Lab) -> None:
    patch = foreign(off_patch(lab, FILLER + OFF))
    assert put(lab, patch, FILLER + OFF.replace("(int a)", "(int a, int b)")).placements == ()


OTHER = FILLER + OFF.replace("\tif (ret)\n", "\tif (ret < 0)\n")
"""Context that differs two lines from the change."""


def test_fuzz_is_never_used_unless_it_is_asked_for_but_said_to_help(lab: Lab) -> None:
    result = put(lab, foreign(off_patch(lab, FILLER + OFF)), OTHER)
    assert (result.status, result.fit) == (Status.FAILED, Fit.PORT_NEEDED)
    (failure,) = result.patches[0].failures
    assert (failure.fuzz, failure.function, failure.at) == (2, "static int lamp_off(int a)", 25)
    assert "nearest text is at line 25" in result.reason
    assert put(lab, foreign(off_patch(lab, FILLER + OFF)), OTHER, fuzz=1).status is Status.FAILED


def test_a_function_that_changed_is_not_passed_over_for_another_with_the_old_text(lab: Lab) -> None:
    """git alone would apply this, to lamp_on(), where not even fuzz makes it right."""
    tree = BOTH.replace(OFF, OFF.replace("\tlamp_write();", "\tlamp_write(0);"))
    for fuzz in (0, 3):
        result = put(lab, foreign(off_patch(lab)), tree, fuzz)
        assert (result.status, result.fit) == (Status.FAILED, Fit.PORT_NEEDED)
        (failure,) = result.patches[0].failures
        assert failure.reason == (
            "git alone would put it at line 25, into lamp_on(); the mail changes lamp_off(), where the text is another"
        )
        assert (failure.at, failure.found.splitlines()[3]) == (36, "\tlamp_write(0);")


@pytest.mark.parametrize("fuzz", [2, 3])
def test_fuzz_that_was_asked_for_names_every_hunk(lab: Lab, fuzz: int) -> None:
    result = put(lab, foreign(off_patch(lab, FILLER + OFF)), OTHER, fuzz)
    assert (result.status, result.fit, result.method) == (Status.PASSED, Fit.FUZZ, ApplyMethod.FUZZ)
    (placement,) = result.placements
    assert (placement.path, placement.hunk, placement.fuzz, placement.offset) == ("k.c", 1, 2, 0)
    assert result.patches[0].failures


def test_fuzz_is_not_used_where_the_port_fits(lab: Lab) -> None:
    port = lab.patch({"k.c": OTHER}, {"k.c": OTHER + "// ported\n"})
    series = make_series(foreign(off_patch(lab, FILLER + OFF)), ports={"6.1": (port,)})
    result = apply_series(series, lab.tree({"k.c": OTHER}), fuzz=2)
    assert (result.fit, result.method) == (Fit.PORT, ApplyMethod.PORT)


def test_the_end_of_the_file_is_context_too(lab: Lab) -> None:
    patch = foreign(lab.patch({"k.c": "one;\ntwo;\nthree;\n"}, {"k.c": "one;\ntwo;\nthree;\nfour;\n"}))
    tree = "one;\ntwo;\nthree;\nmore;\n"
    (failure,) = put(lab, patch, tree).patches[0].failures
    assert failure.fuzz == 3
    assert put(lab, patch, tree, fuzz=2).status is Status.FAILED
    (placement,) = put(lab, patch, tree, fuzz=3).placements
    assert (placement.fuzz, placement.warning) == (3, "the mail has it at the end of the file, here it is not")


def test_a_patch_of_which_a_part_is_there_is_told_hunk_by_hunk(lab: Lab) -> None:
    lines = [f"int line_{i};" for i in range(1, 61)]
    after = [line.replace("int", "long") if line.split("_")[1] in ("10;", "30;", "50;") else line for line in lines]
    partly = [line if "_10;" in line else new for line, new in zip(lines, after, strict=True)]
    patch = foreign(lab.patch({"k.c": "\n".join(lines)}, {"k.c": "\n".join(after)}))
    result = put(lab, patch, "\n".join(partly))
    assert (result.status, result.fit) == (Status.FAILED, Fit.PARTLY)
    failures = result.patches[0].failures
    assert [(f.hunk, f.there, f.at) for f in failures] == [(2, True, 27), (3, True, 47)]
    assert failures[0].reason == "already in the tree, at line 27"


def test_of_a_series_the_first_half_of_which_is_there_the_rest_is_looked_at(lab: Lab) -> None:
    one = BOTH.replace("LAMP_3 3", "LAMP_3 4")
    two = one.replace("LAMP_15 15", "LAMP_15 16")
    first, second = (foreign(lab.patch({"k.c": a}, {"k.c": b})) for a, b in ((BOTH, one), (one, two)))
    result = apply_series(make_series(first, second), lab.tree({"k.c": one}))
    assert (result.fit, [p.status for p in result.patches]) == (Fit.PARTLY, [Status.FAILED, Status.SKIPPED])
    assert apply_series(make_series(first, second), lab.tree({"k.c": two})).fit is Fit.THERE


def test_bad_hunks_of_every_patch_are_shown_not_only_those_of_the_first_that_fails(lab: Lab) -> None:
    one = BOTH.replace("LAMP_3 3", "LAMP_3 4")
    two = one.replace("LAMP_15 15", "LAMP_15 16")
    tree = BOTH.replace("LAMP_3 3", "LAMP_3 x").replace("LAMP_15 15", "LAMP_15 x")
    patches = [foreign(lab.patch({"k.c": a}, {"k.c": b})) for a, b in ((BOTH, one), (one, two))]
    result = apply_series(make_series(*patches), lab.tree({"k.c": tree}))
    assert [[f.line for f in p.failures] for p in result.patches] == [[1], [13]]
    assert [p.status for p in result.patches] == [Status.FAILED, Status.FAILED]


def test_later_patches_are_not_looked_at_on_hunks_that_are_in_the_wrong_function(lab: Lab) -> None:
    tree = BOTH.replace(OFF, OFF.replace("\tlamp_write();", "\tlamp_write(0);"))
    later = lab.patch({"k.c": tree}, {"k.c": tree.replace(ON, ON.replace("lamp_write();", "lamp_flash();"))})
    result = apply_series(make_series(foreign(off_patch(lab)), foreign(later)), lab.tree({"k.c": tree}))
    assert [p.status for p in result.patches] == [Status.FAILED, Status.SKIPPED]


def test_a_conflict_is_told_from_a_port_that_is_needed(lab: Lab) -> None:
    tree = BOTH.replace(OFF, OFF.replace("lamp_write();", "lamp_write_all();"))
    assert put(lab, off_patch(lab), tree).fit is Fit.CONFLICT
    assert put(lab, foreign(off_patch(lab)), tree).fit is Fit.PORT_NEEDED


def test_a_patch_that_only_adds_and_would_go_on_a_second_time_is_a_warning(lab: Lab) -> None:
    entry = "\t{\n\t\t.lamp = 1,\n\t},\n"
    before, after = (f"{FILLER}struct lamp lamps[] = {{\n{entry * n}}};\n{FILLER}" for n in (1, 2))
    patch = foreign(lab.patch({"k.c": before}, {"k.c": after}))
    assert put(lab, patch, before).warnings == ()
    result = put(lab, patch, after)
    assert result.fit is Fit.AS_MAILED
    assert result.warnings[-1].startswith("all that it makes is in the tree already: it may be there")


def test_files_that_are_gone_or_made_already_are_there(lab: Lab) -> None:
    before, after = {"k.c": BOTH, "gone.c": "x\n" * 5}, {"k.c": BOTH.replace("LAMP_3 3", "LAMP_3 4"), "new.c": "y\n"}
    patch = foreign(lab.patch(before, after))
    done = apply_series(make_series(patch), lab.tree({"k.c": BOTH, "new.c": "y\n"}))
    assert done.fit is Fit.PARTLY
    assert {(f.path, f.there, f.reason) for f in done.patches[0].failures} == {
        ("gone.c", True, "already in the tree: the file is gone"),
        ("new.c", True, "already in the tree: the same file"),
    }
    other = apply_series(make_series(patch), lab.tree({**before, "new.c": "z\n"}))
    (failure,) = other.patches[0].failures
    assert (failure.there, failure.reason) == (False, "the patch creates this file, but the tree has it already")
    assert apply_series(make_series(patch), lab.tree(after)).fit is Fit.THERE


def test_a_file_where_the_tree_has_a_directory_is_refused_in_gits_words(lab: Lab) -> None:
    before = {"dir/k.c": BOTH}
    made = lab.patch(before, {**before, "other": "x\n"})
    for path in (b"dir", b"dir/k.c/x"):
        patch = replace(made, diff=made.diff.replace(b"other", path))
        (failure,) = apply_series(make_series(patch), lab.tree(before)).patches[0].failures
        assert "appears as both a file and as a directory" in failure.reason


def test_another_file_mode_is_said(lab: Lab) -> None:
    patch = off_patch(lab)
    patch = foreign(replace(patch, diff=patch.diff.replace(b" 100644\n", b" 100755\n")))
    result = put(lab, patch, BOTH)
    assert result.warnings == ("k.c has type 100644, expected 100755",)


def test_a_file_with_crlf_says_so(lab: Lab) -> None:
    (failure,) = put(lab, foreign(off_patch(lab)), BOTH.replace("\n", "\r\n")).patches[0].failures
    assert failure.reason.endswith("the tree's file has CRLF line ends, the patch has LF")


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("static int lamp_on(int a)", "lamp_on()"),
        ("SYSCALL_DEFINE3(read, unsigned int, fd, char __user *, buf, size_t, count)", "SYSCALL_DEFINE3(read)"),
        ("static const struct lamp_ops {", "struct lamp_ops"),
        ("static struct ctl_table lamp_table[] = {", "static struct ctl_table lamp_table[] = {"),
    ],
)
def test_functions_have_short_names(line: str, name: str) -> None:
    assert short_name(line) == name


def test_labels_are_no_functions() -> None:
    lines = ["int lamp(void)", "{", "\tgoto out;", "out:", "\treturn 0;", "}"]
    assert function_at(lines, 5) == "int lamp(void)"
    assert is_same("out:", "int other(void)")
    assert not is_same("int lamp(void)", "int other(void)")
    assert not is_same("int lamp(void)", "")


def test_sections_know_renames_new_and_deleted_files_and_quoted_names(lab: Lab) -> None:
    old = {"a b.c": FILLER, "ä.c": FILLER, "gone.c": "some\nthing\n"}
    new = {"c d.c": FILLER + "x\n", "ä.c": FILLER + "y\n", "new.c": "x\ny\n"}
    found = {(part.old, part.new): part for part in sections(lab.diff(old, new))}
    assert set(found) == {("a b.c", "c d.c"), ("ä.c", "ä.c"), ("gone.c", ""), ("", "new.c")}
    assert found["", "new.c"].old_blob == ""
    assert found["gone.c", ""].old_blob
    assert found["gone.c", ""].new_blob == ""
    assert str(lab.repo.git.cat_file("-p", found["a b.c", "c d.c"].old_blob)) == FILLER.rstrip()


def test_words_of_git_about_hunks_are_read_by_the_order_of_files() -> None:
    diff = b"".join(
        b"diff --git a/%s b/%s\n--- a/%s\n+++ b/%s\n@@ -4,3 +4,3 @@\n a\n-b\n+c\n d\n" % ((name,) * 4)
        for name in (b"x", b"y")
    )
    said = (
        "Checking patch x...\nHunk #1 succeeded at 9 (offset 5 lines).\nChecking patch y...\n"
        "error: while searching for:\na\nb\nd\n\nerror: patch failed: y:4\nApplied patch x cleanly.\n"
    )
    one, two = read_fates(said, sections(diff))
    assert [(f.line, f.offset, f.refused) for f in (*one.hunks, *two.hunks)] == [(9, 5, False), (4, 0, True)]
