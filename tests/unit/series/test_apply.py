# SPDX-License-Identifier: GPL-2.0-or-later
"""Series on trees, in real (small) git repositories."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.model.series import ApplyMethod, Patch, Series
from kpatch_ci.model.status import Status
from kpatch_ci.series.apply import apply_series, port_for
from kpatch_ci.series.gitindex import PrivateIndex

if TYPE_CHECKING:
    from tests.unit.series.conftest import Lab

LAMP = "kernel/lamp.c"
TEXT = "".join(f"int line_{number};\n" for number in range(1, 41))
BASE = {LAMP: TEXT, "Makefile": "VERSION = 6\n"}


def changed(number: int, text: str = TEXT, to: str = "long") -> dict[str, str]:
    return {**BASE, LAMP: text.replace(f"int line_{number};", f"{to} line_{number};")}


def series(
    *patches: Patch, ports: Mapping[str, tuple[Patch, ...]] | None = None, members: tuple[Series, ...] = ()
) -> Series:
    return Series("lamp", "title", "origin", patches, ports=ports or {}, members=members)


def test_a_patch_that_fits_is_applied_as_mailed_and_nobodys_files_are_touched(lab: Lab) -> None:
    patch, after, tree = lab.patch(BASE, changed(20)), lab.tree(changed(20)).tree_id, lab.tree(BASE)
    index = (lab.path / ".git" / "index").read_bytes()
    result = apply_series(series(patch), tree)
    assert (result.status, result.method, result.changed_paths) == (Status.PASSED, ApplyMethod.AS_MAILED, (LAMP,))
    assert (result.patches[0].offsets, result.tree_id) == ((), after)
    assert (lab.path / ".git" / "index").read_bytes() == index
    assert (lab.path / LAMP).read_text() == TEXT


def test_hunks_that_moved_say_by_how_many_lines(lab: Lab) -> None:
    moved = {**BASE, LAMP: "// one\n// two\n" + TEXT}
    result = apply_series(series(lab.patch(BASE, changed(20))), lab.tree(moved))
    assert (result.status, result.patches[0].offsets) == (Status.PASSED, (2,))


def test_context_that_differs_is_never_passed_over(lab: Lab) -> None:
    patch = lab.patch(BASE, changed(20))
    diff = patch.diff.replace(b" int line_17;", b" int line_xx;")
    result = apply_series(series(replace(patch, diff=diff.replace(b"index ", b"index 0"))), lab.tree(BASE))
    assert (result.status, result.tree_id) == (Status.FAILED, None)
    (failure,) = result.patches[0].failures
    assert (failure.path, failure.line) == (LAMP, 17)
    assert failure.header == "@@ -17,7 +17,7 @@ int line_16;"
    assert failure.wanted.splitlines()[0] == "int line_xx;"
    assert failure.found.splitlines()[0] == "int line_17;"
    assert failure.reason == "nearest text is at line 17"
    assert "kernel/lamp.c:17" in result.reason


def test_the_settings_of_a_user_change_nothing(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = "[apply]\n\tignoreWhitespace = change\n"
    patch = lab.patch(BASE, changed(20))
    patch = replace(patch, diff=patch.diff.replace(b"int line_17", b"int  line_17").replace(b"index ", b"index 0"))
    tree = lab.tree(BASE)
    (tmp_path / ".gitconfig").write_text(settings)
    config = lab.path / ".git" / "config"
    config.write_text(config.read_text() + settings)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "apply.ignoreWhitespace")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "change")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    result = apply_series(series(patch), tree)
    assert result.status is Status.FAILED
    assert "white space alone" in result.patches[0].failures[0].reason


def test_three_way_is_used_where_the_blobs_are_there(lab: Lab) -> None:
    patch = lab.patch(BASE, changed(20))
    tree = lab.tree({**BASE, LAMP: TEXT.replace("int line_17;", "char line_17;")})
    result = apply_series(series(patch), tree)
    assert (result.status, result.method) == (Status.PASSED, ApplyMethod.THREE_WAY)
    assert lab.text(result.tree_id, LAMP).count("long line_20;") == 1
    assert lab.text(result.tree_id, LAMP).count("char line_17;") == 1
    assert result.patches[0].failures[0].line == 17


def test_a_conflict_is_a_failure_and_leaves_the_tree_as_it_was(lab: Lab) -> None:
    patch, tree = lab.patch(BASE, changed(20)), lab.tree(changed(20, to="char"))
    result = apply_series(series(patch), tree)
    assert (result.status, result.tree_id) == (Status.FAILED, None)
    assert "char line_20;" in result.patches[0].failures[0].found


def test_after_a_conflict_the_port_starts_from_the_base(lab: Lab) -> None:
    theirs = changed(20, to="char")
    port = lab.patch(theirs, changed(30, text=theirs[LAMP]), "the port")
    result = apply_series(series(lab.patch(BASE, changed(20)), ports={"6.1": (port,)}), lab.tree(theirs))
    assert (result.status, result.method) == (Status.PASSED, ApplyMethod.PORT)
    assert lab.text(result.tree_id, LAMP) == changed(30, text=theirs[LAMP])[LAMP]
    assert [f.line for f in result.patches[0].failures] == [17]


@pytest.mark.parametrize(
    ("release", "prefix"),
    [
        ("6.1", "6.1"),
        ("6.1.140", "6.1.140"),
        ("6.1.9", "6.1"),
        ("6.1-rc3", "6.1"),
        ("6.12", None),
        ("6", None),
        ("5.10", "5"),
    ],
)
def test_the_port_of_the_longest_fitting_version_is_chosen(release: str, prefix: str | None) -> None:
    port = port_for(series(ports={"6.1": (), "6.1.140": (), "5": ()}), release)
    assert (port[0] if port else None) == prefix


def test_a_mail_that_applies_wins_over_a_port(lab: Lab) -> None:
    mail, port = lab.patch(BASE, changed(20)), lab.patch(BASE, changed(30))
    result = apply_series(series(mail, ports={"6.1": (port,)}), lab.tree(BASE))
    assert result.method is ApplyMethod.AS_MAILED
    assert "long line_20;" in lab.text(result.tree_id, LAMP)


def test_where_the_second_mail_fails_the_port_replaces_all_of_them(lab: Lab) -> None:
    other = {**BASE, LAMP: TEXT.replace("int line_30;", "char line_30;")}
    first, second = lab.patch(BASE, changed(10)), lab.patch(BASE, changed(30))
    port = lab.patch(other, changed(5, text=other[LAMP]), "the port")
    result = apply_series(series(first, second, ports={"6.1": (port,)}), lab.tree(other))
    assert [(p.subject, p.method) for p in result.patches] == [("the port", ApplyMethod.PORT)]
    assert "long line_10;" not in lab.text(result.tree_id, LAMP)
    assert [failure.line for failure in result.patches[0].failures] == [27]


def test_a_port_that_fails_says_so_beside_the_mail(lab: Lab) -> None:
    other = {**BASE, LAMP: "something else\n"}
    result = apply_series(
        series(lab.patch(BASE, changed(20)), ports={"6.1": (lab.patch(BASE, changed(9)),)}), lab.tree(other)
    )
    assert (result.status, result.method) == (Status.FAILED, None)
    assert "the port for 6.1 does not apply either" in result.reason


def test_what_comes_after_a_failure_is_skipped(lab: Lab) -> None:
    bad, good = lab.patch({**BASE, LAMP: "x\n"}, {**BASE, LAMP: "y\n"}), lab.patch(BASE, changed(20))
    result = apply_series(series(bad, good), lab.tree(BASE))
    assert [patch.status for patch in result.patches] == [Status.FAILED, Status.SKIPPED]


def test_a_patch_that_is_there_already_is_said_to_be(lab: Lab) -> None:
    result = apply_series(series(lab.patch(BASE, changed(20))), lab.tree(changed(20)))
    assert (result.status, result.reason) == (Status.FAILED, "`lamp: Change it` is already in the tree")
    assert result.patches[0].failures[0].reason == "already in the tree"


def test_a_whole_series_that_is_there_already_is_said_to_be_though_its_patches_build_on_each_other(lab: Lab) -> None:
    one, two = changed(20), changed(20, to="char")
    patches = (lab.patch(BASE, one), lab.patch(one, two))
    stripped = [replace(patch, diff=patch.diff.replace(b"index ", b"index 0")) for patch in patches]
    result = apply_series(series(*stripped), lab.tree(two))
    assert (result.status, result.reason) == (Status.FAILED, "the whole series is already in the tree")


def test_a_series_that_changes_nothing_is_a_failure(lab: Lab) -> None:
    there, back = lab.patch(BASE, changed(20)), lab.patch(changed(20), BASE)
    result = apply_series(series(there, back), lab.tree(BASE))
    assert (result.status, result.tree_id) == (Status.FAILED, None)
    assert "changes nothing" in result.reason


def test_a_stack_applies_each_member_by_its_own_method_and_names_the_one_that_fails(lab: Lab) -> None:
    other = {**BASE, LAMP: TEXT.replace("int line_30;", "char line_30;")}
    mailed = replace(series(lab.patch(BASE, changed(10))), name="one")
    port = lab.patch(other, changed(35, text=other[LAMP]))
    misfit = lab.patch({**BASE, LAMP: "x\n"}, {**BASE, LAMP: "y\n"})
    ported = replace(series(misfit, ports={"6.1": (port,)}), name="two")
    stack = series(*mailed.patches, *ported.patches, members=(mailed, ported))
    result = apply_series(stack, lab.tree(other))
    assert (result.status, result.method) == (Status.PASSED, ApplyMethod.PORT)
    assert [patch.method for patch in result.patches] == [ApplyMethod.AS_MAILED, ApplyMethod.PORT]
    assert lab.text(result.tree_id, LAMP).count("long ") == 2
    failed = apply_series(stack, lab.tree(other, release="6.12.1"))
    assert failed.reason.startswith("member two: `lamp: Change it` does not apply")
    assert [patch.status for patch in failed.patches] == [Status.PASSED, Status.FAILED]


def test_missing_and_unexpected_files_are_named(lab: Lab) -> None:
    born = lab.patch(BASE, {**BASE, "born.c": "x\n"})
    without = {"Makefile": "VERSION = 6\n", "born.c": "something else\n"}
    result = apply_series(series(lab.patch(BASE, changed(20))), lab.tree(without))
    (failure,) = result.patches[0].failures
    assert (failure.path, failure.line, failure.reason) == (LAMP, 0, "no such file in the tree")
    result = apply_series(series(replace(born, diff=born.diff.replace(b"index ", b"index 0"))), lab.tree(without))
    assert "the tree has it already" in result.reason


def test_a_patch_cannot_leave_the_tree(lab: Lab) -> None:
    patch = lab.patch(BASE, changed(20))
    outside = replace(patch, diff=patch.diff.replace(b"kernel/lamp.c", b"../../lamp.c"))
    result = apply_series(series(outside), lab.tree(BASE))
    assert (result.status, result.tree_id) == (Status.FAILED, None)


def test_a_repository_that_is_none_is_the_machines_fault(tmp_path: Path, lab: Lab) -> None:
    tree = replace(lab.tree(BASE), repo=tmp_path)
    with pytest.raises(InfrastructureError, match="no git repository"):
        apply_series(series(), tree)
    with pytest.raises(InfrastructureError, match="git cat-file failed"):
        apply_series(series(), replace(lab.tree(BASE), tree_id="0" * 40))


def test_baseline_patches_go_on_first_and_are_no_part_of_what_changed(lab: Lab) -> None:
    below = lab.patch(BASE, {**BASE, "Makefile": "VERSION = 7\n"})
    tree = lab.tree({**BASE, "Makefile": "VERSION = 6\n"})
    both = lab.tree({**changed(20), "Makefile": "VERSION = 7\n"}).tree_id
    one = replace(series(lab.patch(BASE, changed(20))), base=Series("lamp-baseline", "", "", (below,)))
    result = apply_series(one, tree)
    assert (result.status, result.tree_id, result.changed_paths) == (Status.PASSED, both, (LAMP,))


def test_baseline_patches_that_do_not_apply_are_named_as_the_reason(lab: Lab) -> None:
    below = lab.patch({**BASE, "Makefile": "VERSION = 5\n"}, {**BASE, "Makefile": "VERSION = 7\n"})
    one = replace(series(lab.patch(BASE, changed(20))), base=Series("lamp-baseline", "", "", (below,)))
    result = apply_series(one, lab.tree(BASE))
    assert (result.status, result.tree_id) == (Status.FAILED, None)
    assert result.reason.startswith("its baseline patches do not apply: ")


def test_a_patch_of_a_long_series_costs_its_own_files_only(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """165 patches once took eight times as long: each wrote what all before it had changed anew."""
    states = [{f"d{number}/f.c": f"{int(number < done)}\n" for number in range(8)} for done in range(9)]
    patches = tuple(lab.patch(old, new, f"lamp: {i}") for i, (old, new) in enumerate(pairwise(states)))
    tree = lab.tree(states[0])
    made: list[str] = []
    must = PrivateIndex.must

    def counted(self: PrivateIndex, *words: str, stdin: str = "") -> str:
        made.append(words[0])
        return must(self, *words, stdin=stdin)

    monkeypatch.setattr(PrivateIndex, "must", counted)
    result = apply_series(Series("lamps", "", "", patches), tree)
    assert result.tree_id == lab.tree(states[-1]).tree_id
    assert made.count("mktree") == 2 * len(patches)  # the file's directory, and the root
