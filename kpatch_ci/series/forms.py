# SPDX-License-Identifier: GPL-2.0-or-later
"""The forms in which people have patches. A form is a test, a reader and a line in FORMS; the first that fits reads."""

from __future__ import annotations

import codecs
import email
import email.policy
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from kpatch_ci.model.errors import UserError
from kpatch_ci.series.archive import unpack
from kpatch_ci.series.gitlog import is_git_log, read_git_log
from kpatch_ci.series.letter import Letter, NoDiffError, Source, decode, split_lines
from kpatch_ci.series.mail import has_diff, header, read_mail, split_address
from kpatch_ci.series.mbox import has_separators, is_mail, split_mbox
from kpatch_ci.series.page import find_mails, is_page, title_of, to_text

_BRACKETED = re.compile(rb"\[[^\[\]].*\]\s*$")
_DIFF = re.compile(rb"^(?:diff -|--- \S.*\n\+\+\+ |\*\*\* \S.*\n--- )", re.MULTILINE)
_COLOUR = re.compile(rb"^(?:\x1b\[[0-9;]*m)+(?:diff |--- |commit )", re.MULTILINE)
_ESCAPES = re.compile(rb"\x1b\[[0-9;]*[mK]")
_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True, slots=True)
class Form:
    """One form of input."""

    name: str
    fits: Callable[[bytes], bool]
    read: Callable[[Source], list[Letter]]


def read_letters(source: Source) -> list[Letter]:
    """Letters of a file in whatever form it is. Raises UserError where it is empty, binary or nothing that is known."""
    data = source.data.removeprefix(codecs.BOM_UTF8)
    notes: tuple[str, ...] = ()
    if data.startswith(_MARKS):
        data, notes = data.decode("utf-16", "replace").encode(), ("the file was UTF-16: made UTF-8",)
    if not data.strip():
        raise NoDiffError("the file is empty", where=str(source), expected=_EXPECTED)
    if b"\0" in data[:65536]:
        raise NoDiffError("the file is binary", where=str(source), expected=_EXPECTED)
    if _COLOUR.search(data):
        data, notes = _ESCAPES.sub(b"", data), (*notes, "colours of a terminal taken away")
    for form in FORMS:
        if form.fits(data):
            letters = form.read(replace(source, data=data))
            return [replace(letter, notes=(*notes, *letter.notes)) for letter in letters] if notes else letters
    raise NoDiffError("no diff in it", where=f"{source.path}:{source.first_line}", expected=_EXPECTED)


def _read_mails(source: Source) -> list[Letter]:
    pieces = split_mbox(source)
    if len(pieces) == 1:
        return read_mail(pieces[0], unpack)
    return [letter for piece in pieces for letter in _read_one_of(piece)]


def _refuse_headless(source: Source) -> list[Letter]:
    raise UserError(
        "mails of an mbox, and text above the first of them that is none",
        where=f"{source.path}:{source.first_line}",
        expected="an mbox that begins with a mail: its first headers are damaged or missing",
    )


def _read_one_of(piece: Source) -> list[Letter]:
    """A mail of an mbox; one that cannot be read says so when it is needed, not before: it may be nobody's patch."""
    try:
        return read_mail(piece, unpack)
    except UserError as error:
        message = email.message_from_bytes(piece.data, policy=email.policy.default)
        name, address = split_address(header(message, "from"))
        return [Letter(piece, header(message, "subject"), name, address, b"", problem=error)]


def is_pasted(data: bytes) -> bool:
    """Whether a text is a page of a mail archive as one copies it: subject, empty line, author in brackets."""
    words = [line for line in split_lines(data[:8192]) if line.strip()][:2]
    return len(words) == 2 and not _DIFF.match(words[0]) and _BRACKETED.match(words[1].strip()) is not None


def _read_pasted(source: Source) -> list[Letter]:
    lines = split_lines(source.data)
    subject, author = [i for i, line in enumerate(lines) if line.strip()][:2]
    name, address = split_address(decode(lines[author]).strip()[1:-1])
    return [
        Letter(
            source=source,
            subject=decode(lines[subject]).strip(),
            author=name,
            email=address,
            body=b"".join(lines[author + 1 :]),
            first_line=source.first_line + author + 1,
        )
    ]


def shows_headers(data: bytes) -> bool:
    """Whether a text has the headers of a mail somewhere above its diff, as the page of an archive shows them."""
    match = _DIFF.search(data)
    return match is not None and bool(find_mails(decode(data[: match.start()]).split("\n")))


def _read_headers(source: Source) -> list[Letter]:
    lines = split_lines(source.data)
    letters = [
        _found(source, found.subject, found.sender, lines[found.start : found.end], found.start).with_words(
            date=found.date, message_id=found.message_id, answers=found.answers
        )
        for found in find_mails([decode(line).rstrip("\r\n") for line in lines])
    ]
    return letters or _read_bare(source)  # header lines without an empty line below them are words above a diff


def _found(source: Source, subject: str, sender: str, body: list[bytes], start: int) -> Letter:
    name, address = split_address(sender)
    return Letter(source, subject, name, address, b"".join(body), first_line=source.first_line + start)


def _read_page(source: Source) -> list[Letter]:
    """A saved web page. Its lines are not those of the file, so places are told by the text that it shows."""
    charset = re.search(rb"charset=[\"']?([\w-]+)", source.data[:4096])
    page = decode(source.data, charset.group(1).decode() if charset else "utf-8")
    text, title = to_text(page), title_of(page)
    note = "read from a web page, as it shows the text: its words may be in the message"
    if not has_diff(text.encode()):
        raise NoDiffError(
            "the web page shows no diff", where=str(source), expected="the page of one mail, or a thread's"
        )
    lines = text.split("\n")
    letters = [
        _found(source, found.subject, found.sender, _encoded(lines[found.start : found.end]), 0).with_words(
            date=found.date, message_id=found.message_id, answers=found.answers
        )
        for found in find_mails(lines, title)
    ]
    if not letters:
        letters = [_found(source, title, "", _encoded(lines), 0)]
    return [replace(letter, first_line=None, notes=(note,)) for letter in letters]


def _encoded(lines: list[str]) -> list[bytes]:
    return [f"{line}\n".encode() for line in lines]


def _has_diff(data: bytes) -> bool:
    return _DIFF.search(data.replace(b"\r\n", b"\n")) is not None


def _read_bare(source: Source) -> list[Letter]:
    note = "a bare diff: it names no author, and its file's name is its subject"
    return [
        Letter(
            source=source,
            subject=source.path.stem,
            author="",
            email="",
            body=source.data,
            first_line=source.first_line,
            notes=(note,),
        )
    ]


_EXPECTED = (
    "a mail, an mbox, a web page or text of a mail archive, git show's output or a diff; "
    "a directory, quilt series, tar or zip of such"
)

FORMS = (
    Form("mail or mbox", is_mail, _read_mails),
    Form("mbox without its beginning", has_separators, _refuse_headless),
    Form("web page", is_page, _read_page),
    Form("output of git show or git log -p", is_git_log, read_git_log),
    Form("pasted archive page", is_pasted, _read_pasted),
    Form("text with a mail's headers", shows_headers, _read_headers),
    Form("bare diff", _has_diff, _read_bare),
)
