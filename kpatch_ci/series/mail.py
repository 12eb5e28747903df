# SPDX-License-Identifier: GPL-2.0-or-later
"""Mails: headers, bodies and attachments, through the standard library's email package."""

from __future__ import annotations

import email
import email.header
import email.policy
import email.utils
import re
from collections.abc import Callable
from dataclasses import replace
from email.message import EmailMessage
from pathlib import Path

from kpatch_ci.model.errors import UserError
from kpatch_ci.series.dep3 import with_description
from kpatch_ci.series.diff import find_diff
from kpatch_ci.series.letter import Letter, NoDiffError, Source, decode, split_lines
from kpatch_ci.series.mbox import is_mail, quotes_from, split_mbox
from kpatch_ci.series.page import to_text
from kpatch_ci.series.parts import Part, Parts, parts_of

MAX_DEPTH = 4
"""Mails attached to mails attached to mails."""
Unpack = Callable[[Source], list[Source]]

_ADDRESS = re.compile(r"\s*(.*?)\s*<([^<>]*)>\s*$", re.DOTALL)
_ID = re.compile(r"<([^<>\s]+)>")
_VIA = re.compile(r" via .*$", re.IGNORECASE)
_DIFF = re.compile(rb"^(?:diff -|--- \S.*\n\+\+\+ )", re.MULTILINE)


def read_mail(source: Source, unpack: Unpack, depth: int = 0) -> list[Letter]:
    """One mail: words from its headers, body with the transfer encoding undone and every byte kept.

    Patches that are attached under headers of their own, or several to one mail, are a letter each; ``unpack`` opens what
    is attached packed. Raises UserError where the mail holds no text, or text and attachment are different patches.
    """
    message = email.message_from_bytes(source.data, policy=email.policy.default)
    return _read(message, source, unpack, depth)


def header(message: EmailMessage, name: str) -> str:
    """A header unfolded and decoded (RFC 2047, or raw 8-bit); empty where there is none. Never fails, whatever came."""
    raw = next((str(value) for key, value in message.raw_items() if key.lower() == name), "")
    raw = decode(raw.encode("utf-8", "surrogateescape"))
    return decode_words(raw)


def decode_words(raw: str) -> str:
    """RFC 2047 encoded words decoded, white space of folding made one blank."""
    raw = " ".join(raw.split())
    try:
        return " ".join(str(email.header.make_header(email.header.decode_header(raw))).split())
    except (LookupError, ValueError, email.errors.MessageError):
        return raw


def split_address(text: str) -> tuple[str, str]:
    """Name and address of ``Name <address>``, as leniently as git-am; either may be empty."""
    if match := _ADDRESS.match(text):
        name = match.group(1).strip()
        name = name[1:-1].replace('\\"', '"') if len(name) > 1 and name[0] == name[-1] == '"' else name
        return name.strip(), match.group(2).strip()
    name, address = email.utils.parseaddr(text)
    if "@" in address:
        return name, address
    return text.strip(), ""


def has_diff(data: bytes) -> bool:
    """Whether anything in a text looks like the beginning of a diff."""
    return _DIFF.search(data.replace(b"\r\n", b"\n")) is not None


def _read(message: EmailMessage, source: Source, unpack: Unpack, depth: int) -> list[Letter]:
    if depth > MAX_DEPTH:
        raise UserError(
            "mails are attached to mails too deeply", where=str(source), expected=f"at most {MAX_DEPTH} deep"
        )
    parts = parts_of(message, source)
    attached = _attached(parts, source, unpack, depth)
    diffs = [part for part in parts.files if not is_mail(part.data) and has_diff(part.data)]
    letter = _letter(message, source, parts, has_files=bool(attached or diffs))
    whole = letter.source.data and has_diff(letter.body)
    if attached:
        if whole or diffs:
            raise _two_patches(source)
        note = f"attached to the mail `{letter.subject}` ({source})"
        return [replace(one, notes=(*one.notes, note), answers=one.answers or letter.answers) for one in attached]
    if not diffs:
        return [letter]
    if not whole and len(diffs) == 1:
        return [_joined(letter, diffs[0])]
    letters = [_alone(letter, part, len(diffs)) for part in diffs]
    return _instead_of_text(letter, letters) if whole else letters


def _attached(parts: Parts, source: Source, unpack: Unpack, depth: int) -> list[Letter]:
    """Letters of what is attached with headers of its own, and of archives."""
    letters: list[Letter] = []
    for number, mail in enumerate(parts.mails, 1):
        inner = Source(_below(source, f"mail {number}"), mail.as_bytes(), origin=source.origin)
        letters += _read(mail, inner, unpack, depth + 1)
    for part in parts.files:
        inner = Source(_below(source, part.name or part.kind), part.data, origin=source.origin)
        for file in unpack(inner):
            if is_mail(file.data):
                letters += [one for piece in split_mbox(file) for one in read_mail(piece, unpack, depth + 1)]
            elif file is not inner and has_diff(file.data):
                letters.append(Letter(file, file.path.name, "", "", file.data))
    return [letter for letter in letters if has_diff(letter.body)]


