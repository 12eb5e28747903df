# SPDX-License-Identifier: GPL-2.0-or-later
"""Mails with patches, made by chance: encodings, charsets, line ends, folding, parts, quotations, damage.

Words, names and lines of code come from short lists of what is hard to read: a removed line that looks like the end of the
message, a message that quotes a diff. A mail that was not damaged has to be read byte for byte; a damaged one may be refused.
Every choice is drawn from a ``random.Random``, so hypothesis can make them (and shrink them), or one of its seeds.
"""

from __future__ import annotations

import base64
import quopri
from dataclasses import dataclass
from email.header import Header
from random import Random

PATHS = (
    "kernel/lamp.c", "drivers/net/lamp core.c", "Documentation/lämpe.rst", "mm/a b+c.c", 'fs/qu"ote.c', "Makefile",
    "a/b/c.h", "tools/testing/b/a.sh", "scripts/-- x.pl", "kernel/old.orig/x.c",
    "arch/x86/lib/deep/deeper/deepest/file.S",
)  # fmt: skip
CODE = (
    b"int lamp;", b"", b"\treturn 0;", b"--- a/kernel/lamp.c", b"++ b/kernel/lamp.c", b"-- ", b"-", b"+++",
    b"@@ -1,3 +1,3 @@", b"diff --git a/x b/x", b"From ada@lamps.example Mon Jan  5 10:00:00 2026", b">From here",
    b"index 1111111..2222222 100644", b"Subject: [PATCH 2/2] no", b"> quoted", b"=3D=20", b"a=", b"tail \t ", b"\x0c",
    b"caf\xc3\xa9", b"latin \xe9 1", b"x" * 500, b"\\ No newline at end of file", b"---",
    b"Binary files a/x and b/x differ", b"GIT binary patch", b"lone\rreturn", b"2.39.5", b"-- >8 --", b"<html>",
    b"\xe2\x80\xae", b".", b"..", b"#!/bin/sh", b"*** a", b"deleted file mode 100644", b"\xff\xfe",
)  # fmt: skip
SECTIONS = (
    "", "static int lamp_init(void)", "@@ odd", "caf\u00e9", "diff --git a/x b/x", "Subject: x",
)  # fmt: skip
SUBJECTS = (
    "[PATCH] lamp: Be bright", "[RFC PATCH 1/2] lamp: Be bright", "[PATCH v2 RESEND 2/7] lamp: Be bright",
    "lamp: Be bright", "[PATCH 6.6.y] lamp: Be bright", "[PATCH1/8] lamp: Be bright",
    "[PATCH net-next V2 01/10] lamp: Be bright", "[lamps] [PATCH] x", "[PATCH] lämpe: Sei hell", "[PATCH] 灯: 明るく",
    "[PATCH] Revert \"lamp: Be bright\"", "[PATCH] a" + " long subject" * 12, "[PATCH]", "[PATCH 1/1] v2: 3/4 of: it",
    "", "[PATCH v99999999999999999999 3/2] lamp", "[PATCH 00003/00004] x", "[PATCH] [arm] lamp: x",
)  # fmt: skip
NAMES = ("Ada Example", "Ädä Exämple", "Example, Ada", 'Ada "Lamp" Example', "艾达", "", "Ada via lamps", "A" * 200)
WORDS = (
    "A lamp that is on shall be bright.", "", "> diff --git a/x b/x", "> --- a/x", "> +++ b/x", "> @@ -1 +1 @@",
    "From the lamp:", "From: Eve Example <eve@lamps.example>", "Subject: another",
    "Signed-off-by: Ada Example <ada@lamps.example>", "On Monday Ada wrote:", "Fixes: 1f1f1f1f1f1f (\"lamp: x\")",
    " indented", "\tint lamp;", "-- >8 --", "diff is a program", "--- not a file", "* a list", "- too", "Index: x",
    "base-commit: 1f1f1f1f1f1f", "v2: brighter", "Ä lämp", "  diff --git a/x b/x", "--", "-----BEGIN LAMP-----", "+1",
    "@ noon", "____", "====", "commit 1f1f1f1f", "[ada: brighter]", "x" * 900,
)  # fmt: skip
AFTER = (
    b"", b"-- \n2.39.5\n\n", b"--\n2.47.1\n", b"\n_______________\nlamps mailing list\nlamps@lamps.example\n",
    b"-- \nAda\n", b"\n\n",
)  # fmt: skip
CHARSETS = (
    "utf-8", "us-ascii", "iso-8859-1", "UTF-8", "windows-1252", "unknown-8bit", "x-lamp", "utf-7", "gb18030",
    "koi8-r", "ISO-2022-JP",
)  # fmt: skip
CODINGS = ("8bit", "base64", "base64-crlf", "quoted-printable", "none", "binary", "x-lamp")
SEPARATOR = b"From ada@lamps.example Mon Jan  5 10:00:00 2026\n"
ALIKE = ("utf-8", "us-ascii", "iso-8859-1", "windows-1252", "koi8-r")
"""Charsets in which a diff's bytes stay as they are."""


