# SPDX-License-Identifier: GPL-2.0-or-later
"""What a transport does to a mail is undone, and the diff's own bytes stay as they are."""

from __future__ import annotations

import itertools
import os
import quopri
from pathlib import Path

import pytest

from kpatch_ci.model.errors import UserError
from kpatch_ci.model.series import Patch
from kpatch_ci.series.intake import read_patches
from tests.fakes.mails import ADA, WORDS, body_of, diff_of, encoded, mail, mbox, multipart, words_of

CODINGS = ("8bit", "quoted-printable", "base64", "base64-crlf")
LINE_ENDS = (b"\n", b"\r\n")
CHARSETS = ("utf-8", "iso-8859-1", "windows-1252", "koi8-r")
POSITIONS = ("file", "first of an mbox", "last of an mbox")


def read(tmp_path: Path, data: bytes, name: str = "x.eml") -> Patch:
    file = tmp_path / name
    file.write_bytes(data)
    (patch,) = read_patches(file)
    return patch


def with_bytes(data: bytes, raw: bytes) -> bytes:
    """The added line of a diff with these bytes in a comment."""
    return data.replace(b"+int lamp;", b"+int lamp; /* " + raw + b" */")


@pytest.mark.parametrize(
    ("coding", "end", "charset", "position"), list(itertools.product(CODINGS, LINE_ENDS, CHARSETS, POSITIONS))
)
def test_every_encoding_line_end_charset_and_position_gives_the_same_diff_message_author_and_subject(
    tmp_path: Path, coding: str, end: bytes, charset: str, position: str
) -> None:
    word = "лампа" if charset == "koi8-r" else "Füße"
    diff = with_bytes(diff_of(), word.encode())  # the file is UTF-8, whatever the mail's words are in
    words = f"{word} shine.\n\nSigned-off-by: {ADA}"
    body = words.encode(charset) + body_of(diff, "")
    headers, text = encoded(body, coding, charset)
    subject = words_of(f"[PATCH] lamp: {word} {'and a long tail ' * 4}".strip(), charset)
    sender = f"{words_of(f'Adä {word}' if charset != 'koi8-r' else word, charset)} <ada@lamps.example>"
    data = mail(subject, text, sender=sender, headers=headers).replace(b"\n", end)
    other = mail("[PATCH 0/1] cover", b"words\n").replace(b"\n", end)
    if position != "file":
        separator = b"From ada@lamps.example Mon Jan  5 10:00:00 2026" + end
        data, other = separator + data + end, separator + other + end
        data = data + other if position.startswith("first") else other + data
    patch = read(tmp_path, data)
    assert patch.diff == diff
    assert patch.message == words
    assert patch.author == (word if charset == "koi8-r" else f"Adä {word}")
    assert (patch.email, patch.subject) == ("ada@lamps.example", f"lamp: {word} {'and a long tail ' * 4}".strip())
    if charset != "utf-8":
        assert f"the diff holds bytes that are not ASCII, and the mail says {charset}: kept as they came" in patch.notes


@pytest.mark.parametrize("coding", CODINGS)
def test_bytes_of_a_file_in_no_charset_stay(tmp_path: Path, coding: str) -> None:
    diff = with_bytes(diff_of(), bytes(range(0x80, 0x100)) + b"\x0c\x0b")
    headers, text = encoded(body_of(diff), coding)
    assert read(tmp_path, mail(body=text, headers=headers)).diff == diff


@pytest.mark.parametrize("coding", CODINGS)
def test_carriage_returns_of_the_file_stay_in_every_encoding(tmp_path: Path, coding: str) -> None:
    diff = diff_of().replace(b"+int lamp;\n", b"+int lamp;\r\n").replace(b" int lamp_level;\n", b" int lamp_level;\r\n")
    headers, text = encoded(body_of(diff), coding)
    assert read(tmp_path, mail(body=text, headers=headers)).diff == diff


@pytest.mark.parametrize("charset", ["utf-16", "utf-16-le", "utf-32"])
def test_a_text_in_utf_16_is_made_utf_8_and_that_is_said(tmp_path: Path, charset: str) -> None:
    diff = with_bytes(diff_of(), "Füße".encode())
    headers, text = encoded(body_of(diff).decode().encode(charset), "base64", charset)
    patch = read(tmp_path, mail(body=text, headers=headers))
    assert patch.diff == diff
    assert f"the text came in {charset}: made UTF-8" in patch.notes


