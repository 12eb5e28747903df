# SPDX-License-Identifier: GPL-2.0-or-later
"""What mail programs, people and disks do to a mail, by chance."""

from __future__ import annotations

from random import Random

from tests.fakes.generated_mails import mail


def damaged(chance: Random) -> bytes:
    """One or two mails, changed here and there as mail programs, people and disks do."""
    data = b"\n".join(mail(chance, whole=False).data for _ in range(chance.randint(1, 2)))
    for _ in range(chance.randint(0, 4)):
        data = chance.choice(DAMAGES)(data, chance)
    return data


def _place(data: bytes, chance: Random) -> tuple[int, int]:
    start = chance.randrange(len(data) + 1)
    return start, min(len(data), start + chance.choice((1, 1, 3, 40, 400)))


def _cut(data: bytes, chance: Random) -> bytes:
    start, end = _place(data, chance)
    return data[:start] + data[end:]


def _twice(data: bytes, chance: Random) -> bytes:
    start, end = _place(data, chance)
    return data[:end] + data[start:]


def _other_bytes(data: bytes, chance: Random) -> bytes:
    start, end = _place(data, chance)
    return data[:start] + chance.choice(INSERTED) + data[end:]


def _line(data: bytes, chance: Random) -> bytes:
    lines = data.split(b"\n")
    index = chance.randrange(len(lines))
    line = lines[index]
    lines[index : index + 1] = chance.choice(
        (
            [],
            [line, line],
            [line[:72], line[72:]],
            [b"> " + line],
            [line.strip()],
            [line.replace(b"\t", b"        ")],
            [b""],
            [line, b""],
        )
    )
    return b"\n".join(lines)


def _swapped(data: bytes, chance: Random) -> bytes:
    lines = data.split(b"\n")
    one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return b"\n".join(lines)


def _all_lines(data: bytes, chance: Random) -> bytes:
    change = chance.choice((b"> ", b" ", b">", b"\xc2\xa0"))
    return b"\n".join(change + line for line in data.split(b"\n"))


DAMAGES = (
    _cut,
    _twice,
    _other_bytes,
    _line,
    _swapped,
    _line,
    _all_lines,
    lambda data, chance: data[: chance.randrange(len(data) + 1)],
)
INSERTED = (
    b"", b"\n", b"\r", b"\0", b"\xff\xfe", b"=", b"=?utf-8?b?4?=", b"=?x?q?=ff?=", b"@@ -1,99999999999 +1 @@\n",
    b"--- a/x\n+++ b/x\n", b"---\n", b"diff --git ", b"Content-Type: multipart/mixed; boundary=\"\"\n",
    b"Content-Type: text/plain; charset=\"\0\"\n", b"\n\n", b"From ", b"Content-Transfer-Encoding: base64\n",
    b"Content-Type: message/rfc822\n\n", b"GIT binary patch\nliteral 99999999\nzzzz\n\n", b"rename from ",
    b"Content-Type: text/plain; format=flowed; delsp=yes\n", b"commit 1f1f1f1f1f1f\nAuthor: x\n\n", b"<html>",
    b"PK\x03\x04", b"\x1f\x8b\x08", b"\"\\777\\x\"", b"[PATCH 1/2", b"Re: ", b"GIT binary patch\ndelta 3\nIcmZPo\n",
    b"+++ /dev/null\n", b"\xe2\x80\xa9", b"\x1b[31m", b"Content-Type: text/html\n", b"charset=utf-16\n",
    b"Content-Type: text/plain; charset=utf-16\n", b"name*=utf-8''%ff\n", b">From x\n",
    b"Date: Mon, 99 Foo 99999 10:00:00 +9999\n", b"Subject: =?utf-8?q?=0A=00?=\n", b"From: <>\n",
    b"From: a <a@b>, c <d@e>\n",
)  # fmt: skip
"""What is written over some bytes of a mail."""
