# SPDX-License-Identifier: GPL-2.0-or-later
"""What happens to diffs on their way: repaired and said, or refused with the line; a hunk is never lost without a word."""

from __future__ import annotations

import base64
import textwrap
import zlib
from pathlib import Path

import git
import pytest

from kpatch_ci.model.errors import UserError
from kpatch_ci.model.series import Patch
from kpatch_ci.series.diff import find_diff
from kpatch_ci.series.intake import read_patches
from kpatch_ci.series.letter import split_lines
from tests.fakes.mails import STAT, WORDS, body_of, diff_of, mail, mbox

TWO_HUNKS = diff_of() + b"@@ -40,3 +40,3 @@ int lamp_off(void)\n \treturn 0;\n-}\n+} /* off */\n \n"


def read(tmp_path: Path, data: bytes) -> Patch:
    file = tmp_path / "x.eml"
    file.write_bytes(data)
    (patch,) = read_patches(file)
    return patch


def refused(tmp_path: Path, data: bytes) -> UserError:
    file = tmp_path / "x.eml"
    file.write_bytes(data)
    with pytest.raises(UserError) as caught:
        read_patches(file)
    assert caught.value.where
    assert caught.value.expected
    return caught.value


def line_of(data: bytes, text: bytes) -> int:
    return data[: data.index(text)].count(b"\n") + 1


def flowed(body: bytes, *, delsp: bool = False, stuffed: bool = True, width: int = 40) -> bytes:
    """A body as a program that says format=flowed sends it: wrapped with a blank at the end, blanks stuffed."""
    lines = []
    for line in body.decode().split("\n"):
        text = (
            f" {line}"
            if stuffed and line.startswith(" ") and line.strip()
            else line.rstrip()
            if not line.strip()
            else line
        )
        while len(text) > width and " " in text[10:width]:
            cut = text.rindex(" ", 10, width) + 1
            lines.append(text[:cut] + (" " if delsp else ""))
            text = text[cut:]
        lines.append(text)
    return "\n".join(lines).encode()


LONG = (
    diff_of()
    .replace(b"+int lamp;", b"+int lamp; /* a comment that is much too long for one line of a mail */")
    .replace(b" \n", b"\n")
)
FLOWED = {"MIME-Version": "1.0", "Content-Type": "text/plain; charset=utf-8; format=flowed"}


@pytest.mark.parametrize("delsp", [False, True])
@pytest.mark.parametrize("stuffed", [False, True])
@pytest.mark.parametrize("width", [40, 1000])
def test_a_flowed_mail_is_put_together_again_and_that_is_said(
    tmp_path: Path, delsp: bool, stuffed: bool, width: int
) -> None:
    headers = FLOWED | {"Content-Type": FLOWED["Content-Type"] + ("; delsp=yes" if delsp else "")}
    body = flowed(body_of(LONG), delsp=delsp, stuffed=stuffed, width=width)
    assert (b"much too long" not in body) == (width == 40)
    patch = read(tmp_path, mail(body=body, headers=headers))
    assert patch.diff == LONG
    assert any(note.startswith("format=flowed: ") for note in patch.notes)
    assert any("the blank that it puts" in note for note in patch.notes) == stuffed


def test_a_flowed_mail_without_a_diffstat_shows_its_stuffing_in_its_context(tmp_path: Path) -> None:
    for stuffed in (False, True):
        body = flowed(body_of(LONG, stat=b""), stuffed=stuffed)
        assert read(tmp_path, mail(body=body, headers=FLOWED)).diff == LONG


def test_a_flowed_mail_that_lost_lines_is_refused(tmp_path: Path) -> None:
    body = flowed(body_of(LONG)).replace(b"  int lamp_level;\n", b"")
    assert "hunk" in refused(tmp_path, mail(body=body, headers=FLOWED)).what


