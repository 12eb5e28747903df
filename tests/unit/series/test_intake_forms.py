# SPDX-License-Identifier: GPL-2.0-or-later
"""Every form in which people have patches."""

from __future__ import annotations

import bz2
import gzip
import html
import io
import lzma
import shutil
import sys
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kpatch_ci.model.errors import InfrastructureError, UserError
from kpatch_ci.series import archive
from kpatch_ci.series.intake import read_patches, read_series
from tests.fakes.mails import ADA, WORDS, body_of, diff_of, encoded, mail, mbox, multipart, thread_mail

if TYPE_CHECKING:
    from tests.conftest import FakeTool

FIRST, SECOND = mail("[PATCH 1/2] a", diff=diff_of("a")), mail("[PATCH 2/2] b", diff=diff_of("b"))
BOTH = [diff_of("a"), diff_of("b")]


def diffs(path: Path) -> list[bytes]:
    return [patch.diff for patch in read_patches(path)]


def tarred(files: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return packed.getvalue()


def zipped(files: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in files.items():
            made.writestr(name, data)
    return packed.getvalue()


def test_a_maildir_is_a_thread(tmp_path: Path) -> None:
    for box, name, data in (
        ("cur", "2.host:2,S", FIRST),
        ("new", "10.host", SECOND),
        ("cur", "1.host:2,", mail("[PATCH 0/2] cover", b"words\n")),
        ("tmp", "3.host", mail("[PATCH 3/2] half written")),
    ):
        (tmp_path / box).mkdir(exist_ok=True)
        (tmp_path / box / name).write_bytes(data)
    patches, account = read_series([tmp_path])
    assert [patch.diff for patch in patches] == BOTH
    assert account.cover_subject == "cover"
    assert account.taken == (str(tmp_path / "cur" / "2.host:2,S"), str(tmp_path / "new" / "10.host"))


def test_a_maildir_without_mail_says_so(tmp_path: Path) -> None:
    (tmp_path / "cur").mkdir()
    with pytest.raises(UserError, match="no mail in this maildir"):
        read_patches(tmp_path)


def test_files_of_a_directory_are_counted_as_people_count(tmp_path: Path) -> None:
    for number in (1, 2, 10):
        (tmp_path / f"{number}-lamp.patch").write_bytes(mail(f"lamp {number}", diff=diff_of(f"n{number}")))
    assert diffs(tmp_path) == [diff_of("n1"), diff_of("n2"), diff_of("n10")]


def test_a_text_beside_the_patches_of_a_directory_is_left_out_and_an_empty_patch_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.patch").write_bytes(mail())
    (tmp_path / "notes.txt").write_text("about the lamps\n")
    (tmp_path / ".hidden.patch").write_text("of an editor")
    _, account = read_series([tmp_path])
    assert [(one.source, one.reason) for one in account.left_out] == [(str(tmp_path / "notes.txt"), "no diff in it")]
    (tmp_path / "b.patch").write_text("")
    with pytest.raises(UserError, match=r"b\.patch: the file is empty"):
        read_patches(tmp_path)


QUILT = b"# lamps\n\nz-first.patch\n   sub/a-second.patch   -p0  # a comment\nthird.diff -pab\n"


@pytest.mark.parametrize("place", ["", "patches", "debian/patches"])
def test_a_quilt_series_is_applied_in_its_order_with_its_strip_levels(tmp_path: Path, place: str) -> None:
    folder = tmp_path / place
    (folder / "sub").mkdir(parents=True)
    (folder / "series").write_bytes(QUILT)
    (folder / "z-first.patch").write_bytes(SECOND)  # its number has no say
    (folder / "sub/a-second.patch").write_bytes(b"Words.\n" + diff_of("x").replace(b" a/", b" ").replace(b" b/", b" "))
    (folder / "third.diff").write_bytes(diff_of("third"))
    (folder / "unused.patch").write_bytes(diff_of("unused"))
    patches, account = read_series([tmp_path])
    assert [patch.diff for patch in patches] == [diff_of("b"), diff_of("x"), diff_of("third")]
    assert "names of files have no leading directory: a/ and b/ added, such as a/kernel/lamp.c" in patches[1].notes
    assert [(one.source, one.reason) for one in account.left_out] == [
        (str(folder / "unused.patch"), "not named in the series file")
    ]
    assert account.notes == (), "numbers say nothing where a series file gives the order"
    assert diffs(folder / "series") == [patch.diff for patch in patches]


def test_a_strip_level_above_one_takes_directories_away(tmp_path: Path) -> None:
    (tmp_path / "series").write_text("deep.patch -p3\n")
    deep = diff_of().replace(b"a/kernel", b"/home/ada/old/kernel").replace(b"b/kernel", b"/home/ada/new/kernel")
    (tmp_path / "deep.patch").write_bytes(deep.partition(b"index")[1] + deep.partition(b"index")[2])
    (tmp_path / "series").write_text("deep.patch -p4\n")
    (patch,) = read_patches(tmp_path)
    assert patch.paths == ("kernel/lamp.c",)
    assert b"--- a/kernel/lamp.c\n+++ b/kernel/lamp.c\n" in patch.diff


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("a.patch -R\n", 1, r"taken back \(-R\)"),
        ("a.patch\nb.patch --fuzz\n", 2, "`--fuzz` after the name"),
        ("a.patch\n\nmissing.patch\n", 3, r"missing\.patch is not there"),
        ("../a.patch\n", 1, "leads out of the directory"),
        ("/etc/a.patch\n", 1, "leads out of the directory"),
    ],
)
def test_what_a_series_file_says_and_cannot_be_done_is_named_with_its_line(
    tmp_path: Path, text: str, line: int, what: str
) -> None:
    (tmp_path / "a.patch").write_bytes(mail())
    (tmp_path / "b.patch").write_bytes(mail())
    (tmp_path / "series").write_text(text)
    with pytest.raises(UserError, match=what) as caught:
        read_patches(tmp_path)
    assert caught.value.where == f"{tmp_path / 'series'}:{line}"


