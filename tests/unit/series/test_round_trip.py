# SPDX-License-Identifier: GPL-2.0-or-later
"""Commit -> mail -> intake -> commit: author, date, message and tree are what they were, however the mail is made."""

from __future__ import annotations

import base64
import quopri
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from email.header import Header
from pathlib import Path

import git
import pytest

from kpatch_ci.model.build import Tree
from kpatch_ci.model.series import Series
from kpatch_ci.model.status import Status
from kpatch_ci.series.apply import apply_series
from kpatch_ci.series.commits import commit_series
from kpatch_ci.series.intake import read_series

FORMAT = "%an|%ae|%ai|%T|%B"
"""What has to come back: author, address, date with its zone, tree, message."""
CONTEXT = "".join(f"int line_{i};\n" for i in range(1, 30))


@dataclass(frozen=True, slots=True)
class Change:
    """A commit to make: files (None: gone), and its words."""

    subject: str
    message: str = ""
    author: str = "Ada Example"
    date: str = "2026-01-05T10:00:00+0130"
    files: tuple[tuple[str, bytes | None], ...] = ()
    moves: tuple[tuple[str, str], ...] = ()
    executable: tuple[str, ...] = ()


CHANGES = (
    Change("lamp: Be bright", "A lamp that is on\nshall be bright.\n\nSigned-off-by: Ada Example <ada@lamps.example>",
           files=(("kernel/lamp.c", CONTEXT.replace("line_9;", "line_9 = 1;").encode()),)),
    Change("lamp: Sei hell, ä und 灯, and a subject that is so long that every mail program folds it somewhere in its middle",
           "Schön.", "Ädä Exämple", "2024-02-29T23:59:59-0800", (("kernel/lämp.c", "int lämp;\n".encode()),)),
    Change("lamp: Words that look like the end of a message",
           "From the lamp's side:\n> diff --git a/x b/x\n\ndiff is a program, --- is not a line of dashes here\n-- three\n--- x\n\n"
           "Index: no\n @@ -1 +1 @@\n\n"
           "Fixes: 1f1f1f1f1f1f (\"lamp: x\")\nLink: https://lamps.example/1\nReviewed-by: Eve <eve@lamps.example>",
           'Example, Ada "the lamp"', files=(("kernel/lamp.c", CONTEXT.replace("line_20;", "line_20 = 1;").encode()),)),
    Change("lamp: CRLF, no newline at the end, blanks at it, form feeds",
           files=(("dos.txt", b"one\r\ntwo\r\n"), ("open.txt", b"one\ntwo"), ("odd.c", b"int a; \t \n\x0c\n\tb\rc\n\xff\xfe\n"))),
    Change("lamp: More of that", "One.\n\n\nTwo.",
           files=(("dos.txt", b"one\r\n2\r\n"), ("open.txt", b"one\ntwo\nthree"), ("odd.c", b"int a;\t\n\x0c\n\tb\rd\n\xff\xff\n"))),
    Change("Revert \"lamp: [x86] Be bright\"", date="1999-12-31T23:59:59+0000",
           files=(("-- x.c", b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n"), ("kernel/with blank.c", b"x\n"), ("open.txt", None))),
    Change("lamp: Move it", moves=(("kernel/lamp.c", "kernel/light/lamp.c"),), executable=("kernel/with blank.c",)),
    Change("lamp: A picture", files=(("lamp.bin", bytes(range(256)) * 3), ("empty", b""), ("-- x.c", b"-- \n2.39.5\n"))),
    Change("lamp: Another picture", files=(("lamp.bin", bytes(range(255, -1, -1)) * 3), ("empty", None), ("-- x.c", b"-\n"))),
)  # fmt: skip


class History:
    """The commits of CHANGES on a first one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.repo = git.Repo.init(path)
        self.git = self.repo.git
        for key, value in {"user.name": "Eve", "user.email": "eve@lamps.example", "core.autocrlf": "false"}.items():
            self.git.config(key, value)
        self.base = self.commit(Change("first", files=(("kernel/lamp.c", CONTEXT.encode()),)))
        self.commits = [self.commit(change) for change in CHANGES]

    def commit(self, change: Change) -> str:
        for name, data in change.files:
            file = self.path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.unlink() if data is None else file.write_bytes(data)
        for old, new in change.moves:
            (self.path / new).parent.mkdir(parents=True, exist_ok=True)
            (self.path / old).rename(self.path / new)
            (self.path / new).write_bytes((self.path / new).read_bytes() + b"int moved;\n")
        for name in change.executable:
            (self.path / name).chmod(0o755)
        self.git.add("-A")
        text = f"{change.subject}\n\n{change.message}" if change.message else change.subject
        who = f"--author={change.author} <ada@lamps.example>"
        self.git.commit("-q", "--cleanup=verbatim", who, f"--date={change.date}", "-m", text)
        return str(self.git.rev_parse("HEAD"))

    def told(self, commits: Sequence[str]) -> list[str]:
        return [self.git.show("-s", f"--format={FORMAT}", commit).rstrip() for commit in commits]

    def mails(self, *options: str) -> list[bytes]:
        """git format-patch's mails, in order."""
        place = self.path.parent / "mails"
        names = self.git.format_patch("-o", str(place), *options, f"{self.base}..HEAD").split("\n")
        return [Path(name).read_bytes() for name in names]

    def back(self, place: Path) -> list[str]:
        """What the commits say that come of reading a place and applying it."""
        tree = Tree("lamps", "6.1", Path(self.repo.git_dir), self.base, self.git.rev_parse(f"{self.base}^{{tree}}"), "")
        patches, account = read_series([place])
        assert [one for one in account.left_out if "never applied" not in one.reason] == []
        series = Series("lamps", "Lamps", "", patches)
        applied = apply_series(series, tree)
        assert applied.status is Status.PASSED, applied.reason
        made = commit_series(series, applied, tree)
        assert made.notes == ()
        return self.told(made.commits)


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    return History(tmp_path_factory.mktemp("history") / "linux")


def recoded(mail: bytes, coding: str, coded: Callable[[bytes], bytes]) -> bytes:
    """A mail with its body in another transfer encoding; what it says of its own is replaced."""
    head, _, body = mail.partition(b"\n\n")
    own = (b"content-", b"mime-version")
    lines = [line for line in head.split(b"\n") if not line.lower().startswith(own)]
    how = f"MIME-Version: 1.0\nContent-Type: text/plain; charset=UTF-8\nContent-Transfer-Encoding: {coding}"
    return b"\n".join([*lines, how.encode()]) + b"\n\n" + coded(body)


def quoted_printable(body: bytes) -> bytes:
    return quopri.encodestring(body.replace(b"\r", b"\0")).replace(b"=00", b"=0D")


def attached(mail: bytes) -> bytes:
    """The whole mail as an attachment of another."""
    subject = Header("Fwd: Schau, ein Lämpchen", "utf-8").encode()
    head = f'From: eve@lamps.example\nSubject: {subject}\nContent-Type: multipart/mixed; boundary="b"\n\n--b\n\nLook.\n--b\n'
    return head.encode() + b"Content-Type: message/rfc822\n\n" + mail.partition(b"\n")[2] + b"\n--b--\n"


def beside(mail: bytes) -> bytes:
    """The mail's file, as one attaches it to another mail, in base64."""
    head = 'From: eve@lamps.example\nSubject: here\nContent-Type: multipart/mixed; boundary="b"\n\n--b\n\nLook.\n--b\n'
    kind = "Content-Type: text/x-patch; name=x.patch\nContent-Disposition: attachment; filename=x.patch\n"
    return f"{head}{kind}Content-Transfer-Encoding: base64\n\n".encode() + base64.encodebytes(mail) + b"--b--\n"


WAYS: dict[str, Callable[[bytes], bytes]] = {
    "as it is": lambda mail: mail,
    "8bit": lambda mail: recoded(mail, "8bit", lambda body: body),
    "base64": lambda mail: recoded(mail, "base64", base64.encodebytes),
    "quoted-printable": lambda mail: recoded(mail, "quoted-printable", quoted_printable),
    "a mail attached": attached,
    "a file attached": beside,
}
BINARY = ("--binary", "--full-index")


@pytest.mark.parametrize("way", WAYS)
def test_commits_come_back_however_the_mail_is_coded(history: History, tmp_path: Path, way: str) -> None:
    for number, mail in enumerate(history.mails(*BINARY), 1):
        (tmp_path / f"{number}.patch").write_bytes(WAYS[way](mail))
    assert history.back(tmp_path) == history.told(history.commits)


@pytest.mark.parametrize(
    "options",
    [
        ("--no-renames", "--no-stat", "--no-numbered"),
        ("-M", "-C", "--stat=400", "--thread=deep", "--cover-letter", "-v3"),
        ("-U1", "--signature=lamps", "--zero-commit"),
        ("--no-prefix", "--no-signature"),
        ("--src-prefix=old/", "--dst-prefix=new/", "--subject-prefix=RFC PATCH lamps"),
        ("--attach",),
        ("--inline", "-s"),
        ("--from=Eve <eve@lamps.example>", "--encode-email-headers"),
        ("--no-encode-email-headers", "--base=HEAD~9"),
        ("-k", "--function-context"),
    ],
    ids=" ".join,
)
def test_commits_come_back_whatever_git_format_patch_is_told(
    history: History, tmp_path: Path, options: tuple[str, ...]
) -> None:
    for number, mail in enumerate(history.mails(*BINARY, *options), 1):
        (tmp_path / f"{number:04}.patch").write_bytes(mail)
    signed = "\n\nSigned-off-by: Eve <eve@lamps.example>"
    back = [text.replace(signed, "").replace(signed[1:], "") for text in history.back(tmp_path)]
    assert back == history.told(history.commits)


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
def test_they_come_back_from_one_mbox(history: History, tmp_path: Path, ending: bytes) -> None:
    """A mail whose own lines end with CRLF keeps those of a CRLF file too: they come with two CRs."""
    text = b"".join(history.mails(*BINARY))
    (tmp_path / "lamps.mbox").write_bytes(text.replace(b"\n", ending))
    assert history.back(tmp_path / "lamps.mbox") == history.told(history.commits)


def test_they_come_back_from_git_log(history: History, tmp_path: Path) -> None:
    shown = history.git.log(
        "-p", *BINARY, f"{history.base}..HEAD", stdout_as_string=False, strip_newline_in_stdout=False
    )
    (tmp_path / "log.txt").write_bytes(shown)
    assert history.back(tmp_path / "log.txt") == history.told(history.commits)
