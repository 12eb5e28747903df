# SPDX-License-Identifier: GPL-2.0-or-later
"""Kinds of patches that a distribution's quilt series has, found by reading one (tests/e2e/test_corpus.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpatch_ci.model.errors import UserError
from kpatch_ci.series.intake import read_series
from kpatch_ci.series.names import unquote
from tests.fakes.mails import diff_of, mail, mbox


def quilt(folder: Path, **patches: bytes) -> Path:
    """A quilt series of these patches, in this order."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in patches.items():
        (folder / f"{name}.patch").write_bytes(data)
    (folder / "series").write_text("".join(f"{name}.patch\n" for name in patches))
    return folder


def test_numbers_and_revisions_in_subjects_have_no_say_in_a_quilt_series(tmp_path: Path) -> None:
    subjects = ["[PATCH v2 2/2] lamp: A", "[PATCH 1/3] lamp: B", "[27/30] lamp: C", "[PATCH v2 2/2] lamp: A"]
    made = {f"p{i}": mail(subject, diff=diff_of(f"l{i}")) for i, subject in enumerate(subjects)}
    patches, account = read_series([quilt(tmp_path, **made)])
    assert [patch.diff for patch in patches] == [diff_of(f"l{i}") for i in range(4)]
    assert [patch.subject for patch in patches] == ["lamp: A", "lamp: B", "lamp: C", "lamp: A"]
    assert patches[0].prefix == "[PATCH v2 2/2]"
    assert (account.notes, account.left_out, account.revision) == ((), (), None)


def test_what_a_quilt_series_names_is_applied_though_it_says_re_or_0_of_2(tmp_path: Path) -> None:
    made = {"a": mail("Re: [PATCH] lamp: A", diff=diff_of("a")), "b": mail("[PATCH 0/2] lamp: B", diff=diff_of("b"))}
    patches, account = read_series([quilt(tmp_path, **made)])
    assert [patch.diff for patch in patches] == [diff_of("a"), diff_of("b")]
    assert account.left_out == ()


def test_prerequisites_do_not_turn_a_quilt_series_round(tmp_path: Path) -> None:
    needs = mail("lamp: A", diff=diff_of("a")) + b"\nprerequisite-patch-id: " + b"1" * 40 + b"\n"
    patches, account = read_series([quilt(tmp_path, a=needs, b=mail("lamp: B", diff=diff_of("b")))])
    assert [patch.subject for patch in patches] == ["lamp: A", "lamp: B"]
    assert patches[0].prerequisites == ("1" * 40,)
    assert account.notes == ()


def test_a_series_beside_a_quilt_series_is_ordered_and_comes_where_it_was_named(tmp_path: Path) -> None:
    for number in (2, 1):
        subject = f"[PATCH {number}/2] lamp: Mail {number}"
        (tmp_path / f"{3 - number}.eml").write_bytes(mail(subject, diff=diff_of(f"m{number}")))
    folder = quilt(
        tmp_path / "q", z=mail("[PATCH 9/9] lamp: Z", diff=diff_of("z")), a=mail("lamp: A", diff=diff_of("a"))
    )
    patches, account = read_series([tmp_path / "1.eml", tmp_path / "2.eml", folder])
    assert [patch.subject for patch in patches] == ["lamp: Mail 1", "lamp: Mail 2", "lamp: Z", "lamp: A"]
    assert account.notes == ()


DESCRIBED = b"""Author: Ada Example <ada@lamps.example>
Description: lamp: Be bright
 A lamp that is on shall
 be bright.
 .
 More of it.
Last-Update: 2026-01-05
"""


@pytest.mark.parametrize("gap", [b"", b"\n"])
def test_a_description_is_a_subject_and_the_text_below_it(tmp_path: Path, gap: bytes) -> None:
    """DEP-3: the lines that continue a Description are its long form, not more of the subject."""
    (tmp_path / "a.patch").write_bytes(DESCRIBED + gap + diff_of())
    (patch,), _ = read_series([tmp_path / "a.patch"])
    assert (patch.subject, patch.author) == ("lamp: Be bright", "Ada Example")
    assert patch.message == "A lamp that is on shall\nbe bright.\n\nMore of it."
    assert patch.diff == diff_of()
    assert patch.date == "2026-01-05"


