# SPDX-License-Identifier: GPL-2.0-or-later
"""Mails: headers and transfer encodings, through the standard library's email package."""

from __future__ import annotations

import email
import email.header
import email.policy
import email.utils
import re
from email.message import EmailMessage

from kpatch_ci.model.errors import UserError
from kpatch_ci.series.letter import Letter, Source, decode, split_lines

_HEADER = re.compile(rb"[!-9;-~]+:")
_WANTED = re.compile(rb"(?:from|subject|date|message-id):", re.IGNORECASE)
_FROM_LINE = re.compile(rb"From \S+ .*\d\d:\d\d(?::\d\d)? .*\d{4}\s*$")
_ADDRESS = re.compile(r"\s*(.*?)\s*<([^<>]*)>\s*$", re.DOTALL)
_ID = re.compile(r"<([^<>\s]+)>")
_ATTACHED = (".patch", ".diff", ".txt", ".eml")


def is_mail(data: bytes) -> bool:
    """Whether a text begins with mail headers, after an mbox ``From `` line or not."""
    wanted = False
    for number, line in enumerate(split_lines(data[:65536])):
        if number == 0 and _FROM_LINE.match(line):
            continue
        if not line.strip():
            break
        if not _HEADER.match(line) and not (number and line[:1] in b" \t"):
            return False
        wanted = wanted or _WANTED.match(line) is not None
    return wanted


def split_mbox(source: Source) -> list[Source]:
    """The mails of an mbox. Only ``From``, an address and a date after an empty line separate: prose may begin with From."""
    lines = split_lines(source.data)
    starts = [
        i
        for i, line in enumerate(lines)
        if line.startswith(b"From ") and (i == 0 or not lines[i - 1].strip()) and _FROM_LINE.match(line)
    ]
    if len(starts) < 2:
        return [source]
    ends = [*starts[1:], len(lines)]
    return [
        Source(source.path, b"".join(lines[start:end]), source.first_line + start, position)
        for position, (start, end) in enumerate(zip(starts, ends, strict=True), 1)
    ]


def read_mail(source: Source) -> Letter:
    """One mail: words from its headers, body with the transfer encoding undone and every byte kept.

    Raises UserError where it holds no text but HTML.
    """
    message = email.message_from_bytes(source.data, policy=email.policy.default)
    parts = _text_parts(message)
    if not parts:
        raise UserError(
            "the mail holds no plain text", where=str(source), expected="a patch sent as plain text, not as HTML alone"
        )
    bodies = [_payload(part) for part in parts]
    body = bodies[0] if len(bodies) == 1 else b"".join(b if b.endswith(b"\n") else b + b"\n" for b in bodies)
    offset = source.data.find(body)
    notes = []
    if str(parts[0].get_param("format", "")).lower() == "flowed":
        notes.append("the mail says format=flowed: its lines may have been wrapped or stuffed with blanks")
    name, address = split_address(header(message, "from"))
    return Letter(
        source=source,
        subject=header(message, "subject"),
        author=name,
        email=address,
        body=body,
        charset=parts[0].get_content_charset() or "utf-8",
        first_line=source.first_line + source.data.count(b"\n", 0, offset) if offset >= 0 else None,
        notes=tuple(notes),
        message_id=_first_id(header(message, "message-id")),
        date=header(message, "date"),
        answers=_answers(message),
    )


def _first_id(text: str) -> str:
    return next(iter(_ID.findall(text)), "")


def _answers(message: EmailMessage) -> tuple[str, ...]:
    """Message-IDs of In-Reply-To and References, nearest first."""
    direct = _ID.findall(header(message, "in-reply-to"))
    return tuple(dict.fromkeys([*direct, *reversed(_ID.findall(header(message, "references")))]))


def header(message: EmailMessage, name: str) -> str:
    """A header unfolded and decoded (RFC 2047, or raw 8-bit); empty where there is none. Never fails, whatever came."""
    raw = next((str(value) for key, value in message.raw_items() if key.lower() == name), "")
    raw = decode(raw.encode("utf-8", "surrogateescape"))
    return decode_words(raw)


def decode_words(raw: str) -> str:
    """RFC 2047 encoded words decoded, white space of folding made one blank."""
    raw = " ".join(raw.split())
    try:
        return str(email.header.make_header(email.header.decode_header(raw)))
    except (LookupError, ValueError, email.errors.MessageError):
        return raw


def split_address(text: str) -> tuple[str, str]:
    """Name and address of ``Name <address>``, as leniently as git-am; either may be empty."""
    if match := _ADDRESS.match(text):
        return match.group(1).strip().strip('"').replace('\\"', '"'), match.group(2).strip()
    name, address = email.utils.parseaddr(text)
    if "@" in address:
        return name, address
    return text.strip(), ""


def _text_parts(message: EmailMessage) -> list[EmailMessage]:
    return [part for part in message.walk() if not part.is_multipart() and _is_text(part)]


def _is_text(part: EmailMessage) -> bool:
    kind = part.get_content_type()
    if kind.startswith("text/"):
        return kind != "text/html"
    return (part.get_filename() or "").lower().endswith(_ATTACHED)


def _payload(part: EmailMessage) -> bytes:
    data = part.get_payload(decode=True)
    return data if isinstance(data, bytes) else b""
