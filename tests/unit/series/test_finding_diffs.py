# SPDX-License-Identifier: GPL-2.0-or-later
"""Diffs are found and cut byte for byte."""

from __future__ import annotations

import difflib

from hypothesis import given
from hypothesis import strategies as st

from kpatch_ci.series.diff import Diff, find_diff, preimage_blobs
from kpatch_ci.series.letter import split_lines

GOOD = b"diff --git a/x.c b/x.c\nindex 123456789..abcdef012 100644\n--- a/x.c\n+++ b/x.c\n@@ -1 +1 @@\n-a\n+b\n"


def find(data: bytes) -> Diff:
    found = find_diff(split_lines(data), str)
    assert found is not None
    return found


def test_there_may_be_none() -> None:
    assert find_diff(split_lines(b"--- a\nwords\n diff --git a/x b/x\n"), str) is None


def test_words_before_and_after_are_not_part_of_it() -> None:
    found = find(b"words\n---\n x.c | 2 +-\n\n" + GOOD + b"-- \n2.40\n_______\nlist footer\n")
    assert (found.data, found.cut) == (GOOD, 1)


def test_carriage_returns_of_the_transport_go_and_those_of_the_file_stay() -> None:
    assert find(GOOD.replace(b"\n", b"\r\n")).data == GOOD
    of_the_file = GOOD.replace(b"-a\n+b\n", b"-a\r\n+b\r\n")
    assert find(of_the_file).data == of_the_file
    assert find(of_the_file.replace(b"\n", b"\r\n")).data == of_the_file


def test_the_marker_of_a_missing_newline_in_the_file_stays() -> None:
    data = GOOD.replace(b"+b\n", b"+b\n\\ No newline at end of file\n")
    assert find(data + b"-- \n2.40\n").data == data


def test_renames_modes_binary_and_new_files_name_their_paths() -> None:
    data = (
        b"diff --git a/old b/new\nsimilarity index 100%\nrename from old\nrename to new\n"
        b"diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n"
        b"diff --git a/pic b/pic\nnew file mode 100644\nindex 0000000..1234567\nGIT binary patch\nliteral 2\nJcmZQz1ONa700IC2\n\n"
        b"literal 0\nHcmV?d00001\n\n"
        b"diff --git a/born.c b/born.c\nnew file mode 100644\n--- /dev/null\n+++ b/born.c\n@@ -0,0 +1 @@\n+x\n"
        b"diff --git a/dead.c b/dead.c\ndeleted file mode 100644\n--- a/dead.c\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
        b'diff --git "a/f\\303\\274.c" "b/f\\303\\274.c"\n--- "a/f\\303\\274.c"\n+++ "b/f\\303\\274.c"\n@@ -1 +1 @@\n-x\n+y\n'
    )
    found = find(data + b"\n-- \n2.40\n")
    assert found.data == data
    assert found.paths == ("old", "new", "run.sh", "pic", "born.c", "dead.c", "fü.c")


def test_a_diff_without_a_git_header_is_found_with_its_time_stamps() -> None:
    data = b"--- linux.orig/x.c\t2026-01-01 00:00:00\n+++ linux/x.c\t2026-01-02 00:00:00\n@@ -1 +1 @@\n-a\n+b\n"
    found = find(b"Index: linux/x.c\n=======\n" + data)
    assert (found.data, found.paths) == (data, ("x.c",))


def test_a_removed_line_that_looks_like_a_file_name_or_a_signature_is_part_of_its_hunk() -> None:
    data = b"--- a/x.sql\n+++ b/x.sql\n@@ -1,3 +1,1 @@\n--- a comment\n-- \n a\n"
    assert find(data).data == data


def test_preimage_blobs_leave_out_new_files() -> None:
    new = (
        b"diff --git a/n b/n\nnew file mode 100644\nindex 0000000..1234567\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n"
    )
    assert preimage_blobs(GOOD + new) == ("123456789",)


LINES = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n\r"), max_size=8), max_size=30)


@given(old=LINES, new=LINES, words=st.lists(st.sampled_from(["words", "", "> quoted", " indented"]), max_size=5))
def test_any_diff_is_cut_out_of_a_mail_unchanged(old: list[str], new: list[str], words: list[str]) -> None:
    made = list(difflib.unified_diff([f"{x}\n" for x in old], [f"{x}\n" for x in new], "a/f", "b/f"))
    if not made:
        return
    diff = "".join(made).encode()
    mail = "".join(f"{word}\n" for word in words).encode() + b"---\n f | 2 +-\n\n" + diff + b"-- \n2.40.1\n\n"
    found = find(mail)
    assert (found.data, found.paths, found.cut) == (diff, ("f",), len(words))