@pytest.mark.parametrize("codec", ["utf-16", "utf-8-sig"])
def test_a_file_with_a_byte_order_mark_is_read(tmp_path: Path, codec: str) -> None:
    patch = read(tmp_path, mail().decode().encode(codec))
    assert (patch.diff, patch.author) == (diff_of(), "Ada Example")


def test_a_header_folded_and_encoded_in_pieces_is_one_subject(tmp_path: Path) -> None:
    subject = "=?utf-8?q?=5BPATCH_v3_1/1=5D_lamp=3A_F=C3=BC?=\n =?utf-8?b?w59l?=\n and more\n\twords"
    patch = read(tmp_path, mail(subject))
    assert (patch.prefix, patch.subject) == ("[PATCH v3 1/1]", "lamp: Füße and more words")


@pytest.mark.parametrize(
    ("sender", "name", "address"),
    [
        ('"Example, Ada" <ada@lamps.example>', "Example, Ada", "ada@lamps.example"),
        ("ada@lamps.example (Ada Example)", "Ada Example", "ada@lamps.example"),
        ("ada@lamps.example", "", "ada@lamps.example"),
        ("=?bogus?q?x?= <ada@lamps.example>", "=?bogus?q?x?=", "ada@lamps.example"),
        ("Adä Example <ada@lamps.example>", "Adä Example", "ada@lamps.example"),
    ],
)
def test_an_author_is_read_as_git_am_reads_it(tmp_path: Path, sender: str, name: str, address: str) -> None:
    patch = read(tmp_path, mail(sender=sender))
    assert (patch.author, patch.email) == (name, address)


def test_the_date_and_the_ids_are_kept(tmp_path: Path) -> None:
    tail = b"base-commit: 0123456789abcdef0123456789abcdef01234567\nprerequisite-patch-id: " + b"a" * 40 + b"\n"
    body = body_of(diff_of()).replace(b"-- \n2.47", tail + b"-- \n2.47")
    patch = read(tmp_path, mail(body=body, headers={"Message-ID": "<one@lamps.example>"}))
    assert patch.date == "Mon, 5 Jan 2026 10:00:00 +0100"
    assert patch.message_id == "one@lamps.example"
    assert patch.base_commit == "0123456789abcdef0123456789abcdef01234567"
    assert patch.prerequisites == ("a" * 40,)
    assert patch.diff == diff_of()
    assert not any("no part of" in note for note in patch.notes)


def test_a_base_commit_that_is_quoted_or_in_the_diff_is_none(tmp_path: Path) -> None:
    diff = diff_of().replace(b"+int lamp;", b"+base-commit: 1111111111")
    body = body_of(diff, f"> base-commit: 2222222222\n\n{WORDS}")
    assert read(tmp_path, mail(body=body)).base_commit == ""


def test_a_base64_body_without_its_padding_is_read(tmp_path: Path) -> None:
    headers, text = encoded(body_of(diff_of("padded")), "base64")
    assert read(tmp_path, mail(body=text.rstrip(b"=\n") + b"\n", headers=headers)).diff == diff_of("padded")


def test_a_lists_footer_in_clear_below_a_base64_body_is_left_out_and_named(tmp_path: Path) -> None:
    headers, text = encoded(body_of(diff_of()), "base64")
    footer = b"_______________________________________________\nlamps mailing list\nlamps@lists.example\n"
    patch = read(tmp_path, mail(body=text + footer, headers=headers))
    assert patch.diff == diff_of()
    assert "text below the base64 body, left out: '________________________________________'" in patch.notes


@pytest.mark.parametrize("damage", [b"!", b"\xff", b" = "])
def test_a_base64_body_damaged_in_the_middle_is_refused(tmp_path: Path, damage: bytes) -> None:
    headers, text = encoded(body_of(diff_of()), "base64")
    lines = text.splitlines(keepends=True)
    lines[3] = lines[3][:20] + damage + lines[3][20:]
    with pytest.raises(UserError, match="base64 text of the mail is damaged near its line"):
        read(tmp_path, mail(body=b"".join(lines), headers=headers))


def test_a_base64_body_that_lost_a_character_is_refused(tmp_path: Path) -> None:
    headers, text = encoded(body_of(diff_of()), "base64")
    with pytest.raises(UserError):
        read(tmp_path, mail(body=text[:200] + text[201:], headers=headers))


