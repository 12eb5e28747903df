# SPDX-License-Identifier: GPL-2.0-or-later
"""Mails as people send them, made for the tests of intake: nothing in them is anybody's."""

from __future__ import annotations

import base64
import quopri
from collections.abc import Mapping, Sequence
from email.header import Header

ADA = "Ada Example <ada@lamps.example>"
WORDS = "A lamp that is on\nshall be bright.\n\nSigned-off-by: Ada Example <ada@lamps.example>"


def diff_of(name: str = "lamp", *, path: str = "kernel/lamp.c", line: int = 1) -> bytes:
    """A diff that adds ``int <name>;`` to a file; tabs, an empty context line and a removed line that looks like a signature are in it."""
    return (
        f"diff --git a/{path} b/{path}\nindex 1111111..2222222 100644\n--- a/{path}\n+++ b/{path}\n"
        f"@@ -{line},7 +{line},7 @@ static int lamp_init(void)\n /* a lamp */\n \n int lamp_level;\n+int {name};\n"
        "--- \n \n int lamp_on(void)\n \treturn 1;\n"
    ).encode()


STAT = b" kernel/lamp.c | 2 +-\n 1 file changed, 1 insertion(+), 1 deletion(-)\n"


def body_of(diff: bytes, words: str = WORDS, stat: bytes = STAT) -> bytes:
    """A body as git format-patch makes it."""
    return words.encode() + b"\n---\n" + stat + b"\n" + diff + b"-- \n2.47.1\n\n"


def mail(
    subject: str = "[PATCH] lamp: Be bright",
    body: bytes | None = None,
    *,
    sender: str = ADA,
    headers: Mapping[str, str] | None = None,
    diff: bytes | None = None,
) -> bytes:
    """A mail with these headers, its body in clear."""
    more = "".join(f"{key}: {value}\n" for key, value in (headers or {}).items())
    head = f"From: {sender}\nDate: Mon, 5 Jan 2026 10:00:00 +0100\nSubject: {subject}\n{more}\n"
    return head.encode() + (body if body is not None else body_of(diff if diff is not None else diff_of()))


def thread_mail(number: str, subject: str, *, ident: str, answers: str = "", **more: object) -> bytes:
    """A numbered mail with ids, such as ``[PATCH v2 1/2]``."""
    headers = {"Message-ID": f"<{ident}@lamps.example>"}
    if answers:
        headers |= {"In-Reply-To": f"<{answers}@lamps.example>", "References": f"<{answers}@lamps.example>"}
    return mail(f"{number} {subject}".strip(), headers=headers, **more)  # type: ignore[arg-type]


def mbox(*mails: bytes) -> bytes:
    """An mbox of mails."""
    return b"".join(b"From ada@lamps.example Mon Jan  5 10:00:00 2026\n" + one.rstrip(b"\n") + b"\n\n" for one in mails)


def encoded(body: bytes, coding: str, charset: str = "utf-8") -> tuple[dict[str, str], bytes]:
    """Headers and body in a transfer encoding: 7bit, 8bit, quoted-printable, base64, base64-crlf."""
    headers = {"MIME-Version": "1.0", "Content-Type": f"text/plain; charset={charset}"}
    headers["Content-Transfer-Encoding"] = coding.removesuffix("-crlf")
    if coding == "quoted-printable":
        # quopri makes every line end CRLF where it sees one
        return headers, quopri.encodestring(body.replace(b"\r\n", b"\0\n")).replace(b"=00\n", b"=0D\n")
    if coding.startswith("base64"):
        text = body.replace(b"\n", b"\r\n") if coding.endswith("-crlf") else body
        return headers, base64.encodebytes(text)
    return headers, body


def multipart(parts: Sequence[tuple[Mapping[str, str], bytes]], kind: str = "mixed") -> tuple[dict[str, str], bytes]:
    """Headers and body of a mail with parts, each its headers and its bytes."""
    text = b"This is a multi-part message.\n"
    for headers, data in parts:
        text += (
            b"--lamps\n"
            + "".join(f"{key}: {value}\n" for key, value in headers.items()).encode()
            + b"\n"
            + data
            + b"\n"
        )
    return {"MIME-Version": "1.0", "Content-Type": f'multipart/{kind}; boundary="lamps"'}, text + b"--lamps--\n"


def words_of(text: str, charset: str) -> str:
    """A header's value as RFC 2047 writes it."""
    return Header(text, charset, maxlinelen=76).encode()
