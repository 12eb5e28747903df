# SPDX-License-Identifier: GPL-2.0-or-later
"""Patches that reach out of their tree, and patches that do not look like what they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpatch_ci.model.errors import UserError
from kpatch_ci.model.series import Series
from kpatch_ci.model.status import Status
from kpatch_ci.series.apply import apply_series
from kpatch_ci.series.intake import read_patches
from kpatch_ci.series.safety import FLAG, inspect, visible
from tests.unit.series.conftest import Lab, make_patch

RLO, PDI, ZWSP = "\u202e", "\u2069", "\u200b"


def diff(path: str = "mm/slub.c", added: str = "new", mode: str = "") -> str:
    head = f"diff --git a/{path} b/{path}\n" + (f"new file mode {mode}\n" if mode else "")
    before = "/dev/null" if mode else f"a/{path}"
    return f"{head}--- {before}\n+++ b/{path}\n@@ -{'0,0' if mode else '1'} +1 @@\n{'' if mode else '-old' + chr(10)}+{added}\n"


def read(tmp_path: Path, text: str) -> tuple[str, ...]:
    file = tmp_path / "a.diff"
    file.write_text(text)
    return tuple(note for patch in read_patches(file) for note in patch.notes if note.startswith(FLAG))


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("../../etc/passwd", "no path inside of a tree"),
        ("mm/../../x", "no path inside of a tree"),
        ("/etc/passwd", "no path inside of a tree"),
        ("mm//x", "no path inside of a tree"),
        ("mm/./x", "no path inside of a tree"),
        (".git/hooks/post-checkout", "git's own files"),
        ("mm/.GIT/config", "git's own files"),
        ("GIT~1/config", "git's own files"),
        (f"mm/{'a' * 256}.c", "a name of 261 bytes"),
        (f"mm/{RLO}c.bulsc", r"U\+202E"),
        (f"mm/slub{ZWSP}.c", r"U\+200B"),
    ],
)
def test_a_name_that_is_not_a_plain_file_of_the_tree_is_refused(tmp_path: Path, path: str, why: str) -> None:
    with pytest.raises(UserError, match=rf"refused: .*{why}") as caught:
        read(tmp_path, diff(path))
    assert RLO not in str(caught.value)


def test_a_control_character_in_a_quoted_name_is_refused_and_shown_by_number() -> None:
    with pytest.raises(UserError, match=r"<U\+001B>\[2J.*holds U\+001B"):
        inspect(b"", ["mm/\x1b[2Jslub.c"], "a.diff:1")


@pytest.mark.parametrize("path", [".gitignore", "mm/.gitattributes", "a..b/c", "mm/..c", "Documentation/\u00fc.rst"])
def test_names_that_only_look_like_it_are_taken(tmp_path: Path, path: str) -> None:
    assert read(tmp_path, diff(path)) == ()


@pytest.mark.parametrize("target", ["/etc/passwd", "../../../x", "a/../../x", "../q/../../x", "../../..", "s/../x"])
def test_a_link_that_leads_out_of_the_tree_is_refused(tmp_path: Path, target: str) -> None:
    with pytest.raises(UserError, match="leads out of the tree"):
        read(tmp_path, diff("tools/p/link", target, "120000"))


@pytest.mark.parametrize("target", ["slub.c", "../../mm", "../q/x", "./a/b"])
def test_a_link_inside_of_the_tree_is_taken(tmp_path: Path, target: str) -> None:
    """scripts/dtc/include-prefixes is full of them."""
    assert read(tmp_path, diff("tools/p/link", target, "120000")) == ()


def test_a_link_that_changes_is_looked_at_too(tmp_path: Path) -> None:
    text = diff("link", "/etc").replace("--- a", "index 1111111..2222222 120000\n--- a", 1)
    with pytest.raises(UserError, match="leads out of the tree, to '/etc'"):
        read(tmp_path, text)


def test_a_submodule_and_a_binary_file_of_absurd_size_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="refused: a submodule"):
        read(tmp_path, diff("sub", f"Subproject commit {'1' * 40}", "160000"))
    bomb = b"diff --git a/x b/x\nGIT binary patch\nliteral 99999999999\nzcmV\n\n"
    with pytest.raises(UserError, match="refused: a binary file of 99999999999 bytes"):
        inspect(bomb, ["x"], "a.diff")


def test_characters_that_reorder_or_hide_code_are_flagged_with_file_and_line(tmp_path: Path) -> None:
    """The trick: a comment that seems to end before the code behind it does."""
    text = (
        "--- a/mm/slub.c\n+++ b/mm/slub.c\n@@ -7,2 +9,4 @@\n context\n+plain\n"
        f"+/* {RLO} }} if (admin) {PDI} */\n-gone{RLO}\n+int user{ZWSP};\n"
    )
    assert read(tmp_path, text) == (
        f"{FLAG}mm/slub.c:11 holds U+202E, U+2069, which changes the direction of text:"
        " /* <U+202E> } if (admin) <U+2069> */",
        f"{FLAG}mm/slub.c:12 holds U+200B, which is invisible: int user<U+200B>;",
    )


def test_a_line_of_content_that_looks_like_a_header_is_content(tmp_path: Path) -> None:
    text = "--- a/x.c\n+++ b/x.c\n@@ -1,2 +1,2 @@\n--- a/../../etc/passwd\n-new file mode 160000\n+++ b/../x\n+@@ -1 +1 @@\n"
    assert read(tmp_path, text) == ()


def test_many_such_lines_are_counted(tmp_path: Path) -> None:
    body = "".join(f"+{RLO}{n}\n" for n in range(9))
    flags = read(tmp_path, f"--- a/x.c\n+++ b/x.c\n@@ -0,0 +1,9 @@\n{body}")
    assert len(flags) == 6
    assert flags[-1] == f"{FLAG}4 more such lines"


def test_the_mails_own_words_are_looked_at(tmp_path: Path) -> None:
    mail = f"From: A{RLO} <a@example.org>\nSubject: [PATCH] mm: it \x1b[31m\n\ntext\n---\n{diff()}"
    flags = read(tmp_path, mail)
    assert [flag.split(" holds ")[0] for flag in flags] == [f"{FLAG}the subject", f"{FLAG}the author"]


def test_form_feeds_and_tabs_are_as_kernel_sources_have_them(tmp_path: Path) -> None:
    assert read(tmp_path, diff(added="a\tb\f")) == ()
    assert visible(f"a{RLO}b\x1b") == "a<U+202E>b<U+001B>"


def test_a_patch_never_writes_through_a_link_that_another_one_made(lab: Lab) -> None:
    """The first makes a link, the second changes a file behind it: git refuses, and so do our own ways to place hunks."""
    tree = lab.tree({"mm/slub.c": "old\n"})
    link = make_patch(diff("a", "mm", "120000").encode())
    for fuzz in (0, 2):
        series = Series("x", "x", "", (link, make_patch(diff("a/slub.c").encode())))
        result = apply_series(series, tree, fuzz=fuzz)
        assert result.status is Status.FAILED
        assert [patch.status for patch in result.patches] == [Status.PASSED, Status.FAILED]


def test_a_refused_patch_that_is_not_the_one_taken_refuses_nothing(tmp_path: Path) -> None:
    """A first revision that reached out of the tree, and a second that does not."""
    mails = [
        f"From a@example.org Mon Nov 30 12:00:00 2026\nFrom: A <a@example.org>\nSubject: [PATCH{tag}] mm: it\n\ntext\n---\n"
        for tag in ("", " v2")
    ]
    file = tmp_path / "thread.mbox"
    file.write_text(f"{mails[0]}{diff('../x')}\n{mails[1]}{diff('mm/slub.c')}")
    (patch,) = read_patches(file)
    assert patch.paths == ("mm/slub.c",)
    file.write_text(f"{mails[0]}{diff('mm/slub.c')}\n{mails[1]}{diff('../x')}")
    with pytest.raises(UserError, match="refused"):
        read_patches(file)
