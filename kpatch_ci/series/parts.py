# SPDX-License-Identifier: GPL-2.0-or-later
"""Parts of a mail: which hold text, which are attached, and their bytes with the transfer encoding undone."""

from __future__ import annotations

import base64
import binascii
import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.message import EmailMessage

from kpatch_ci.model.errors import UserError
from kpatch_ci.series.letter import Source

_BASE64 = re.compile(rb"[A-Za-z0-9+/]+={0,2}[ \t]*$")
_BAD_QUOTED = re.compile(rb"=(?![0-9A-Fa-f]{2}|[ \t]*\r?\n|[ \t]*$)")
_IGNORED = (
    "application/pgp-signature",
    "application/pkcs7-signature",
    "application/x-pkcs7-signature",
    "application/pgp-keys",
)
_PLAIN = ("", "7bit", "8bit", "binary")


@dataclass(frozen=True, slots=True)
class Part:
    """A leaf of a mail."""

    data: bytes
    name: str
    """File name where it is attached under one."""
    kind: str
    charset: str
    flowed: str
    as_is: bool
    """Whether the bytes stand in the mail as such."""


@dataclass(slots=True)
class Parts:
    """The leaves of a mail by what they are for."""

    texts: list[Part] = field(default_factory=list)
    pages: list[Part] = field(default_factory=list)
    """HTML."""
    files: list[Part] = field(default_factory=list)
    mails: list[EmailMessage] = field(default_factory=list)
    """Mails that are forwarded as attachments."""
    notes: list[str] = field(default_factory=list)


def parts_of(message: EmailMessage, source: Source) -> Parts:
    """Take a mail apart. Raises UserError for a text that was damaged on the way, or is encrypted."""
    found = Parts()
    if message.get_content_type() == "multipart/encrypted":
        raise UserError("the mail is encrypted", where=str(source), expected="a patch that can be read")
    for leaf in _leaves(message):
        kind = leaf.get_content_type()
        if kind == "message/rfc822":
            inner = leaf.get_payload()
            found.mails += [mail for mail in inner if isinstance(mail, EmailMessage)] if isinstance(inner, list) else []
        elif kind not in _IGNORED:
            _sort(found, _part(leaf, source, found.notes))
    if any(
        type(defect).__name__ == "CloseBoundaryNotFoundDefect" for part in message.walk() for defect in part.defects
    ):
        found.notes.append("the mail's last part has no end: it may be cut off")
    return found


def _leaves(message: EmailMessage) -> Iterator[EmailMessage]:
    if message.is_multipart() and message.get_content_type() != "message/rfc822":
        for part in message.iter_parts():
            if isinstance(part, EmailMessage):
                yield from _leaves(part)
    else:
        yield message


def _sort(found: Parts, part: Part) -> None:
    if part.name or not part.kind.startswith("text/"):
        found.files.append(part)
    elif part.kind == "text/html":
        found.pages.append(part)
    else:
        found.texts.append(part)


def _part(leaf: EmailMessage, source: Source, notes: list[str]) -> Part:
    coding = str(leaf.get("content-transfer-encoding", "")).strip().lower()
    if coding == "base64":
        data = _base64(_raw(leaf), source, notes)
    else:
        payload = leaf.get_payload(decode=True)
        data = payload if isinstance(payload, bytes) else b""
        if coding == "quoted-printable" and _BAD_QUOTED.search(_raw(leaf)):
            notes.append("the mail says quoted-printable, but holds `=` that is no such code: kept as it stands")
    charset = leaf.get_content_charset() or "utf-8"
    as_is = coding in _PLAIN
    if not _holds_ascii(charset):
        data, as_is = data.decode(charset, "replace").encode("utf-8", "replace"), False
        notes.append(f"the text came in {charset}: made UTF-8")
        charset = "utf-8"
    flowed = ""
    if _parameter(leaf, "format") == "flowed":
        flowed = "delsp" if _parameter(leaf, "delsp") == "yes" else "flowed"
    return Part(data, _file_name(leaf), leaf.get_content_type(), charset, flowed, as_is)


def _raw(leaf: EmailMessage) -> bytes:
    payload = leaf.get_payload()
    return payload.encode("ascii", "replace") if isinstance(payload, str) else b""


def _base64(raw: bytes, source: Source, notes: list[str]) -> bytes:
    """Decoded text; what a list put below it in clear is left out, and a damaged line is an error."""
    lines = [line for line in raw.split(b"\n") if line.strip()]
    good = next((i for i, line in enumerate(lines) if not _BASE64.match(line.rstrip(b"\r"))), len(lines))
    wrong = lines[good:]
    if any(len(line.strip()) >= 60 and _BASE64.match(line.rstrip(b"\r")) for line in wrong[1:]):
        raise _damaged(source, good + 1)
    if wrong:
        shown = wrong[0].decode(errors="replace").strip()[:40]
        notes.append(f"text below the base64 body, left out: {shown!r}")
    data, pending = b"", b""
    try:
        for line in lines[:good]:
            pending += line.strip()
            if line.rstrip().endswith(b"="):
                data, pending = data + base64.b64decode(pending, validate=True), b""
        return data + base64.b64decode(pending + b"=" * (-len(pending) % 4), validate=True)
    except binascii.Error as error:
        raise _damaged(source, good) from error


def _damaged(source: Source, line: int) -> UserError:
    return UserError(
        f"the base64 text of the mail is damaged near its line {line}",
        where=str(source),
        expected="the mail as it was sent",
    )


def _holds_ascii(charset: str) -> bool:
    """Whether ASCII is ASCII in a charset (not in UTF-16, nor where escapes switch alphabets)."""
    probe = "@+-~\\ \t\n"
    try:
        name = codecs.lookup(charset).name
        return probe.encode(name) == probe.encode() and not name.startswith(("iso2022", "hz", "utf-7"))
    except (LookupError, UnicodeError, ValueError):
        return True


def _parameter(leaf: EmailMessage, name: str) -> str:
    try:
        return str(leaf.get_param(name, "")).lower()
    except (ValueError, IndexError, KeyError, AttributeError):  # a header that no program understands
        return ""


def _file_name(leaf: EmailMessage) -> str:
    try:
        return " ".join((leaf.get_filename() or "").split())
    except (ValueError, IndexError, KeyError, AttributeError, LookupError):
        return ""