def test_what_claims_to_be_quoted_printable_and_is_not_is_said(tmp_path: Path) -> None:
    headers, _ = encoded(b"", "quoted-printable")
    body = body_of(diff_of().replace(b"+int lamp;", b"+int lamp = x;"))
    patch = read(tmp_path, mail(body=body, headers=headers))
    assert patch.diff == diff_of().replace(b"+int lamp;", b"+int lamp = x;")
    assert any("quoted-printable" in note for note in patch.notes)


def test_soft_line_ends_of_quoted_printable_join_long_lines(tmp_path: Path) -> None:
    diff = diff_of().replace(b"+int lamp;", b"+int lamp; /* " + b"long = " * 60 + b"*/")
    text = quopri.encodestring(body_of(diff))
    assert max(map(len, text.split(b"\n"))) <= 76
    headers, _ = encoded(b"", "quoted-printable")
    assert read(tmp_path, mail(body=text, headers=headers)).diff == diff


@pytest.mark.parametrize("quoted", [b">From here on it is dark.", b">>From here on it is dark."])
def test_an_mbox_quotes_from_and_the_message_does_not(tmp_path: Path, quoted: bytes) -> None:
    body = body_of(diff_of(), f"Dark.\n\n{quoted.decode()}\n\n{WORDS}")
    patch = read(tmp_path, mbox(mail(body=body)))
    assert quoted[1:].decode() in patch.message.split("\n")
    assert patch.diff == diff_of()


def test_git_format_patch_quotes_no_from(tmp_path: Path) -> None:
    body = body_of(diff_of(), f"Dark.\n\n>From here on it is dark.\n\n{WORDS}")
    git_line = b"From " + b"1" * 40 + b" Mon Sep 17 00:00:00 2001\n"
    assert ">From here on it is dark." in read(tmp_path, git_line + mail(body=body)).message


@pytest.mark.parametrize(
    "line",
    [
        "From here on it is dark.",
        "From ada@lamps.example Mon Jan  5 10:00:00 2026",
        "From: nobody in particular",
        "from: x",
    ],
)
def test_a_line_of_the_message_that_begins_with_from_divides_nothing(tmp_path: Path, line: str) -> None:
    words = f"Dark.\n\n{line}\nand so on.\n\n{WORDS}"
    patch = read(tmp_path, mbox(mail(body=body_of(diff_of(), words))))
    assert (patch.message, patch.diff) == (words, diff_of())


@pytest.mark.parametrize("end", LINE_ENDS)
def test_mails_of_an_mbox_are_told_apart_with_no_empty_line_between_them(tmp_path: Path, end: bytes) -> None:
    one = mbox(mail("[PATCH 1/2] a", diff=diff_of("a"))).rstrip(b"\n") + b"\n"
    two = mbox(mail("[PATCH 2/2] b", diff=diff_of("b")))
    file = tmp_path / "x.mbox"
    file.write_bytes((one + two).replace(b"\n", end))
    assert [patch.diff for patch in read_patches(file)] == [diff_of("a"), diff_of("b")]


def test_a_mail_without_a_newline_at_its_end_is_whole(tmp_path: Path) -> None:
    body = body_of(diff_of())[: -len(b"-- \n2.47.1\n\n")]
    patch = read(tmp_path, mail(body=body.rstrip(b"\n")))
    assert patch.diff == diff_of()
    assert "no newline at the end of the text: added" in patch.notes


def test_empty_lines_above_the_headers_do_not_matter_and_lines_are_counted_with_them(tmp_path: Path) -> None:
    assert read(tmp_path, b"\n\r\n" + mail()).author == "Ada Example"
    with pytest.raises(UserError) as caught:
        read(tmp_path, b"\n\n" + mail(body=b"words\n---\n" + diff_of().replace(b"+int lamp;", b"int lamp;")))
    assert caught.value.where == f"{tmp_path / 'x.eml'}:17"


def test_a_text_part_and_a_part_in_another_charset_are_one_body(tmp_path: Path) -> None:
    text, text_body = encoded("Füße.\n---\n".encode("iso-8859-1"), "quoted-printable", "iso-8859-1")
    diff, diff_body = encoded(with_bytes(diff_of(), "ß".encode()), "base64")
    headers, body = multipart([(text, text_body), (diff, diff_body)])
    patch = read(tmp_path, mail(body=body, headers=headers))
    assert (patch.message, patch.diff) == ("Füße.", with_bytes(diff_of(), "ß".encode()))


def test_no_environment_has_a_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "LC_ALL", "C")
    assert read(tmp_path, mail(sender="Adä Example <ada@lamps.example>")).author == "Adä Example"