def test_a_description_beside_a_subject_is_text(tmp_path: Path) -> None:
    (tmp_path / "a.patch").write_bytes(b"Subject: lamp: Glow\n" + DESCRIBED + b"\nWords.\n---\n" + diff_of())
    (patch,), _ = read_series([tmp_path / "a.patch"])
    assert patch.subject == "lamp: Glow"
    assert patch.message == "lamp: Be bright\nA lamp that is on shall\nbe bright.\n\nMore of it.\n\nWords."


def test_the_line_of_a_damaged_hunk_is_the_files_though_the_text_is_from_a_header(tmp_path: Path) -> None:
    damaged = diff_of().replace(b"\n int lamp_level;", b"\nint lamp_level;")
    (tmp_path / "a.patch").write_bytes(DESCRIBED + b"\n" + damaged)
    with pytest.raises(UserError) as caught:
        read_series([tmp_path / "a.patch"])
    assert caught.value.where == f"{tmp_path / 'a.patch'}:16"


def test_a_part_of_a_diff_that_names_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.patch").write_bytes(b"lamp\n\ndiff --file\nindex 1111111..2222222\nGIT binary patch\n" + BINARY)
    with pytest.raises(UserError, match="a part of the diff names no file") as caught:
        read_series([tmp_path / "a.patch"])
    assert caught.value.where == f"{tmp_path / 'a.patch'}:3"


REMOVED = b"--- a/kernel/lamp.c\n+++ b/kernel/lamp.c\n@@ -1 +0,0 @@\n-int lamp;\n"
BINARY = b"literal 1\nIcmZPo000310RR91\n\nliteral 0\nHcmV?d00001\n\n"


def test_a_charset_that_makes_half_characters_is_no_crash(tmp_path: Path) -> None:
    """UTF-7 can spell surrogates (here +2Ks-), which UTF-8 cannot."""
    kind = "Content-Type: text/plain; charset=utf-7"
    head, diff = f"From: a@b.c\nSubject: lamp\n{kind}\n\n+2Ks-\n---\n", REMOVED.decode().encode("utf-7")
    (tmp_path / "a.eml").write_bytes(head.encode() + diff)
    (patch,), _ = read_series([tmp_path / "a.eml"])
    assert patch.message == "?"
    assert patch.diff == REMOVED


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        (b"plain.c", "plain.c"),
        (rb'"l\303\244mpe.rst"', "lämpe.rst"),
        (rb'"a\tb\\c\"d\a\b\f\n\r\v.c"', 'a\tb\\c"d\a\b\f\n\r\v.c'),
        ('"lämpe.rst"'.encode(), "lämpe.rst"),
        (rb'"b/l\303\From"', rb'"b/l\303\From"'.decode()),
        (rb'"\u0041\x41\N{DIGIT ONE}"', r'"\u0041\x41\N{DIGIT ONE}"'),
        (rb'"open', '"open'),
        (b'"', '"'),
        (b'""', ""),
    ],
)
def test_names_are_unquoted_as_git_quotes_them_and_in_no_other_way(raw: bytes, name: str) -> None:
    assert unquote(raw) == name


def test_a_subject_in_the_body_does_not_take_a_patch_out_of_its_series(tmp_path: Path) -> None:
    made = [
        mail(
            f"[PATCH v2 {number}/2] lamp: {number}",
            body=f"Subject: better {number}\n\nText.\n---\n".encode() + diff_of(f"l{number}"),
        )
        for number in (2, 1)
    ]
    (tmp_path / "lamps.mbox").write_bytes(mbox(*made))
    patches, account = read_series([tmp_path / "lamps.mbox"])
    assert [patch.subject for patch in patches] == ["better 1", "better 2"]
    assert [patch.prefix for patch in patches] == ["[PATCH v2 1/2]", "[PATCH v2 2/2]"]
    assert [patch.diff for patch in patches] == [diff_of("l1"), diff_of("l2")]
    assert (account.left_out, account.notes, account.revision) == ((), (), 2)


def test_header_lines_right_above_a_diff_are_words_above_it(tmp_path: Path) -> None:
    (tmp_path / "glow.txt").write_bytes(b"some words\nFrom: Ada <ada@lamps.example>\nSubject: lamp: Glow\n" + diff_of())
    (patch,), _ = read_series([tmp_path / "glow.txt"])
    assert (patch.subject, patch.diff) == ("glow", diff_of())
    assert "Subject: lamp: Glow" in patch.message
