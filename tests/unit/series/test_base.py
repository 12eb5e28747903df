# SPDX-License-Identifier: GPL-2.0-or-later
"""Finding the commits that a series was made for, in small histories."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kpatch_ci.model.base import BaseReport
from kpatch_ci.model.build import Tree
from kpatch_ci.model.series import Fit, Patch
from kpatch_ci.model.status import Status
from kpatch_ci.series.apply import apply_series
from kpatch_ci.series.base import find_base, wanted, with_history
from tests.fakes.history import make_history, path_of
from tests.unit.series.conftest import make_patch, make_series

if TYPE_CHECKING:
    from tests.unit.series.conftest import Lab

A, B = "kernel/a.c", "kernel/b.c"
TEXT = "".join(f"int line_{i};\n" for i in range(1, 31))


def files(a: int = 0, b: int = 0, **more: str) -> dict[str, str]:
    """Two files in some version; version 0 is the first."""
    return {A: TEXT + f"int a_{a};\n", B: TEXT + f"int b_{b};\n", "Makefile": "VERSION = 6\n", **more}


def patch_of(lab: Lab, before: dict[str, str]) -> Patch:
    """A patch that changes line 5 of both files as they are there."""
    after = {**before, **{name: before[name].replace("int line_5;", "long line_5;") for name in (A, B)}}
    return lab.patch(before, after)


def bases(report: BaseReport) -> list[tuple[str, int, int, Fit | None]]:
    return [(c.subject, c.matched, c.wanted, c.fit) for c in report.candidates]


@pytest.fixture
def line(lab: Lab) -> list[str]:
    """Six commits in a row: a0 b0, a1 b0, a1 b1, (a1 b1), a2 b1, a2 b2; a later version of a file replaces its last line."""
    commits: list[str] = []
    versions = [(0, 0), (1, 0), (1, 1), (1, 1), (2, 1), (2, 2)]
    for day, (a, b) in enumerate(versions, 1):
        more = {"other.c": f"{day}\n"}
        commits.append(lab.commit(files(a, b, **more), f"day {day}: a{a} b{b}", *commits[-1:], day=day))
    return commits


def test_the_newest_commit_with_every_blob_comes_first(lab: Lab, line: list[str]) -> None:
    report = find_base(make_series(patch_of(lab, files(1, 1))), lab.at(line[-1]))
    assert bases(report)[0] == ("day 4: a1 b1", 2, 2, Fit.AS_MAILED)
    assert (report.candidates[0].commit, report.candidates[0].date) == (line[3], "2020-01-04")
    assert report.complete
    assert report.commits == 5  # those that touch a.c or b.c, the first included


def test_a_tree_that_has_every_blob_is_its_own_base_without_a_walk(lab: Lab, line: list[str]) -> None:
    report = find_base(make_series(patch_of(lab, files(2, 2))), lab.at(line[-1]))
    assert (bases(report), report.commits) == ([("day 6: a2 b2", 2, 2, Fit.AS_MAILED)], 0)


def test_where_no_commit_has_all_the_best_are_shown_with_what_differs(lab: Lab, line: list[str]) -> None:
    report = find_base(make_series(patch_of(lab, files(0, 2))), lab.at(line[-1]))
    (first, second) = report.candidates
    assert (first.matched, first.wanted, first.source, first.differing) == (1, 2, "tree", (A,))
    assert (second.subject, second.differing) == ("day 1: a0 b0", (B,))


def test_a_base_that_the_series_names_comes_first(lab: Lab, line: list[str]) -> None:
    patch = replace(patch_of(lab, files(1, 1)), base_commit=line[2])
    report = find_base(make_series(patch), lab.at(line[-1]))
    assert next((c.commit, c.source) for c in report.candidates) == (line[2], "trailer")
    unknown = replace(patch, base_commit="1234567890abcdef1234567890abcdef12345678")
    report = find_base(make_series(unknown), lab.at(line[-1]))
    assert report.notes == ("base-commit 1234567890ab is not in this repository",)
    assert report.candidates[0].commit == line[3]


def test_a_base_on_a_branch_that_was_merged_is_found(lab: Lab) -> None:
    root = lab.commit(files(), "root", day=1)
    left = lab.commit(files(a=7), "topic", root, day=2)
    right = lab.commit(files(b=8), "main", root, day=3)
    merge = lab.commit(files(7, 8), "merge", right, left, day=4)
    head = lab.commit(files(9, 9), "head", merge, day=5)
    assert bases(find_base(make_series(patch_of(lab, files(a=7))), lab.at(head)))[0][0] == "topic"
    assert bases(find_base(make_series(patch_of(lab, files(b=8))), lab.at(head)))[0][0] == "main"
    assert bases(find_base(make_series(patch_of(lab, files(7, 8))), lab.at(head)))[0][0] == "merge"


def test_a_merge_that_took_the_other_side_does_not_hide_the_base(lab: Lab) -> None:
    """git's history simplification would leave the branch out: nothing of it is left."""
    root = lab.commit(files(), "root", day=1)
    topic = lab.commit(files(a=7), "topic", root, day=2)
    merge = lab.commit(
        files(b=1), "merge that drops the topic", lab.commit(files(b=1), "main", root, day=3), topic, day=4
    )
    assert bases(find_base(make_series(patch_of(lab, files(a=7))), lab.at(merge)))[0][0] == "topic"


