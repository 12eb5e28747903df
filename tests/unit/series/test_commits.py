# SPDX-License-Identifier: GPL-2.0-or-later
"""A series as commits: what git log shows of it, and that it is the same everywhere."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kpatch_ci.model.build import Tree
from kpatch_ci.model.errors import InfrastructureError, UserError
from kpatch_ci.model.series import Patch, Series
from kpatch_ci.series.apply import apply_series
from kpatch_ci.series.commits import NOBODY, Committed, commit_series, words_of
from kpatch_ci.series.dates import git_date
from tests.unit.series.conftest import Lab, make_patch

DARK = {"kernel/lamp.c": "int lamp;\n", "Makefile": "VERSION = 6\nPATCHLEVEL = 1\n"}
LIT = {**DARK, "kernel/lamp.c": "int lamp = 1;\n"}
BRIGHT = {**DARK, "kernel/lamp.c": "int lamp = 2;\n"}
DATE = "Mon, 5 Jan 2026 10:00:00 +0130"


def series(*patches: Patch) -> Series:
    return Series("lamps", "Lamps", "", patches)


def two(lab: Lab) -> tuple[Series, Tree]:
    first = replace(lab.patch(DARK, LIT, "lamp: Light it"), date=DATE, message="Dark.\n\nSigned-off-by: A <a@b>")
    second = replace(lab.patch(LIT, BRIGHT, "lamp: Be bright"), author="Ädä, Exämple", date="", message="")
    return series(first, second), lab.tree(DARK)


def committed(lab: Lab, one: Series, tree: Tree, branch: str = "") -> Committed:
    return commit_series(one, apply_series(one, tree), tree, branch)


def log(lab: Lab, commit: str, form: str) -> str:
    return str(lab.repo.git.show("-s", f"--format={form}", commit))


def test_each_patch_is_a_commit_by_its_author_at_its_date(lab: Lab) -> None:
    one, tree = two(lab)
    made = committed(lab, one, tree)
    first, second = made.commits
    assert (
        log(lab, first, "%an|%ae|%ad|%s")
        == "Ada Example|ada@lamps.example|Mon Jan 5 10:00:00 2026 +0130|lamp: Light it"
    )
    assert log(lab, first, "%B") == "lamp: Light it\n\nDark.\n\nSigned-off-by: A <a@b>\n"
    assert log(lab, first, "%cn|%ce|%cd") == "kpatch-ci|kpatch-ci@localhost|Thu Jan 1 00:00:00 1970 +0000"
    assert log(lab, second, "%an|%ad|%B|%P") == f"Ädä, Exämple|Thu Jan 1 00:00:00 1970 +0000|lamp: Be bright\n|{first}"
    assert lab.text(f"{second}^{{tree}}", "kernel/lamp.c") == "int lamp = 2;\n"
    assert lab.text(f"{first}^{{tree}}", "kernel/lamp.c") == "int lamp = 1;\n"
    assert made.notes == ("`lamp: Be bright` has no date that can be used: committed as of 1970",)


def test_the_same_mails_on_the_same_tree_are_the_same_commits(lab: Lab) -> None:
    one, tree = two(lab)
    assert committed(lab, one, tree).commits == committed(lab, one, tree).commits


def test_they_stand_on_the_trees_own_commit_and_a_branch_names_the_last(lab: Lab) -> None:
    one, tree = two(lab)
    base = lab.commit(DARK, "base")
    made = committed(lab, one, replace(tree, commit=base), "lamps/tested")
    assert log(lab, made.commits[0], "%P") == base
    assert str(lab.repo.git.rev_parse("refs/heads/lamps/tested")) == made.commits[1]


def test_nobodys_patch_is_committed_as_nobodys(lab: Lab) -> None:
    patch = replace(lab.patch(DARK, LIT), author="", email="", date=DATE)
    made = committed(lab, series(patch), lab.tree(DARK))
    assert log(lab, made.commits[0], "%an <%ae>") == f"nobody named <{NOBODY}>"
    assert made.notes == ("`lamp: Change it` names no author: committed as by nobody named",)


@pytest.mark.parametrize(
    ("author", "email", "shown"),
    [
        ("", "ada@lamps.example", "ada <ada@lamps.example>"),
        ("Ada <lamps>\nEve", "a>b@c", "Ada lamps Eve <a b@c>"),
        ("Ada\x00\x1b[31m", "", f"Ada [31m <{NOBODY}>"),
    ],
)
def test_a_name_cannot_break_the_commit(lab: Lab, author: str, email: str, shown: str) -> None:
    patch = replace(lab.patch(DARK, LIT), author=author, email=email, date=DATE)
    made = committed(lab, series(patch), lab.tree(DARK))
    assert log(lab, made.commits[0], "%an <%ae>") == shown


@pytest.mark.parametrize("branch", ["-x", "a..b", "a b", "refs/../x", "HEAD.lock"])
def test_a_bad_name_for_a_branch_is_refused(lab: Lab, branch: str) -> None:
    one, tree = two(lab)
    with pytest.raises(UserError, match="no name for a branch"):
        committed(lab, one, tree, branch)


def test_a_series_that_did_not_apply_has_no_commits(lab: Lab) -> None:
    one = series(lab.patch(LIT, BRIGHT))
    tree = lab.tree(DARK)
    with pytest.raises(UserError, match="lamps did not apply"):
        committed(lab, one, tree)


def test_a_repository_that_is_gone_is_the_machines_fault(lab: Lab) -> None:
    one, tree = two(lab)
    with pytest.raises(InfrastructureError, match="no git repository at"):
        commit_series(one, apply_series(one, tree), replace(tree, repo=lab.path / "absent"))


@pytest.mark.parametrize(
    ("message", "trailers", "expected"),
    [
        ("", (), "lamp: x\n"),
        ("Text.", (), "lamp: x\n\nText.\n"),
        ("", ("Acked-by: A <a@b>",), "lamp: x\n\nAcked-by: A <a@b>\n"),
        ("Text.", ("Acked-by: A <a@b>",), "lamp: x\n\nText.\n\nAcked-by: A <a@b>\n"),
        (
            "Text.\n\nSigned-off-by: B <b@b>",
            ("Acked-by: A <a@b>", "Signed-off-by: B <b@b>"),
            "lamp: x\n\nText.\n\nSigned-off-by: B <b@b>\nAcked-by: A <a@b>\n",
        ),
    ],
)
def test_trailers_of_replies_stand_below_those_of_the_mail(
    message: str, trailers: tuple[str, ...], expected: str
) -> None:
    patch = replace(make_patch(b"", "lamp: x"), message=message, trailers=trailers)
    assert words_of(patch).message == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Tue, 24 Jul 2012 03:13:10 +0100", "1343095990 +0100"),
        ("Mon Sep 17 00:00:00 2001 -0730", "1000711800 -0730"),
        ("2024-02-29 10:00:00 +0530", "1709181000 +0530"),
        ("2024-02-29T10:00:00Z", "1709200800 +0000"),
        ("2024-02-29", "1709164800 +0000"),
        ("Wed, 25 Nov 2015 16:19:01 +0000 (UTC)", "1448468341 +0000"),
        ("Tue, 24 Jul 2012 03:13:10 EST", "1343117590 -0500"),
        ("@123 +0200", "123 +0200"),
        ("Mon, 1 Jan 1601 00:00:00 +0000", ""),
        ("Fri, 31 Dec 9999 23:59:59 +9999", ""),
        ("Thu, 17 Jan 2013", ""),
        ("yesterday", ""),
        ("", ""),
    ],
)
def test_dates_keep_their_zone_and_nonsense_is_no_date(text: str, expected: str) -> None:
    assert git_date(text) == expected