def test_a_wrapped_line_is_named(tmp_path: Path) -> None:
    data = mail(body=body_of(LONG.replace(b"too long ", b"too long\n")))
    error = refused(tmp_path, data)
    assert "begins with neither a blank nor + nor -: 'for one line of a mail */'" in error.what
    assert error.where == f"{tmp_path / 'x.eml'}:{line_of(data, b'for one line')}"


def test_a_line_that_lost_its_blank_and_one_that_has_another_sort_of_blank_are_named(tmp_path: Path) -> None:
    data = mail(body=body_of(diff_of().replace(b"\n int lamp_level", b"\nint lamp_level")))
    assert refused(tmp_path, data).where == f"{tmp_path / 'x.eml'}:{line_of(data, b'int lamp_level')}"
    error = refused(
        tmp_path, mail(body=body_of(diff_of().replace(b"\n int lamp_level", "\n\u00a0int lamp_level".encode())))
    )
    assert "no-break space" in error.what


def test_tabs_that_became_blanks_are_suspected(tmp_path: Path) -> None:
    patch = read(tmp_path, mail(body=body_of(diff_of().replace(b"\t", b" " * 8))))
    assert any(
        note.startswith("no tab in the diff: a mail program may have made blanks of them") for note in patch.notes
    )
    assert not any("no tab" in note for note in read(tmp_path, mail()).notes)


def test_blanks_at_the_ends_of_lines_that_a_program_took_away_do_no_harm(tmp_path: Path) -> None:
    stripped = b"\n".join(line.rstrip() for line in diff_of().replace(b"--- \n", b"-//\n").split(b"\n"))
    assert read(tmp_path, mail(diff=stripped)).diff == stripped


@pytest.mark.parametrize("between", [b"\n", b"some words\n", b"\n\n> quoted\n\n"])
def test_a_hunk_behind_a_line_that_is_none_is_an_error_not_lost(tmp_path: Path, between: bytes) -> None:
    data = mail(body=body_of(TWO_HUNKS.replace(b"@@ -40", between + b"@@ -40")))
    error = refused(tmp_path, data)
    assert error.what == "a hunk without the names of its file above it"
    assert error.where == f"{tmp_path / 'x.eml'}:{line_of(data, b'@@ -40')}"


@pytest.mark.parametrize(
    "lost", [b"--- a/kernel/lamp.c\n", b"+++ b/kernel/lamp.c\n", b"--- a/kernel/lamp.c\n+++ b/kernel/lamp.c\n"]
)
def test_a_hunk_whose_files_name_is_lost_is_an_error(tmp_path: Path, lost: bytes) -> None:
    assert "names" in refused(tmp_path, mail(body=body_of(diff_of().replace(lost, b"")))).what


def test_the_names_of_the_first_file_lost_are_missed(tmp_path: Path) -> None:
    first = diff_of().partition(b"@@")[1] + diff_of().partition(b"@@")[2]
    error = refused(tmp_path, mail(body=body_of(first + diff_of(path="kernel/b.c"))))
    assert error.what == "a hunk without the names of its file above it"


def test_hunks_that_are_lost_from_a_file_are_missed(tmp_path: Path) -> None:
    bare = diff_of().partition(b"@@")[0]
    assert refused(tmp_path, mail(body=body_of(bare))).what == "no hunk follows the names of the files"
    headers_only = b"\n".join(bare.split(b"\n")[:2]) + b"\n"
    assert (
        refused(tmp_path, mail(body=body_of(headers_only + diff_of(path="b.c")))).what
        == "no hunk follows the names of the files"
    )


@pytest.mark.parametrize("gap", [b"", b"\n", b"\n\n"])
@pytest.mark.parametrize("line", [b"+int more;\n", b"-\tgone;\n", b" \tcontext;\n", b"+\tint more;\n"])
def test_a_line_too_many_is_an_error_also_after_an_empty_one(tmp_path: Path, gap: bytes, line: bytes) -> None:
    data = mail(body=body_of(diff_of() + gap + line))
    error = refused(tmp_path, data)
    assert "longer than its header says" in error.what
    if not gap:
        assert error.where == f"{tmp_path / 'x.eml'}:{line_of(data, line)}"