def test_a_patch_of_a_quilt_series_that_is_a_link_out_of_it_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "secret.patch").write_bytes(mail())
    (tmp_path / "q").mkdir()
    (tmp_path / "q" / "a.patch").symlink_to(tmp_path / "secret.patch")
    (tmp_path / "q" / "series").write_text("a.patch\n")
    with pytest.raises(UserError, match="is not there"):
        read_patches(tmp_path / "q")


FILES = {"lamps/0002-b.patch": SECOND, "lamps/0001-a.patch": FIRST, "lamps/README": b"words"}
PACKERS: Mapping[str, Callable[[Mapping[str, bytes]], bytes]] = {
    "x.tar": tarred,
    "x.tar.gz": lambda files: gzip.compress(tarred(files)),
    "x.tgz": lambda files: gzip.compress(tarred(files)),
    "x.tar.xz": lambda files: lzma.compress(tarred(files)),
    "x.tar.bz2": lambda files: bz2.compress(tarred(files)),
    "x.zip": zipped,
    "no-suffix": lambda files: gzip.compress(tarred(files)),
}


@pytest.mark.parametrize("name", PACKERS)
def test_archives_are_read_whatever_they_are_called(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_bytes(PACKERS[name](FILES))
    patches, account = read_series([file])
    assert [patch.diff for patch in patches] == BOTH
    assert patches[0].source.endswith(":lamps/0001-a.patch")
    assert [(one.source.rpartition(":")[2], one.reason) for one in account.left_out] == [
        ("lamps/README", "not named as a patch is")
    ]


@pytest.mark.parametrize("name", PACKERS)
def test_a_quilt_series_in_an_archive_gives_the_order(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    below = "linux/debian/patches/"
    quilt = {f"{below}series": b"b.patch\na.patch\n", f"{below}a.patch": FIRST, f"{below}b.patch": SECOND}
    file.write_bytes(PACKERS[name](quilt))
    assert diffs(file) == BOTH[::-1]


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress), (".bz2", bz2.compress)])
def test_a_compressed_mbox_is_read(tmp_path: Path, suffix: str, pack: Callable[[bytes], bytes]) -> None:
    file = tmp_path / f"thread.mbox{suffix}"
    file.write_bytes(pack(mbox(SECOND, FIRST)))
    assert diffs(file) == BOTH
    assert diffs(tmp_path) == BOTH


def test_a_name_that_leads_out_of_an_archive_is_refused(tmp_path: Path) -> None:
    for name in ("../a.patch", "/etc/a.patch", "lamps/../../a.patch", "..\\a.patch"):
        for made in (tarred, zipped):
            (tmp_path / "x").write_bytes(made({name: FIRST}))
            with pytest.raises(UserError, match="leads out of it"):
                read_patches(tmp_path / "x")


