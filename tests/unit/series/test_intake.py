# SPDX-License-Identifier: GPL-2.0-or-later
"""Patches from what people have."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kpatch_ci.model.errors import UserError
from kpatch_ci.series.intake import read_all, read_patches

FEATURES, FAIR = "kernel/sched/features.h", "kernel/sched/fair.c"


IOWAIT_PATHS = (
    "include/linux/sched/sysctl.h",
    "kernel/sched/core.c",
    "kernel/sched/cpufreq_schedutil.c",
    "kernel/sched/sched.h",
    "kernel/sysctl.c",
)
MEL = ("Mel Gorman", "mgorman@techsingularity.net")
SEEDS = {
    "schedutil-iowait-boost": (
        "[RFC] schedutil: Fix iowait boost issues for slow I/O devices",
        ("Joel Fernandes (Google)", ""),
        IOWAIT_PATHS,
        "b060b219f0f7",
    ),
    "wakeup-gran": (
        "[PATCH 2/2] sched/fair: Increase wakeup_gran if current task has not executed the minimum granularity",
        MEL,
        (FAIR, FEATURES),
        "67a7bd4dcc2b",
    ),
    "stack-workqueue": (
        "[PATCH 4/4] sched: Allow tasks to stack with a workqueue on the same CPU",
        MEL,
        (FAIR, FEATURES),
        "31e59066f4f4",
    ),
}


@pytest.mark.parametrize("folder", SEEDS)
def test_the_seeds_are_read(seeds: Path, folder: str) -> None:
    subject, author, paths, digest = SEEDS[folder]
    (patch,) = read_patches(seeds / folder / "original.txt")
    assert f"{patch.prefix} {patch.subject}" == subject
    assert ((patch.author, patch.email), patch.paths) == (author, paths)
    assert patch.digest.startswith(digest)
    assert "no newline at the end of the text: added" in patch.notes
    assert patch.diff.endswith(b"\n")
    assert b"\n-- \n" not in patch.diff
    assert "Signed-off-by:" in patch.message.splitlines()[-1]


def test_a_pasted_page_is_cut_where_git_am_cuts(mails: Path) -> None:
    (patch,) = read_patches(mails / "pasted-page.txt")
    assert (patch.prefix, patch.subject) == ("[RFC PATCH v2]", "lamp: Add a step")
    assert (patch.author, patch.email) == ("Ada Example (Lamps)", "")
    assert patch.message.startswith("A lamp without")
    assert "NOTE" not in patch.message
    assert patch.diff == (mails / "bare.diff").read_bytes()
    assert patch.notes == ("no newline at the end of the text: added", "the author's address is missing")


def test_a_format_patch_file_gives_the_same_diff_byte_for_byte(mails: Path) -> None:
    (patch,) = read_patches(mails / "format-patch.patch")
    assert patch.subject == "lamp: Add a step which has a subject long enough to be folded over two lines"
    assert (patch.author, patch.email) == ("Ada Example", "ada@lamps.example")
    assert "From a body line no mail begins." in patch.message
    assert patch.diff == (mails / "bare.diff").read_bytes()
    assert patch.digest == hashlib.sha256(patch.diff).hexdigest()
    assert patch.notes == ()


@pytest.mark.parametrize("name", ["base64-crlf.eml", "quoted-printable.eml"])
def test_transfer_encodings_and_charsets_are_undone(mails: Path, name: str) -> None:
    (patch,) = read_patches(mails / name)
    assert (patch.subject, patch.author) == ("lamp: für die Füße", "Adä Example")
    assert patch.message == "Füße need lamps."
    assert patch.diff == (mails / "bare.diff").read_bytes()


def test_an_mbox_is_ordered_by_its_numbers_and_its_cover_letter_and_replies_are_left_out(mails: Path) -> None:
    first, second = read_patches(mails / "thread.mbox")
    assert (first.subject, second.subject) == ("lamp: First", "lamp: Second")
    assert first.source.endswith("thread.mbox (mail 4)")
    box = mails / "thread.mbox"
    assert first.notes == (
        f"left out: `[PATCH v2 1/2] lamp: First` ({box} (mail 3)): a reply, never applied",
        f"left out: `[PATCH v2 0/2] lamp: Steps` ({box} (mail 2)): the cover letter, never applied",
    )
    assert b"lamp_step9" not in first.diff + second.diff


def test_a_bare_diff_is_named_after_its_file(mails: Path) -> None:
    (patch,) = read_patches(mails / "bare.diff")
    assert (patch.subject, patch.author, patch.message) == ("bare", "", "")
    assert patch.notes[0].startswith("a bare diff")


def test_a_directory_is_read_in_the_order_of_its_numbers(tmp_path: Path, mails: Path) -> None:
    text = (mails / "format-patch.patch").read_text()
    for file, number in (("a.patch", 2), ("b.patch", 1), ("c.patch", 4)):
        (tmp_path / file).write_text(
            text.replace("[PATCH]", f"[PATCH {number}/4]").replace("lamp_step", f"lamp{number}")
        )
    (tmp_path / "notes.md").write_text("no patch")
    patches = read_patches(tmp_path)
    assert [patch.prefix for patch in patches] == ["[PATCH 1/4]", "[PATCH 2/4]", "[PATCH 4/4]"]
    assert patches[0].notes == (
        "3/4 is missing: tested without",
        f"left out: {tmp_path / 'notes.md'}: not named as a patch is",
    )


def test_the_highest_revision_is_taken_and_that_is_said(tmp_path: Path, mails: Path) -> None:
    text = (mails / "format-patch.patch").read_text()
    for revision in ("", " v2", " v10"):
        (tmp_path / f"x{revision}.patch").write_text(text.replace("[PATCH]", f"[PATCH{revision} 1/1]"))
    (patch,) = read_patches(tmp_path)
    assert patch.prefix == "[PATCH v10 1/1]"
    assert patch.notes[0] == "several revisions in it: v10 is the newest and is taken, v1, v2 left out"
    assert [note.rpartition(": ")[2] for note in patch.notes[1:]] == ["v2, another revision", "v1, another revision"]


def test_two_patches_of_one_number_are_an_error_unless_they_are_the_same(tmp_path: Path, mails: Path) -> None:
    text = (mails / "format-patch.patch").read_text().replace("[PATCH]", "[PATCH 1/1]")
    one, two = tmp_path / "one.patch", tmp_path / "two.patch"
    one.write_text(text)
    two.write_text(text)
    (patch,) = read_all([one, two])
    assert [note.rpartition(": ")[2] for note in patch.notes] == [f"the same patch again as in {one}"]
    two.write_text(text.replace("+int lamp_step;", "+int lamp_other;"))
    with pytest.raises(UserError, match="two different patches are numbered 1"):
        read_all([one, two])


def test_in_body_headers_overrule_those_of_the_mail(tmp_path: Path, mails: Path) -> None:
    text = (mails / "format-patch.patch").read_text()
    file = tmp_path / "x.patch"
    file.write_text(text.replace("\n\nFrom here", "\n\nFrom: Real Author <real@lamps.example>\n\nFrom here"))
    (patch,) = read_patches(file)
    assert (patch.author, patch.email) == ("Real Author", "real@lamps.example")
    assert patch.message.startswith("From here on")


def test_a_masked_address_is_no_address_but_the_sign_off_may_have_it(tmp_path: Path, mails: Path) -> None:
    text = (
        (mails / "format-patch.patch")
        .read_text()
        .replace("From: Ada Example <ada@lamps", "From: Ada Example <ada@xxxxx")
    )
    file = tmp_path / "x.patch"
    file.write_text(text)
    (patch,) = read_patches(file)
    assert patch.email == "ada@lamps.example"
    file.write_text(text.replace("ada@lamps.example", "ada@xxxxx"))
    (patch,) = read_patches(file)
    assert patch.email == ""
    assert patch.notes == ("the author's address is masked (ada@xxxxx.example)",)


@pytest.mark.parametrize(
    ("name", "line", "what"),
    [
        ("wrapped.patch", 22, "begins with neither a blank nor"),
        (
            "short-hunk.patch",
            20,
            "shorter than its header says: it promises 8 old and 9 new lines; 2 old and 2 new are missing",
        ),
        ("long-hunk.patch", 27, "longer than its header says"),
    ],
)
def test_a_damaged_hunk_is_named_with_its_line(mails: Path, name: str, line: int, what: str) -> None:
    with pytest.raises(UserError, match="hunk") as caught:
        read_patches(mails / name)
    assert caught.value.where == f"{mails / name}:{line}"
    assert what in caught.value.what
    assert caught.value.expected


def test_a_damaged_hunk_in_a_later_mail_of_an_mbox_is_named_by_the_line_of_the_file(
    tmp_path: Path, mails: Path
) -> None:
    good, bad = (mails / "format-patch.patch").read_text(), (mails / "wrapped.patch").read_text()
    file = tmp_path / "two.mbox"
    file.write_text(good + bad)
    with pytest.raises(UserError, match="neither a blank") as caught:
        read_patches(file)
    assert caught.value.where == f"{file}:{len(good.splitlines()) + 22}"


def test_in_an_encoded_body_the_line_is_that_of_the_decoded_one(tmp_path: Path, mails: Path) -> None:
    body = (mails / "wrapped.patch").read_bytes().partition(b"\n\n")[2]
    file = tmp_path / "x.eml"
    head = b"From: a@lamps.example\nSubject: [PATCH] x\nContent-Transfer-Encoding: base64\n\n"
    file.write_bytes(head + base64.encodebytes(body))
    with pytest.raises(UserError, match="neither a blank") as caught:
        read_patches(file)
    assert caught.value.where == f"{file}, decoded body:16"


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", "the file is empty"),
        (b" \n\n", "the file is empty"),
        (b"\x7fELF\0\0\1", "the file is binary"),
        (b"just words\nand more\n", "no diff in it"),
        (b"From: a@lamps.example\nSubject: [PATCH] x\n\nnothing here\n", "no diff in `[PATCH] x`"),
        (b"diff --git a/x b/x\nindex 1..2\nBinary files a/x and b/x differ\n", "a binary file changes"),
        (b"--- a/x\n+++ b/x\nno hunk\n", "no hunk follows"),
        (b"--- a/x\n+++ b/x\n@@ -1,2 +1,2\n", "not a hunk header"),
        (b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@@ -1,1 -1,1 +1,1 @@@\n", "a merge's combined diff"),
    ],
)
def test_what_is_no_patch_is_refused_with_what_would_be_right(tmp_path: Path, data: bytes, what: str) -> None:
    file = tmp_path / "x.txt"
    file.write_bytes(data)
    with pytest.raises(UserError) as caught:
        read_patches(file)
    assert caught.value.what.startswith(what)
    assert (caught.value.where or "").startswith(str(file))
    assert caught.value.expected


def test_html_alone_and_what_is_not_there_are_refused(tmp_path: Path, mails: Path) -> None:
    file = tmp_path / "x.eml"
    file.write_bytes((mails / "html-only.eml").read_bytes().replace(b"diff --git", b"words"))
    with pytest.raises(UserError, match="no plain text"):
        read_patches(file)
    file.unlink()
    with pytest.raises(UserError, match="cannot read it"):
        read_patches(tmp_path / "missing.patch")
    with pytest.raises(UserError, match="no patches in this directory"):
        read_patches(tmp_path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200, deadline=None)
@given(data=st.data())
def test_a_mail_that_lost_or_gained_bytes_is_read_or_refused_but_never_crashes(
    tmp_path: Path, mails: Path, data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from(["format-patch.patch", "thread.mbox", "base64-crlf.eml", "pasted-page.txt"]))
    text = (mails / name).read_bytes()
    start, length = data.draw(st.integers(0, len(text))), data.draw(st.integers(0, 80))
    file = tmp_path / "x.txt"
    file.write_bytes(text[:start] + data.draw(st.binary(max_size=20)) + text[start + length :])
    try:
        patches = read_patches(file)
    except UserError:
        return
    assert all(patch.diff.endswith(b"\n") for patch in patches)