def test_the_diffstat_tells_of_a_hunk_or_file_that_is_lost_at_its_very_border(tmp_path: Path) -> None:
    stat = b" kernel/b.c    | 2 +-\n kernel/lamp.c | 4 ++--\n 2 files changed, 3 insertions(+), 3 deletions(-)\n"
    whole = read(tmp_path, mail(body=body_of(diff_of(path="kernel/b.c") + TWO_HUNKS, stat=stat)))
    assert whole.notes == ()
    lost_hunk = read(tmp_path, mail(body=body_of(diff_of(path="kernel/b.c") + diff_of(), stat=stat)))
    assert lost_hunk.notes == (
        "the diffstat says 2 file(s), +3 -3, the diff has 2 file(s), +2 -2: part of it may be lost, or it was edited",
    )
    lost_file = read(tmp_path, mail(body=body_of(TWO_HUNKS, stat=stat)))
    assert "the diff has 1 file(s), +2 -2; not in the diff: kernel/b.c: part of it may be lost" in lost_file.notes[0]


EXAMPLE = diff_of("example")


@pytest.mark.parametrize("example", [EXAMPLE, EXAMPLE[:-20], b"--- a/x\n+++ b/x\n@@ ... @@\n-x\n"])
def test_an_example_in_the_message_is_not_applied_where_the_diffstat_tells(tmp_path: Path, example: bytes) -> None:
    words = f"Instead of\n\n{example.decode()}\ndo this.\n\n{WORDS}"
    data = mail(body=body_of(diff_of(), words))
    patch = read(tmp_path, data)
    assert patch.diff == diff_of()
    assert patch.message == words
    where = f"{tmp_path / 'x.eml'}:{line_of(data, b'---' + chr(10).encode() + STAT)}"
    assert f"a diff in the message, above the line of dashes at {where}: an example, not applied" in patch.notes


def test_diffs_above_and_below_the_dashes_and_nothing_that_tells_are_refused(tmp_path: Path) -> None:
    words = f"Instead of\n\n{EXAMPLE.decode()}\ndo this."
    assert refused(tmp_path, mail(body=body_of(diff_of(), words, stat=b""))).what.startswith("diffs above and below")


def test_a_line_of_dashes_that_a_hunk_takes_away_ends_nothing(tmp_path: Path) -> None:
    quoted = (
        b"@@ -1,6 +1,0 @@\n---\n- kernel/lamp.c | 2 +-\n- 1 file changed, 1 insertion(+), 1 deletion(-)\n-\n-x\n-y\n"
    )
    diff = b"diff --git a/p.patch b/p.patch\n--- a/p.patch\n+++ b/p.patch\n" + quoted + diff_of()
    stat = b" 2 files changed, 1 insertion(+), 7 deletions(-)\n"
    assert read(tmp_path, mail(body=body_of(diff, stat=stat))).diff == diff
    assert read(tmp_path, diff).diff == diff


@pytest.mark.parametrize(
    "words",
    [
        "diff -u shows it.", "> diff --git a/x b/x", "  diff --git a/x b/x\n  --- a/x\n  +++ b/x\n  @@ -1 +1 @@\n  -a\n  +b",
        "--- is how it begins", "@@ -1 +1 @@ is a header", "+ one\n- two", "diff --git is what I typed", "*** important ***",
        "--- a/file\nis what it says", "Index of lamps: 3",
    ],
)  # fmt: skip
def test_words_about_diffs_in_a_message_are_words(tmp_path: Path, words: str) -> None:
    text = f"Why.\n\n{words}\n\n{WORDS}"
    patch = read(tmp_path, mail(body=body_of(diff_of(), text)))
    assert (patch.message, patch.diff) == (text, diff_of())