def test_a_link_in_an_archive_is_refused(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        link = tarfile.TarInfo("a.patch")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    (tmp_path / "x.tar").write_bytes(packed.getvalue())
    with pytest.raises(UserError, match="a link in the archive"):
        read_patches(tmp_path / "x.tar")


def test_a_link_beside_the_patches_of_an_archive_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(diff_of("secret"))
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, target in (("series", ""), ("a", ""), ("b", str(tmp_path / "secret"))):
            member = tarfile.TarInfo(name)
            data = {"series": b"a\nb\n", "a": FIRST, "b": b""}[name]
            member.size, member.linkname = len(data), target
            member.type = tarfile.SYMTYPE if target else tarfile.REGTYPE
            tar.addfile(member, io.BytesIO(data))
    (tmp_path / "x.tar").write_bytes(packed.getvalue())
    with pytest.raises(UserError, match="the patch b is not there"):
        read_patches(tmp_path / "x.tar")


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress, lambda data: zipped({"a.patch": data})])
def test_what_unpacks_to_more_than_a_patch_can_be_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: Callable[[bytes], bytes]
) -> None:
    monkeypatch.setattr(archive, "MAX_BYTES", 1 << 20)
    (tmp_path / "x").write_bytes(pack(b"\n" * (1 << 20) + b"\n"))
    with pytest.raises(UserError, match="unpacks to more than a patch can be"):
        read_patches(tmp_path / "x")


def test_the_bound_is_for_all_files_of_an_archive_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_BYTES", len(FIRST) + len(SECOND) - 1)
    (tmp_path / "x.zip").write_bytes(zipped({"a.patch": FIRST, "b.patch": SECOND}))
    with pytest.raises(UserError, match="unpacks to more than a patch can be"):
        read_patches(tmp_path / "x.zip")


def test_archives_in_archives_have_an_end(tmp_path: Path) -> None:
    data = mail()
    for _ in range(6):
        data = gzip.compress(data)
    (tmp_path / "x.gz").write_bytes(data)
    with pytest.raises(UserError, match="archives in archives"):
        read_patches(tmp_path / "x.gz")


