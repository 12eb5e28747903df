# SPDX-License-Identifier: GPL-2.0-or-later
"""The forms in which people have patches. A form is a test, a reader and a line in FORMS; the first that fits reads."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from kpatch_ci.model.errors import UserError
from kpatch_ci.series.letter import Letter, Source, decode, split_lines
from kpatch_ci.series.mail import is_mail, read_mail, split_address, split_mbox

_BRACKETED = re.compile(rb"\[[^\[\]].*\]\s*$")
_DIFF = re.compile(rb"^(?:diff -|--- \S.*\n\+\+\+ )", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Form:
    """One form of input."""

    name: str
    fits: Callable[[bytes], bool]
    read: Callable[[Source], list[Letter]]


def read_letters(source: Source) -> list[Letter]:
    """Letters of a file in whatever form it is. Raises UserError where it is empty, binary or nothing that is known."""
    data = source.data
    if not data.strip():
        raise UserError("the file is empty", where=str(source), expected=_EXPECTED)
    if b"\0" in data[:65536]:
        raise UserError("the file is binary", where=str(source), expected=_EXPECTED)
    for form in FORMS:
        if form.fits(data):
            return form.read(source)
    raise UserError("no diff in it", where=f"{source.path}:{source.first_line}", expected=_EXPECTED)


def _read_mails(source: Source) -> list[Letter]:
    return [read_mail(piece) for piece in split_mbox(source)]


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


def _has_diff(data: bytes) -> bool:
    return _DIFF.search(data) is not None


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


_EXPECTED = "a mail, an mbox, a page pasted from a mail archive (subject, author in brackets, text) or a diff"

FORMS = (
    Form("mail or mbox", is_mail, _read_mails),
    Form("pasted archive page", is_pasted, _read_pasted),
    Form("bare diff", _has_diff, _read_bare),
)