@pytest.mark.parametrize(
    ("tail", "shown"),
    [
        (b"\nAnd thanks to Bob.\nHe knows.\n", "2 line(s) between or after the hunks are no part of the diff"),
        (
            b"\nOnly in new: lamp2.c\n",
            "a file that is only named, its content is not in the diff: Only in new: lamp2.c",
        ),
    ],
)
def test_what_stands_after_the_diff_is_left_out_and_named(tmp_path: Path, tail: bytes, shown: str) -> None:
    patch = read(tmp_path, mail(body=b"words\n---\n" + diff_of() + tail))
    assert patch.diff == diff_of()
    assert any(note.startswith(shown) for note in patch.notes)


@pytest.mark.parametrize(
    "tail",
    [b"-- \n2.47.1\n", b"--\n2.47.1\n", b"\n-- \nAda\nlamps.example\n", b"-- \n2.47.1\n\n____\nlist footer\n", b"\n"],
)
def test_signatures_and_list_footers_are_no_part_of_the_diff_and_not_worth_a_word(tmp_path: Path, tail: bytes) -> None:
    patch = read(tmp_path, mail(body=b"words\n---\n\n" + diff_of() + tail))
    assert (patch.diff, patch.notes) == (diff_of(), ())


@pytest.mark.parametrize("between", [b"", b"-- \n2.47.1\n\n"])
def test_the_diff_of_a_mail_whose_headers_got_lost_is_not_taken_for_a_part_of_the_one_above(
    tmp_path: Path, between: bytes
) -> None:
    body = b"words\n---\n" + STAT + b"\n" + diff_of() + between + b"Re: lamp\n\nRather so:\n\n"
    error = refused(tmp_path, mail(body=body + diff_of(path="kernel/b.c")))
    assert error.what.startswith("a second diff")
    assert (
        error.where
        == f"{tmp_path / 'x.eml'}:{line_of(mail(body=body + diff_of(path='kernel/b.c')), b'diff --git a/kernel/b.c')}"
    )


def test_a_diff_below_a_signature_is_refused_also_where_nothing_counts(tmp_path: Path) -> None:
    body = b"words\n---\n" + diff_of() + b"-- \n2.47.1\n\n" + diff_of(path="kernel/b.c")
    assert refused(tmp_path, mail(body=body)).what == "a second diff below the mail's signature"


def test_an_interdiff_above_the_diffstat_is_refused_not_applied(tmp_path: Path) -> None:
    body = b"words\n---\nSince v1:\n" + diff_of("interdiff") + b"\n" + STAT + b"\n" + diff_of() + b"-- \n2.47.1\n"
    error = refused(tmp_path, mail(body=body))
    assert error.what == "a diff above the diffstat, which does not count it"
    assert error.where == f"{tmp_path / 'x.eml'}:{line_of(mail(body=body), b'diff --git')}"
    indented = body.replace(diff_of("interdiff"), textwrap.indent(diff_of("interdiff").decode(), "  ").encode())
    assert read(tmp_path, mail(body=indented)).diff == diff_of()


def test_a_diffstat_without_its_totals_still_tells_of_files_and_hunks(tmp_path: Path) -> None:
    stat = b" kernel/b.c    | 2 +-\n kernel/lamp.c | 4 ++--\n"
    assert read(tmp_path, mail(body=body_of(diff_of(path="kernel/b.c") + TWO_HUNKS, stat=stat))).notes == ()
    lost = read(tmp_path, mail(body=body_of(diff_of(), stat=stat)))
    assert lost.notes == (
        "the diffstat does not fit the diff in kernel/b.c, kernel/lamp.c: part of it may be lost, or it was edited",
    )


def test_mails_of_an_mbox_below_text_that_is_none_are_refused(tmp_path: Path) -> None:
    error = refused(tmp_path, b"lost\nheaders\n\n" + body_of(diff_of()) + mbox(mail(), mail("[PATCH 2/2] b")))
    assert error.what == "mails of an mbox, and text above the first of them that is none"