@pytest.mark.parametrize("name", ["x.tar.gz", "x.tar.xz", "x.tar.bz2", "x.zip"])
def test_an_archive_that_is_cut_off_is_an_error(tmp_path: Path, name: str) -> None:
    data = PACKERS[name](FILES)
    for length in (20, len(data) // 2, len(data) - 5):
        (tmp_path / name).write_bytes(data[:length])
        with pytest.raises(UserError, match="the archive is damaged"):
            read_patches(tmp_path / name)


@pytest.mark.parametrize("magic", [b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf\x27\x1c", b"Rar!"])
def test_what_cannot_be_unpacked_here_is_named(tmp_path: Path, magic: bytes) -> None:
    (tmp_path / "x").write_bytes(magic + b"\0" * 100)
    with pytest.raises(UserError, match="packed with") as caught:
        read_patches(tmp_path / "x")
    assert "unpack it first" in (caught.value.expected or "")


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin(io.TextIOWrapper):
        def isatty(self) -> bool:
            return False

    monkeypatch.setattr(sys, "stdin", Stdin(io.BytesIO(mbox(SECOND, FIRST))))
    patches = read_patches(Path("-"))
    assert [patch.diff for patch in patches] == BOTH
    assert patches[0].source == "standard input (mail 2)"


def test_a_terminal_on_standard_input_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal())
    with pytest.raises(UserError, match="standard input is a terminal"):
        read_patches(Path("-"))


COMMIT = (
    "commit 1234567890abcdef1234567890abcdef12345678 (HEAD -> topic)\nAuthor: Ada Example <ada@lamps.example>\n"
    "Date:   Mon Jan 5 10:00:00 2026 +0100\n\n    lamp: Be bright\n\n    A lamp that is on\n    shall be bright.\n\n"
    "      diff --git a/x b/x\n\n    Signed-off-by: Ada Example <ada@lamps.example>\n\n"
)


def chained(name: str, old: str, new: str) -> bytes:
    return diff_of(name).replace(b"1111111..2222222", f"{old * 7}..{new * 7}".encode())


def test_what_git_show_prints_is_a_patch(tmp_path: Path) -> None:
    file = tmp_path / "show.txt"
    file.write_bytes(COMMIT.encode() + diff_of())
    (patch,) = read_patches(file)
    assert (patch.author, patch.email, patch.subject) == ("Ada Example", "ada@lamps.example", "lamp: Be bright")
    assert patch.message.startswith("A lamp that is on\nshall be bright.\n\n  diff --git a/x b/x\n")
    assert (patch.diff, patch.date) == (diff_of(), "Mon Jan 5 10:00:00 2026 +0100")
    file.write_bytes(COMMIT.encode() + diff_of().replace(b"+int lamp;", b"int lamp;"))
    with pytest.raises(UserError) as caught:
        read_patches(file)
    assert caught.value.where == f"{file}:{COMMIT.count(chr(10)) + 9}"


def test_colours_of_git_show_are_taken_off(tmp_path: Path) -> None:
    file = tmp_path / "show.txt"
    coloured = b"\n".join(b"\x1b[1m" + line + b"\x1b[m" for line in diff_of().split(b"\n"))
    file.write_bytes(b"\x1b[33m" + COMMIT.encode().replace(b"\n", b"\x1b[m\n", 1) + coloured)
    (patch,) = read_patches(file)
    assert patch.diff == diff_of()
    assert "colours of a terminal taken away" in patch.notes
    file.write_bytes(coloured)
    assert diffs(file) == [diff_of()]


@pytest.mark.parametrize("newest_first", [True, False])
def test_commits_of_git_log_are_put_in_order_by_their_blob_ids(tmp_path: Path, newest_first: bool) -> None:
    file = tmp_path / "log.txt"
    made = [COMMIT.encode() + chained(name, old, new) + b"\n" for name, old, new in (("a", "1", "2"), ("b", "2", "3"))]
    file.write_bytes(b"".join(made[::-1] if newest_first else made))
    patches = read_patches(file)
    assert [patch.diff for patch in patches] == [chained("a", "1", "2"), chained("b", "2", "3")]
    assert any(("newest first" if newest_first else "oldest first") in note for note in patches[0].notes)


def test_commits_of_git_log_that_share_no_file_are_turned_as_git_log_prints_them(tmp_path: Path) -> None:
    file = tmp_path / "log.txt"
    file.write_bytes(
        b"".join(COMMIT.encode() + diff_of(name, path=f"kernel/{name}.c") + b"\n" for name in ("new", "old"))
    )
    assert [patch.paths for patch in read_patches(file)] == [("kernel/old.c",), ("kernel/new.c",)]


def test_a_merge_that_git_show_prints_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_text(COMMIT.replace("Author", "Merge: 1234567 7654321\nAuthor"))
    with pytest.raises(UserError, match="a merge commit"):
        read_patches(tmp_path / "x")


def test_a_debian_patch_has_its_author_and_description(tmp_path: Path) -> None:
    for end in ("\n", "---\n"):
        head = f"Description: lamp: Be bright\n More words.\nAuthor: {ADA}\nForwarded: no\n{end}"
        (tmp_path / "x.patch").write_bytes(head.encode() + diff_of())
        (patch,) = read_patches(tmp_path / "x.patch")
        assert (patch.author, patch.diff) == ("Ada Example", diff_of())
        assert (patch.subject, patch.message) == ("lamp: Be bright", "More words.")


PAGES = {
    "one mail": (
        "<html><head><title>[PATCH v2] lamp: Be bright - Ada Example</title></head><body><form><pre>search help</pre></form>"
        "<pre\nid=b>From: Ada Example &lt;ada@lamps.example&gt;\nTo: lamps@lists.example\nCc: x@lamps.example,\n\ty@lamps.example\n"
        'Subject: <a\nhref="#r"\nid=t>[PATCH v2] lamp: Be bright</a>\nDate: Mon, 5 Jan 2026 10:00:00 +0100\t'
        '[<a\nhref="#r">thread overview</a>]\nMessage-ID: &lt;<a\nhref="">one@lamps.example</a>&gt; (<a\nhref="raw">raw</a>)\n\n'
        "{body}\n</pre><hr><pre>Thread overview: 2+ messages\n2026-01-05 [PATCH v2] lamp</pre></body></html>"
    ),
    "an archive that masks": (
        "<!DOCTYPE html><html><body><pre><b>\nList:       lamps\nSubject:    [PATCH v2] lamp: Be bright\n"
        "From:       Ada Example &lt;ada () lamps ! example&gt;\nDate:       2026-01-05 9:00:00\nMessage-ID: one () lamps ! example</b>\n"
        "[<a href=''>Download RAW message or body</a>]\n\n{body}\n[<a href=''>prev in list</a>] [<a href=''>next in list</a>]</pre>"
    ),
    "headers in a table": (
        "<html><body><h1>x</h1><table><tr><td>From:</td> <td>Ada Example &lt;ada@lamps.example&gt;</td></tr>"
        "<tr><td>Subject:</td> <td>[PATCH v2] lamp:\n Be bright</td></tr></table><p></p>\n\n<pre>\n{body}</pre></body></html>"
    ),
}
AMPERSANDS = diff_of().replace(b"+int lamp;", b"+\tif (a->b & c < d) /* \"e\" '&lt;' */")


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_saved_page_of_an_archive_is_read_with_its_entities_undone(tmp_path: Path, page: str, end: str) -> None:
    shown = (
        html.escape(body_of(AMPERSANDS).decode())
        .replace("diff --git", "<span class=head>diff --git")
        .replace("@@ -1", "</span><a\nhref='#x'>@@</a> -1")
    )
    file = tmp_path / "x.html"
    file.write_bytes(PAGES[page].replace("{body}", shown).replace("\n", end).encode())
    (patch,) = read_patches(file)
    assert patch.diff == AMPERSANDS
    assert (patch.prefix, patch.subject) == ("[PATCH v2]", "lamp: Be bright")
    assert (patch.author, patch.email) == ("Ada Example", "ada@lamps.example")
    assert patch.message == WORDS
    assert any(note.startswith("read from a web page") for note in patch.notes)


def thread_page(text: str) -> bytes:
    return f"<html><body><pre>{text}</pre></body></html>".encode()


THREAD = "".join(
    f"* <u>[PATCH v2 {number}/2] lamp: {name}</u>\n@ 2026-01-05 10:00 ` Ada\n  0 siblings, 0 replies\n\n"
    f"From: Ada Example @ 2026-01-05 10:00 UTC (<a>permalink</a> / <a>raw</a>)\n  To: lamps; <b>+Cc:</b> others\n\n"
    f"{text}\n^ <a>permalink</a> <a>raw</a> <a>reply</a>\t[flat|nested] 3+ messages in thread\n"
    for number, name, text in (
        (0, "cover", "Words.\n"),
        (2, "b", html.escape(body_of(diff_of("b")).decode())),
        (1, "a", html.escape(body_of(diff_of("a")).decode())),
    )
)


def test_a_page_of_a_thread_has_all_its_mails(tmp_path: Path) -> None:
    file = tmp_path / "x.html"
    file.write_bytes(thread_page(THREAD))
    patches, account = read_series([file])
    assert [patch.diff for patch in patches] == BOTH
    assert [patch.prefix for patch in patches] == ["[PATCH v2 1/2]", "[PATCH v2 2/2]"]
    assert (account.cover_subject, account.cover, patches[0].author) == ("lamp: cover", "Words.", "Ada Example")


def test_the_text_of_such_a_page_pasted_is_read_too(tmp_path: Path) -> None:
    text = html.unescape(THREAD.replace("<u>", "").replace("</u>", "").replace("<b>", "").replace("</b>", ""))
    file = tmp_path / "x.txt"
    file.write_text(text.replace("<a>", "").replace("</a>", ""))
    assert diffs(file) == BOTH


def test_headers_pasted_below_other_words_are_found(tmp_path: Path) -> None:
    file = tmp_path / "x.txt"
    file.write_bytes(
        b"mailing list archive\nprevious | next\n\nFrom: Ada Example <ada@lamps.example>\nSubject: [PATCH] lamp\n\n"
        + body_of(diff_of())
    )
    (patch,) = read_patches(file)
    assert (patch.author, patch.subject, patch.message, patch.diff) == ("Ada Example", "lamp", WORDS, diff_of())


def test_a_page_without_a_diff_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.html").write_text("<html><body><p>lamps</p></body></html>")
    with pytest.raises(UserError, match="shows no diff"):
        read_patches(tmp_path / "x.html")


def test_a_diff_in_the_running_text_of_a_page_lost_its_white_space_and_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.html").write_text(
        f"<html><body><p>{html.escape(diff_of().decode())}</p></body></html>".replace("\n", "<br>\n")
    )
    with pytest.raises(UserError, match="begins with neither a blank nor"):
        read_patches(tmp_path / "x.html")


def test_an_html_mail_with_a_preformatted_block_is_read(tmp_path: Path) -> None:
    page = f"<div>Hi,</div><div style='white-space: pre-wrap'>{html.escape(body_of(AMPERSANDS).decode())}</div>"
    headers, text = encoded(page.encode(), "quoted-printable")
    headers["Content-Type"] = "text/html; charset=utf-8"
    (tmp_path / "x.eml").write_bytes(mail(body=text, headers=headers))
    (patch,) = read_patches(tmp_path / "x.eml")
    assert patch.diff == AMPERSANDS
    assert "the text is HTML: read as the page shows it" in patch.notes


def test_of_plain_text_and_html_the_plain_text_is_taken(tmp_path: Path) -> None:
    page = f"<pre>{html.escape(body_of(diff_of('wrong')).decode())}</pre>"
    headers, body = multipart(
        [({"Content-Type": "text/plain"}, body_of(diff_of())), ({"Content-Type": "text/html"}, page.encode())],
        "alternative",
    )
    (tmp_path / "x.eml").write_bytes(mail(body=body, headers=headers))
    assert diffs(tmp_path / "x.eml") == [diff_of()]


def attached(name: str, data: bytes, kind: str, coding: str = "base64") -> tuple[dict[str, str], bytes]:
    headers, text = encoded(data, coding)
    headers.pop("MIME-Version")
    return headers | {"Content-Type": kind, "Content-Disposition": f'attachment; filename="{name}"'}, text


TEXT = ({"Content-Type": "text/plain"}, f"{WORDS}\n".encode())
KINDS = ("text/x-patch", "text/x-diff", "text/plain", "application/octet-stream", "application/x-patch")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("coding", ["8bit", "base64", "base64-crlf", "quoted-printable"])
@pytest.mark.parametrize("name", ["lamp.patch", "lamp"])
def test_a_diff_that_is_attached_belongs_to_the_mail(tmp_path: Path, kind: str, coding: str, name: str) -> None:
    headers, body = multipart([TEXT, attached(name, diff_of(), kind, coding)])
    (tmp_path / "x.eml").write_bytes(mail("[PATCH v3] lamp: Be bright", body, headers=headers))
    (patch,) = read_patches(tmp_path / "x.eml")
    assert (patch.diff, patch.message, patch.author) == (diff_of(), WORDS, "Ada Example")
    assert (patch.prefix, patch.subject) == ("[PATCH v3]", "lamp: Be bright")
    assert f"the diff is attached: {name}" in patch.notes


def test_patches_attached_with_headers_of_their_own_are_mails_of_their_own(tmp_path: Path) -> None:
    other = mail("[PATCH 2/2] b", diff=diff_of("b"), sender="Bob Example <bob@lamps.example>")
    parts = [
        TEXT,
        attached("0002.patch", other, "text/x-patch"),
        attached("0001.patch", FIRST, "application/octet-stream"),
    ]
    headers, body = multipart(parts)
    (tmp_path / "x.eml").write_bytes(mail("please test", body, headers=headers))
    patches = read_patches(tmp_path / "x.eml")
    assert [(patch.diff, patch.author) for patch in patches] == [(BOTH[0], "Ada Example"), (BOTH[1], "Bob Example")]
    assert any(note.startswith("attached to the mail `please test`") for note in patches[0].notes)


def test_a_mail_that_is_forwarded_as_an_attachment_is_read(tmp_path: Path) -> None:
    headers, body = multipart([TEXT, ({"Content-Type": "message/rfc822"}, FIRST)])
    (tmp_path / "x.eml").write_bytes(mail("Fwd: a", body, headers=headers))
    (patch,) = read_patches(tmp_path / "x.eml")
    assert (patch.diff, patch.prefix) == (diff_of("a"), "[PATCH 1/2]")


def test_several_diffs_that_are_attached_are_several_patches_in_their_order(tmp_path: Path) -> None:
    headers, body = multipart([TEXT, *(attached(f"{n}.diff", diff_of(n), "text/x-patch") for n in ("z", "a"))])
    (tmp_path / "x.eml").write_bytes(mail("lamps", body, headers=headers))
    patches = read_patches(tmp_path / "x.eml")
    assert [(patch.subject, patch.diff) for patch in patches] == [("z", diff_of("z")), ("a", diff_of("a"))]


def test_a_packed_attachment_is_opened(tmp_path: Path) -> None:
    headers, body = multipart([TEXT, attached("lamps.tar.gz", PACKERS["x.tar.gz"](FILES), "application/gzip")])
    (tmp_path / "x.eml").write_bytes(mail("lamps", body, headers=headers))
    assert diffs(tmp_path / "x.eml") == BOTH


@pytest.mark.parametrize(
    "shown", [diff_of(), diff_of().replace(b"+int lamp;", b"int\nlamp;"), diff_of().replace(b"\t", b"    ")]
)
def test_of_a_diff_in_the_text_and_the_same_attached_the_attached_one_is_taken(tmp_path: Path, shown: bytes) -> None:
    text = ({"Content-Type": "text/plain"}, body_of(shown))
    headers, body = multipart([text, attached("lamp.patch", diff_of(), "text/x-patch")])
    (tmp_path / "x.eml").write_bytes(mail(body=body, headers=headers))
    (patch,) = read_patches(tmp_path / "x.eml")
    assert (patch.diff, patch.message, patch.subject) == (diff_of(), WORDS, "lamp: Be bright")
    assert "the mail's text holds a diff too: the attached one is taken" in patch.notes


def test_different_diffs_in_text_and_attachment_are_refused(tmp_path: Path) -> None:
    text = ({"Content-Type": "text/plain"}, body_of(diff_of(path="kernel/other.c")))
    headers, body = multipart([text, attached("lamp.patch", diff_of(), "text/x-patch")])
    (tmp_path / "x.eml").write_bytes(mail(body=body, headers=headers))
    with pytest.raises(UserError, match="different patches"):
        read_patches(tmp_path / "x.eml")


def test_what_is_attached_and_no_patch_is_named_and_signatures_are_not(tmp_path: Path) -> None:
    signature = (
        {"Content-Type": "application/pgp-signature", "Content-Disposition": 'attachment; filename="s.asc"'},
        b"x",
    )
    text = ({"Content-Type": "text/plain"}, body_of(diff_of()))
    headers, body = multipart([text, attached("dmesg.txt", b"[ 0.0] lamp\n", "text/plain"), signature])
    (tmp_path / "x.eml").write_bytes(mail(body=body, headers=headers))
    (patch,) = read_patches(tmp_path / "x.eml")
    assert patch.diff == diff_of()
    assert [note for note in patch.notes if "attached" in note] == ["attached, but no patch, left out: dmesg.txt"]


def test_a_message_id_or_address_is_fetched_with_b4(tmp_path: Path, fake_tool: FakeTool) -> None:
    (tmp_path / "thread").write_bytes(mbox(SECOND, FIRST))
    fake_tool("b4", f'printf "%s|" "$@" > {tmp_path}/argv; test "$1" = mbox && cp {tmp_path}/thread "$3/t.mbx"')
    for asked, wanted in (
        ("20260105.1@lamps.example", "20260105.1@lamps.example"),
        ("<20260105.1@lamps.example>", "20260105.1@lamps.example"),
        (
            "https://archive.example/lamps/20260105.1@lamps.example/",
            "https://archive.example/lamps/20260105.1@lamps.example",
        ),
    ):
        patches, account = read_series([Path(asked)])
        assert [patch.diff for patch in patches] == BOTH
        assert "20260105.1@lamps.example" in account.taken[0]
        words = (tmp_path / "argv").read_text().split("|")
        assert (words[:2], words[3:5]) == (["mbox", "-o"], ["--", wanted])


def test_without_b4_a_message_id_says_what_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert shutil.which("b4") is None
    with pytest.raises(InfrastructureError, match=r"b4 is needed, which is not installed[^@]*pip install b4"):
        read_patches(Path("x@lamps.example"))


def test_what_b4_cannot_fetch_is_told_with_its_words(fake_tool: FakeTool) -> None:
    fake_tool("b4", "echo no such thread; exit 1")
    with pytest.raises(InfrastructureError, match="no such thread"):
        read_patches(Path("x@lamps.example"))
    fake_tool("b4", "exit 0")
    with pytest.raises(UserError, match="b4 found no thread"):
        read_patches(Path("x@lamps.example"))


def test_a_file_that_looks_like_a_message_id_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x@lamps.example").write_bytes(mail())
    assert diffs(Path("x@lamps.example")) == [diff_of()]


def test_thread_mails_have_ids(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(thread_mail("[PATCH 1/1]", "a", ident="a"))
    assert read_patches(tmp_path / "x")[0].message_id == "a@lamps.example"
