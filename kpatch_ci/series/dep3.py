# SPDX-License-Identifier: GPL-2.0-or-later
"""Headers of distributions' patches (Debian's DEP-3): a ``Description`` is a short line, and the text that continues it."""

from __future__ import annotations

from dataclasses import replace
from email.message import EmailMessage

from kpatch_ci.series.letter import Letter, decode


def with_description(letter: Letter, message: EmailMessage) -> Letter:
    """The letter with the words of its ``Description``: the first line is the subject where there is no other, the rest is text."""
    raw = next((str(value) for key, value in message.raw_items() if key.lower() == "description"), "")
    short, *rest = decode(raw.encode("utf-8", "surrogateescape")).replace("\r\n", "\n").split("\n")
    long = [_line(line) for line in rest]
    subject = letter.subject or short.strip()
    text = "\n".join([short.strip(), *long] if letter.subject else long).strip("\n")
    if not text:
        return replace(letter, subject=subject)
    above = f"{text}\n\n"
    first = None if letter.first_line is None else letter.first_line - above.count("\n")
    return replace(letter, subject=subject, body=above.encode() + letter.body, first_line=first)


def _line(line: str) -> str:
    """A continuation line without its blank; a lone full stop stands for an empty line."""
    line = line.removeprefix(" ").rstrip()
    return "" if line.strip() == "." else line