def test_a_context_diff_is_refused_by_its_name(tmp_path: Path) -> None:
    old = b"*** a/x.c\tMon\n--- b/x.c\tMon\n***************\n*** 1,2 ****\n! a\n--- 1,2 ----\n! b\n"
    assert refused(tmp_path, mail(body=b"words\n\n" + old)).what == "a context diff (*** and ---)"
    assert refused(tmp_path, old).what == "a context diff (*** and ---)"
    assert refused(tmp_path, mail(body=body_of(diff_of() + old))).what == "a context diff (*** and ---)"


def plain(diff: bytes) -> bytes:
    """Without a git header, as diff -u makes it."""
    return b"--- " + diff.partition(b"--- ")[2]


@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"kernel/lamp.c", b"kernel/lamp.c"),
        (b"i/kernel/lamp.c", b"w/kernel/lamp.c"),
        (b"linux.orig/kernel/lamp.c", b"linux/kernel/lamp.c"),
        (b"linux/kernel/lamp.c", b"linux/kernel/lamp.c"),
        (b"old/kernel/lamp.c", b"new/kernel/lamp.c"),
        (b"a/b/c/kernel/lamp.c", b"a/b/d/kernel/lamp.c"),
        (b"/home/ada/linux/kernel/lamp.c", b"/home/ada/lamps/kernel/lamp.c"),
        (b"./kernel/lamp.c", b"./kernel/lamp.c"),
    ],
)
def test_names_with_any_number_of_leading_directories_are_brought_to_one(
    tmp_path: Path, old: bytes, new: bytes, header: bool
) -> None:
    diff = diff_of().replace(b"a/kernel/lamp.c", old).replace(b"b/kernel/lamp.c", new)
    repo = git.Repo.init(tmp_path / "r")
    (tmp_path / "r" / "kernel").mkdir()
    (tmp_path / "r" / "kernel" / "lamp.c").write_text(
        "/* a lamp */\n\nint lamp_level;\n-- \n\nint lamp_on(void)\n\treturn 1;\n"
    )
    patch = read(tmp_path, mail(diff=diff if header else plain(diff)))
    assert patch.paths == ("kernel/lamp.c",)
    (tmp_path / "patch").write_bytes(patch.diff)
    repo.git.apply("../patch")  # -p1, as everything here is applied
    assert "int lamp;" in (tmp_path / "r" / "kernel" / "lamp.c").read_text()


def test_names_at_the_root_of_the_tree_and_new_files_without_a_prefix_are_known(tmp_path: Path) -> None:
    root = diff_of().replace(b"a/kernel/lamp.c", b"Makefile").replace(b"b/kernel/lamp.c", b"Makefile")
    assert b"--- a/Makefile\n+++ b/Makefile\n" in read(tmp_path, root).diff
    new = b"--- /dev/null\n+++ drivers/lamp.c\n@@ -0,0 +1 @@\n+int x;\n"
    patch = read(tmp_path, new)
    assert (patch.paths, patch.diff) == (("drivers/lamp.c",), new.replace(b"drivers", b"b/drivers"))


def test_a_usual_diff_keeps_its_bytes_also_where_a_directory_of_the_tree_is_called_b(tmp_path: Path) -> None:
    for path in ("lamp.c", "b/lamp.c", "a/lamp.c", "tools/kernel/fs/lamp.c", "foo bar/lamp.c"):
        diff = diff_of(path=path)
        assert read(tmp_path, diff).diff == diff