def test_a_new_file_must_not_be_there(lab: Lab, line: list[str]) -> None:
    before = files(2, 2)
    patch = lab.patch(before, {**before, "new.c": "x\n"})
    head = lab.commit(files(2, 2, **{"new.c": "y\n"}), "adds it", line[-1], day=9)
    report = find_base(make_series(patch), lab.at(head))
    assert bases(report)[0] == ("day 6: a2 b2", 1, 1, Fit.AS_MAILED)


def test_of_a_series_the_first_patch_of_each_file_says_what_it_was() -> None:
    def diff(path: str, old: str, new: str) -> bytes:
        text = f"diff --git a/{path} b/{path}\nindex {old}..{new} 100644\n--- a/{path}\n+++ b/{path}\n"
        return (text + "@@ -1 +1 @@\n-a\n+b\n").encode()

    one, two = make_patch(diff("x", "aaaaaaa", "bbbbbbb")), make_patch(diff("x", "bbbbbbb", "ccccccc"))
    rename = make_patch(
        b"diff --git a/x b/y\nsimilarity index 90%\nrename from x\nrename to y\nindex ccccccc..ddddddd 100644\n"
        b"--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n"
    )
    found = wanted([one, two, rename])
    assert (found.before, found.after, found.paths) == ({"x": "aaaaaaa"}, {"x": "", "y": "ddddddd"}, ("x", "y"))


def test_without_index_lines_older_commits_are_tried_out(lab: Lab) -> None:
    old, new = files(), {**files(), A: TEXT.replace("int line_4;", "char line_4;") + "int a_0;\n"}
    commits = [lab.commit(old, "day 1", day=1)]
    commits.append(lab.commit({**old, "other.c": "x\n"}, "day 2", *commits, day=2))
    commits.append(lab.commit(new, "day 3 breaks it", commits[-1], day=3))
    for day in range(4, 12):
        commits.append(lab.commit({**new, B: f"{day}\n"}, f"day {day}", commits[-1], day=day))
    patch = lab.patch(old, {**old, A: old[A].replace("int line_5;", "long line_5;")})
    stripped = replace(patch, diff=re.sub(rb"(?m)^index .*\n", b"", patch.diff))
    report = find_base(make_series(stripped), lab.at(commits[-1]))
    assert [(c.subject, c.source, c.fit) for c in report.candidates][-1] == ("day 2", "tried", Fit.AS_MAILED)
    assert report.notes == ("its diffs have no index lines: there are no blobs to look for",)


def test_a_base_on_another_branch_is_hinted_at(lab: Lab, line: list[str]) -> None:
    other = lab.commit(files(5, 5), "another branch", line[0], day=9)
    patch = patch_of(lab, files(5, 5))
    report = find_base(make_series(patch), lab.at(line[-1]))
    assert any("try another branch" in note for note in report.notes)
    assert bases(find_base(make_series(patch), lab.at(other)))[0][:3] == ("another branch", 2, 2)


def test_a_blob_that_is_nowhere_is_said_at_once(lab: Lab, line: list[str]) -> None:
    patch = patch_of(lab, files(1, 1))
    strange = replace(patch, diff=patch.diff.replace(b"\nindex ", b"\nindex 0"))
    report = find_base(make_series(strange), lab.at(line[-1]))
    assert "2 of 2 files, as the series was made for them, are nowhere in it" in report.notes