KINDS = ("change", "change", "change", "new", "gone", "mode", "rename", "renamed", "binary", "empty", "plain")
WITHOUT_HUNKS = {
    "empty": b"new file mode 100644\nindex 000000000000..e69de29bb2d1\n",
    "mode": b"old mode 100644\nnew mode 100755\n",
    "binary": (
        b"index 1111111..2222222 100644\nGIT binary patch\nliteral 1\nIcmZPo000310RR91\n\nliteral 0\nHcmV?d00001\n\n"
    ),
}
MODES = {"new": b"new file mode 100644\n", "gone": b"deleted file mode 100644\n"}


@dataclass(frozen=True, slots=True)
class GeneratedMail:
    """A mail, and what has to be found in it."""

    data: bytes
    diff: bytes
    hunks: int


def hunk(chance: Random, at: int) -> bytes:
    """One hunk for the line ``at`` of a file."""
    kinds = [*chance.choices(" +-", k=chance.randint(0, 6)), chance.choice("+-")]
    chance.shuffle(kinds)
    lines = [kind.encode() + chance.choice(CODE) + b"\n" for kind in kinds]
    if chance.randrange(10) == 0:
        lines[-1] += b"\\ No newline at end of file\n"
    section = chance.choice(SECTIONS)
    counts = [sum(kind != other for kind in kinds) for other in "+-"]
    old, new = (f"{at},{count}" if count != 1 else str(at) for count in counts)
    return f"@@ -{old} +{new} @@{' ' if section else ''}{section}\n".encode() + b"".join(lines)


def section(chance: Random) -> tuple[bytes, int]:
    """One file's part of a diff, and how many hunks it has."""
    path = chance.choice(PATHS)
    kind = chance.choice(KINDS)
    old, new = quoted(f"a/{path}"), quoted(f"b/{path}")
    head = b"diff --git %s %s\n" % (old, new)
    if kind in WITHOUT_HUNKS:
        return head + WITHOUT_HUNKS[kind], 0
    if kind in ("rename", "renamed"):
        new = quoted(f"b/{path}.moved")
        head = b"diff --git %s %s\nsimilarity index 90%%\n" % (old, new)
        head += b"rename from %s\nrename to %s\n" % (quoted(path), quoted(f"{path}.moved"))
        if kind == "rename":
            return head, 0
    head += MODES.get(kind, b"")
    if kind == "plain":
        head = head if chance.random() < 0.5 else b""
    else:
        head += b"index 1111111..2222222%s\n" % (b" 100644" if kind == "change" else b"")
    names = [b"/dev/null" if kind == "new" else old, b"/dev/null" if kind == "gone" else new]
    head += b"--- %s\n+++ %s\n" % tuple(name + (b"\t" if b" " in name and b'"' not in name else b"") for name in names)
    if kind in ("new", "gone"):
        return head + _whole_file(chance, kind), 1
    count = chance.randint(1, 3)
    return head + b"".join(hunk(chance, 1 + 50 * number) for number in range(count)), count


def _whole_file(chance: Random, kind: str) -> bytes:
    lines = chance.choices(CODE, k=chance.randint(1, 6))
    count = b"1" if len(lines) == 1 else b"1,%d" % len(lines)
    ranges = (b"0,0", count) if kind == "new" else (count, b"0,0")
    mark = b"+" if kind == "new" else b"-"
    return b"@@ -%s +%s @@\n" % ranges + b"".join(mark + line + b"\n" for line in lines)


def quoted(name: str) -> bytes:
    """A file's name as git writes it in a diff."""
    data = name.encode()
    if all(32 <= byte < 127 and byte not in b'"\\' for byte in data):
        return data
    special = {9: "\\t", 34: '\\"', 92: "\\\\"}
    shown = "".join(special.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}") for byte in data)
    return f'"{shown}"'.encode()


def body(chance: Random) -> tuple[bytes, bytes, int]:
    """A body with its diff and how many hunks that has: words, a line of dashes, perhaps comments, the diff, a signature."""
    parts = [section(chance) for _ in range(chance.randint(1, 3))]
    diff = b"".join(part for part, _ in parts)
    words = "".join(f"{line}\n" for line in chance.choices(WORDS, k=chance.randint(0, 5)))
    if chance.random() < 0.5:
        comment = "".join(f"{line}\n" for line in chance.choices(WORDS[:4], k=chance.randint(0, 2)))
        words += f"---\n{comment}\n"
    elif chance.random() < 0.5:
        words += "\n"
    return words.encode() + diff + chance.choice(AFTER), diff, sum(count for _, count in parts)