GIT_KINDS = {
    "rename": b"diff --git a/old.c b/new.c\nsimilarity index 100%\nrename from old.c\nrename to new.c\n",
    "copy": b"diff --git a/old.c b/new.c\nsimilarity index 100%\ncopy from old.c\ncopy to new.c\n",
    "mode": b"diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n",
    "empty": b"diff --git a/e b/e\nnew file mode 100644\nindex 0000000..e69de29\n",
    "no newline": (
        b"diff --git a/x b/x\nindex 1111111..2222222 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n"
        b"\\ No newline at end of file\n"
    ),
    "new": b"diff --git a/n b/n\nnew file mode 100755\nindex 0000000..1234567\n--- /dev/null\n+++ b/n\n@@ -0,0 +1,2 @@\n+a\n+b\n",
    "gone": b"diff --git a/n b/n\ndeleted file mode 100644\nindex 1234567..0000000\n--- a/n\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n",
    "binary": (
        b"diff --git a/p b/p\nnew file mode 100644\nindex 0000000000000000000000000000000000000000.."
        b"bdc955b7b2e610ad5a72302b139a2e6cb325519a\nGIT binary patch\nliteral 2\nJcmZQz1ONa700IC2\n\nliteral 0\nHcmV?d00001\n\n"
    ),
    "quoted": b'diff --git "a/f\\303\\274 \\"x\\".c" "b/f\\303\\274 \\"x\\".c"\nold mode 100644\nnew mode 100755\n',
    "link": b"diff --git a/l b/l\nnew file mode 120000\nindex 0000000..1234567\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+x\n"
    b"\\ No newline at end of file\n",
}  # fmt: skip


@pytest.mark.parametrize("kind", GIT_KINDS)
@pytest.mark.parametrize("after", [b"", diff_of()])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_everything_that_git_writes_is_kept_byte_for_byte(tmp_path: Path, kind: str, after: bytes, end: bytes) -> None:
    diff = GIT_KINDS[kind] + after
    patch = read(tmp_path, mail(body=body_of(diff, stat=b"\n")).replace(b"\n", end))
    assert patch.diff == diff
    assert [note for note in patch.notes if "CRLF" not in note] == []


@pytest.mark.parametrize(
    ("broken", "what"),
    [
        (GIT_KINDS["binary"].replace(b"JcmZQz1ONa700IC2", b"JcmZQz1ONa700IC"), "a line of a binary block is damaged"),
        (GIT_KINDS["binary"].replace(b"JcmZQz1ONa700IC2", b"JcmZQz1ONb700IC2"), "a binary block does not unpack"),
        (GIT_KINDS["binary"].replace(b"JcmZQz1ONa700IC2", b"JcmZQz1ONa701IC2"), "a binary block does not unpack"),
        (GIT_KINDS["binary"].replace(b"literal 2", b"literal 3"), "a binary block does not unpack to the 3 bytes"),
        (GIT_KINDS["binary"].replace(b"JcmZQz1ONa700IC2\n", b""), "a binary block does not unpack"),
        (GIT_KINDS["binary"].replace(b"literal 2", b"literal 999999999999"), "a binary block does not unpack"),
        (GIT_KINDS["binary"].partition(b"literal")[0], "no block follows"),
        (GIT_KINDS["gone"].partition(b"---")[0], "no hunk follows"),
    ],
)
def test_a_binary_or_deleted_file_whose_content_is_damaged_is_refused(tmp_path: Path, broken: bytes, what: str) -> None:
    assert refused(tmp_path, mail(body=body_of(broken))).what.startswith(what)


def test_a_binary_block_that_lost_its_checksum_is_refused(tmp_path: Path) -> None:
    packed = zlib.compress(b"\0\1")
    for kept, whole in ((len(packed), True), (len(packed) - 4, False)):
        line = chr(64 + kept).encode() + base64.b85encode(packed[:kept], pad=True)
        diff = GIT_KINDS["binary"].replace(b"JcmZQz1ONa700IC2", line)
        if whole:
            assert read(tmp_path, mail(body=body_of(diff, stat=b""))).diff == diff
        else:
            assert refused(tmp_path, mail(body=body_of(diff))).what.startswith(
                "a binary block does not unpack to the 2 bytes"
            )