def test_files_that_once_were_as_the_series_leaves_them_mean_superseded(lab: Lab, line: list[str]) -> None:
    patch = patch_of(lab, files(2, 2))
    after = {n: t.replace("int line_5;", "long line_5;") if n in (A, B) else t for n, t in files(2, 2).items()}
    applied = lab.commit(after, "somebody took it", line[-1], day=7)
    later = {n: t.replace("long line_5;", "char line_5;") for n, t in after.items()}
    head = lab.commit(later, "and changed it", applied, day=8)
    result = apply_series(make_series(patch), lab.at(head))
    assert result.fit is Fit.CONFLICT
    report = find_base(make_series(patch), lab.at(head))
    (found,) = report.in_history
    assert (found.commit, found.date) == (applied, "2020-01-07")
    assert found.why == "the files were exactly as the series leaves them"
    told = with_history(result, report)
    assert (told.fit, told.status) == (Fit.SUPERSEDED, Status.FAILED)
    assert told.reason.startswith(
        f"superseded: the files were exactly as the series leaves them ({applied[:12]}, 2020-01-07)"
    )


def test_a_commit_of_the_same_subject_means_superseded_too(lab: Lab, line: list[str]) -> None:
    patch = replace(patch_of(lab, files(2, 2)), subject="lamp: Another version")
    changed = {n: t.replace("int line_5;", "short line_5;") for n, t in files(2, 2).items()}
    head = lab.commit(changed, "lamp: Another version", line[-1], day=7)
    report = find_base(make_series(patch), lab.at(head))
    assert [(f.patch, f.commit) for f in report.in_history] == [("lamp: Another version", head)]
    assert with_history(apply_series(make_series(patch), lab.at(head)), report).fit is Fit.SUPERSEDED


def test_a_series_that_applies_is_never_called_superseded(lab: Lab, line: list[str]) -> None:
    patch = replace(patch_of(lab, files(1, 2)), subject="day 2: a1 b0")
    result = apply_series(make_series(patch), lab.at(line[-1]))
    report = find_base(make_series(patch), lab.at(line[-1]))
    assert report.in_history
    assert with_history(result, report) is result


def test_a_search_that_runs_out_of_time_says_so(lab: Lab, line: list[str]) -> None:
    report = find_base(make_series(patch_of(lab, files(0, 0))), lab.at(line[-1]), seconds=0)
    assert not report.complete
    assert any("time ran out" in note for note in report.notes)


def test_a_base_in_a_longer_history_is_the_newest_that_has_the_files(tmp_path: Path, lab: Lab) -> None:
    """A hundred commits with merges: what is found is compared with a look at every commit."""
    repo = make_history(tmp_path / "history", 100, directories=3, files=5, merges=0.3)
    paths = [path_of(number, 5) for number in (0, 4, 9)]
    commits = str(repo.git.rev_list("master")).split()
    has = {c: [line.split()[2] for line in str(repo.git.ls_tree(c, "--", *paths)).splitlines()] for c in commits}
    by_path = sorted(paths)
    for base in (commits[5], commits[60], commits[95]):
        same = [c for c in commits if has[c] == has[base]]
        below = {c: set(str(repo.git.rev_list(f"{c}^@")).split()) for c in same}
        tops = [c for c in same if not any(c in below[other] for other in same)]
        diff = b""
        for path, blob in zip(by_path, has[base], strict=True):
            text = str(repo.git.cat_file("blob", blob)).split("\n")
            hunk = f"@@ -1,4 +1,4 @@\n-{text[0]}\n+int changed;\n {text[1]}\n {text[2]}\n {text[3]}\n"
            index = f"index {blob[:12]}..{'1' * 12} 100644"
            diff += f"diff --git a/{path} b/{path}\n{index}\n--- a/{path}\n+++ b/{path}\n{hunk}".encode()
        tree_id = str(repo.git.rev_parse("master^{tree}"))
        report = find_base(
            make_series(make_patch(diff)), Tree("history", "6.1", Path(repo.git_dir), commits[0], tree_id, "")
        )
        full = [c for c in report.candidates if c.matched == c.wanted]
        assert full[0].commit in tops
        assert {c.fit for c in full} == {Fit.AS_MAILED}