def _below(source: Source, name: str) -> Path:
    return Path(f"{source}:{name.replace('/', '_')}")


def _letter(message: EmailMessage, source: Source, parts: Parts, *, has_files: bool) -> Letter:
    texts, notes = parts.texts, list(parts.notes)
    if parts.pages and not any(has_diff(part.data) for part in (*texts, *parts.files)):
        pages = [part for part in parts.pages if has_diff(_page(part))]
        if pages or not texts:
            texts = [replace(part, data=_page(part), charset="utf-8", as_is=False, flowed="") for part in pages]
            if pages:
                notes.append("the text is HTML: read as the page shows it")
    if not texts and not has_files:
        what = (
            "the mail holds no plain text" if not parts.pages else "the mail holds no plain text, and no patch as HTML"
        )
        raise NoDiffError(
            what, where=str(source), expected="a patch sent as plain text, or as a preformatted block of HTML"
        )
    notes += [
        f"attached, but no patch, left out: {part.name or part.kind}"
        for part in parts.files
        if not has_diff(part.data) and not is_mail(part.data) and part.data[:2] not in (b"PK", b"\x1f\x8b", b"BZ")
    ]
    bodies = [part.data for part in texts]
    body = bodies[0] if len(bodies) == 1 else b"".join(b if b.endswith(b"\n") else b + b"\n" for b in bodies)
    offset = source.data.find(body) if len(bodies) == 1 and texts[0].as_is else -1
    name, address = split_address(header(message, "from") or header(message, "author"))
    if _VIA.search(name):
        notes.append(f"the author's name and address are a mailing list's: {name} <{address}>")
    letter = Letter(
        source=source,
        subject=header(message, "subject"),
        author=name,
        email=address,
        body=body,
        charset=texts[0].charset if texts else "utf-8",
        first_line=source.first_line + source.data.count(b"\n", 0, offset) if offset >= 0 else None,
        notes=tuple(notes),
        message_id=next(iter(_ID.findall(header(message, "message-id"))), ""),
        date=header(message, "date") or header(message, "last-update"),
        answers=_answers(message),
        flowed=texts[0].flowed if texts else "",
        quoted_from=bool(texts) and texts[0].as_is and quotes_from(source.data),
    )
    return with_description(letter, message) if "description" in message else letter


def _page(part: Part) -> bytes:
    return to_text(decode(part.data, part.charset)).encode()


def _answers(message: EmailMessage) -> tuple[str, ...]:
    """Message-IDs of In-Reply-To and References, nearest first."""
    direct = _ID.findall(header(message, "in-reply-to"))
    return tuple(dict.fromkeys([*direct, *reversed(_ID.findall(header(message, "references")))]))


def _joined(letter: Letter, part: Part) -> Letter:
    """A letter whose diff is attached: text first, as git format-patch --attach makes it."""
    text = letter.body if letter.body.endswith(b"\n") or not letter.body else letter.body + b"\n"
    notes = (*letter.notes, f"the diff is attached: {part.name or part.kind}")
    source = letter.source
    offset = source.data.find(part.data) if part.as_is and not text.strip() else -1
    line = source.first_line + source.data.count(b"\n", 0, offset) if offset >= 0 else None
    return replace(letter, body=text + part.data, first_line=line, notes=notes, flowed="", charset=letter.charset)


def _alone(letter: Letter, part: Part, count: int) -> Letter:
    subject = letter.subject if count == 1 else Path(part.name or letter.subject).stem
    name = part.name or part.kind
    return replace(
        letter,
        source=Source(_below(letter.source, name), part.data, origin=letter.source.origin),
        subject=subject,
        body=part.data,
        first_line=1 if part.as_is else None,
        flowed="",
        quoted_from=False,
        notes=(*letter.notes, f"the diff is attached: {name}" + (f", one of {count}" if count > 1 else "")),
    )


def _instead_of_text(letter: Letter, attached: list[Letter]) -> list[Letter]:
    """The attachments where the mail's text holds the same diff, or the same in a damaged state."""
    whole = [find_diff(split_lines(one.body), one.at) for one in attached]
    paths = {path for diff in whole if diff for path in diff.paths}
    try:
        shown = find_diff(split_lines(letter.body), letter.at)
        same = shown is None or set(shown.paths) <= paths
    except UserError:
        same = True
    if not same:
        raise _two_patches(letter.source)
    text = split_lines(letter.body)
    first = next((i for i, line in enumerate(text) if line.startswith((b"diff -", b"--- "))), len(text))
    note = "the mail's text holds a diff too: the attached one is taken"
    message = b"".join(text[:first]).rstrip() + b"\n\n"
    one = attached[0]
    joined = replace(one, body=message + one.body, first_line=None)
    return [replace(each, notes=(*each.notes, note)) for each in (joined, *attached[1:])]


def _two_patches(source: Source) -> UserError:
    return UserError(
        "the mail's text and what is attached to it are different patches",
        where=str(source),
        expected="one of the two, in a file of its own",
    )