def test_a_file_name_that_git_only_mentions_is_no_change(tmp_path: Path) -> None:
    diff = b"diff --git a/touched.c b/touched.c\n" + diff_of()
    assert read(tmp_path, diff).diff == diff_of()


def test_a_diff_without_index_lines_and_with_time_stamps_is_kept(tmp_path: Path) -> None:
    diff = plain(diff_of()).replace(b".c\n+++", b".c\t2026-01-05 10:00:00.0 +0100\n+++")
    assert read(tmp_path, b"Index: kernel/lamp.c\n" + b"=" * 67 + b"\n" + diff).diff == diff


def test_an_index_line_is_no_part_of_the_message(tmp_path: Path) -> None:
    body = f"{WORDS}\n\nIndex: linux/kernel/lamp.c\n{'=' * 67}\n".encode() + plain(diff_of())
    assert read(tmp_path, mail(body=body)).message == WORDS


@pytest.mark.parametrize("word", ["From", "from", "Subject"])
def test_headers_in_the_body_overrule_the_mails_own(tmp_path: Path, word: str) -> None:
    head = {"From": "From: Bob <bob@lamps.example>\n", "from": "from: =?utf-8?q?B=C3=B6b?=\n <bob@lamps.example>\n",
            "Subject": "Subject: [PATCH v7] cord:\n long\nDate: Tue, 6 Jan 2026 10:00:00 +0100\n"}[word]  # fmt: skip
    patch = read(tmp_path, mail(body=body_of(diff_of(), f"{head}\n{WORDS}")))
    assert patch.message == WORDS
    if word == "Subject":
        assert (patch.prefix, patch.subject, patch.date) == (
            "[PATCH v7]",
            "cord: long",
            "Tue, 6 Jan 2026 10:00:00 +0100",
        )
    else:
        assert (patch.author, patch.email) == ("Bob" if word == "From" else "Böb", "bob@lamps.example")


def test_a_sender_that_is_a_list_is_said(tmp_path: Path) -> None:
    patch = read(tmp_path, mail(sender="Ada Example via lamps <lamps@lists.example>"))
    assert any(note.startswith("the author's name and address are a mailing list's") for note in patch.notes)


def test_a_mail_that_was_cut_off_in_its_last_part_is_said_or_refused(tmp_path: Path) -> None:
    head = {"MIME-Version": "1.0", "Content-Type": 'multipart/mixed; boundary="x"'}
    body = b"--x\nContent-Type: text/plain\n\n" + body_of(diff_of())
    assert "the mail's last part has no end: it may be cut off" in read(tmp_path, mail(body=body, headers=head)).notes


def test_an_encrypted_mail_is_refused(tmp_path: Path) -> None:
    head = {
        "MIME-Version": "1.0",
        "Content-Type": 'multipart/encrypted; boundary="x"; protocol="application/pgp-encrypted"',
    }
    assert refused(tmp_path, mail(body=b"--x\n\nx\n--x--\n", headers=head)).what == "the mail is encrypted"


@pytest.mark.parametrize("count", range(1, 8))
def test_no_line_of_a_hunk_can_be_lost_or_doubled_without_an_error(tmp_path: Path, count: int) -> None:
    """The eight lines of the hunk one by one, with what usually follows: a signature."""
    lines = split_lines(body_of(diff_of()))
    first = next(i for i, line in enumerate(lines) if line.startswith(b"@@")) + 1
    for position in range(first, first + 8):
        for changed in (
            [*lines[:position], *lines[position + count :]],
            [*lines[:position], *lines[position : position + 1] * count, *lines[position:]],
        ):
            text = b"".join(changed)
            try:
                found = find_diff(split_lines(text), str)
            except UserError:
                continue
            assert found is not None
            kept = found.data.split(b"\n")
            assert len(kept) - 1 == 13, textwrap.indent(text.decode(), "> ")