def coded(data: bytes, coding: str) -> bytes:
    """A body in a transfer encoding."""
    if coding == "quoted-printable":
        return quopri.encodestring(data.replace(b"\r", b"\0")).replace(b"=00", b"=0D")
    if coding.startswith("base64"):
        return base64.encodebytes(data.replace(b"\n", b"\r\n") if coding.endswith("crlf") else data)
    return data


def headers(chance: Random, subject: str, ident: int) -> list[str]:
    """Header lines of a mail, raw, encoded or folded."""
    name = chance.choice(NAMES)
    style = chance.choice(("raw", "folded", "utf-8", "latin"))
    shown, sender = subject, name
    if style in ("utf-8", "latin"):
        charset = "utf-8" if style == "utf-8" or any(ord(c) > 255 for c in subject + name) else "iso-8859-1"
        shown = Header(subject, charset, header_name="Subject").encode()
        sender = Header(name, charset, header_name="From").encode()
    elif style == "folded":
        shown = subject.replace(" ", "\n ", 1).replace(" long", "\n\tlong", 3)
    elif "," in name:
        sender = f'"{name}"'
    lines = [f"From: {sender} <ada@lamps.example>", f"Subject: {shown}", "Date: Mon, 5 Jan 2026 10:00:00 +0100"]
    if chance.random() < 0.5:
        lines += [f"Message-ID: <{ident}@lamps.example>", "References: <0@lamps.example>\n <broken"]
    if chance.randrange(8) == 0:
        lines = [line.replace(": ", ":", 1).replace("Subject", "SUBJECT") for line in lines]
    if chance.randrange(4) == 0:
        chance.shuffle(lines)
    return lines


def mail(chance: Random, *, whole: bool = True, subject: str | None = None, ident: int = 1) -> GeneratedMail:
    """A mail. ``whole``: nothing in it is such that its diff may be read in any other way than as it is."""
    subject = chance.choice(SUBJECTS) if subject is None else subject
    lines = headers(chance, subject, ident)
    text, diff, count = body(chance)
    coding = chance.choice(CODINGS[:4] if whole else CODINGS)
    kind = f"Content-Type: text/plain; charset={chance.choice(ALIKE if whole else CHARSETS)}"
    encoding = f"Content-Transfer-Encoding: {coding.removesuffix('-crlf')}"
    shape = chance.choice(("single", "single", "single", "mixed", "alternative", "attached", "signed"))
    if shape == "single":
        lines += [kind] if coding != "8bit" or chance.random() < 0.5 else []
        lines += [encoding] if coding != "none" else []
        data = "\n".join(lines).encode() + b"\n\n" + coded(text, coding)
    else:
        data = _parts(lines, shape, (kind, encoding), coded(text, coding), coded(diff, coding))
    if chance.random() < 0.5:
        data = data.replace(b"\n", b"\r\n")
    if chance.randrange(4) == 0:
        data = SEPARATOR + data
    return GeneratedMail(data, diff, count)


def mbox(chance: Random) -> tuple[bytes, list[bytes]]:
    """An mbox of the numbered mails of one series in any order, and their diffs in the order of their numbers."""
    count = chance.randint(2, 4)
    mails = [
        mail(chance, subject=f"[PATCH {number}/{count}] lamp: Change {number}", ident=number)
        for number in range(1, count + 1)
    ]
    came = [SEPARATOR + one.data.removeprefix(SEPARATOR) + b"\n\n" for one in mails]
    chance.shuffle(came)
    return b"".join(came), [one.diff for one in mails]


def _parts(lines: list[str], shape: str, how: tuple[str, str], text: bytes, diff: bytes) -> bytes:
    outer = {"alternative": "multipart/alternative", "signed": "multipart/signed"}.get(shape, "multipart/mixed")
    head = "\n".join([*lines, "MIME-Version: 1.0", f'Content-Type: {outer}; boundary="=-lamps="', "", ""]).encode()
    inner = "\n".join([*how, "", ""]).encode()
    attached = f'{how[0].replace("plain", "x-patch")}\n{how[1]}\nContent-Disposition: attachment; filename="0001-lamp.patch"\n\n'
    parts = {
        "mixed": [
            inner + text,
            b"Content-Type: image/png; name=lamp.png\nContent-Transfer-Encoding: base64\n\niVBORw0=\n",
        ],
        "alternative": [inner + text, b"Content-Type: text/html\n\n<html><body><p>A lamp.</p></body></html>\n"],
        "signed": [
            inner + text,
            b"Content-Type: application/pgp-signature; name=signature.asc\n\n-----BEGIN PGP SIGNATURE-----\n",
        ],
        "attached": [b"Content-Type: text/plain\n\nA lamp.\n", attached.encode() + diff],
    }[shape]
    return head + b"".join(b"--=-lamps=\n" + part + b"\n" for part in parts) + b"--=-lamps=--\n"
