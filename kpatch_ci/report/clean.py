# SPDX-License-Identifier: GPL-2.0-or-later
"""Text that came from a patch, a compiler or a guest, made safe to print: no escape sequences, no control characters."""

from __future__ import annotations

import re
import textwrap
import unicodedata

TAIL_LINES = 20
"""Log lines that a person is shown."""
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_=>78])")
_ILLEGAL = re.compile("[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufdcf\ufdf0-\ufffd\U00010000-\U0010ffff]")
_HIDING = re.compile("[\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c\u200b-\u200d\u2060\ufeff\u00ad]")
_UNSEEN = re.compile(f"{_HIDING.pattern[:-1]}\x7f-\x9f]")
_SPELLING = str.maketrans(
    {"\u2010": "-", "\u2011": "-", "\u2012": "-", "\u2013": "-", "\u2014": "-", "\u2018": "'", "\u2019": "'"}
    | {"\u201c": '"', "\u201d": '"', "\u2026": "...", "\u00d7": "x", "\u00b5": "u", "\u03bc": "u"}
)


def printable(text: str) -> str:
    """Without escape sequences and without what XML 1.0 forbids or discourages; newline and tab stay.

    What changes the direction of text, or cannot be seen, is written as its number: ``<U+202E>``.
    """
    text = _ESCAPE.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    return _HIDING.sub(lambda match: f"<U+{ord(match[0]):04X}>", _ILLEGAL.sub("", text))


def safe_json(text: str) -> str:
    """A JSON document with the same content, in which what hides, reorders or steers is written as JSON's own escapes."""
    return _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def visible(text: str) -> str:
    """For a page: without escape sequences; controls, and what turns or hides its neighbours (bidi, zero width), spelled out.

    ``<U+202E>``, as in the other reports, so nobody reads a text in another order than the compiler or the kernel did.
    """
    text = _ESCAPE.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    if text.isprintable():
        return text
    return "".join(c if c in "\n\t" or c.isprintable() else f"<U+{ord(c):04X}>" for c in text)


def one_line(text: str) -> str:
    """``printable`` with every run of white space as one space."""
    return " ".join(printable(text).split())


def tail(text: str, lines: int = TAIL_LINES) -> list[str]:
    """The last ``lines`` lines of ``text`` that are not blank."""
    kept = [line.expandtabs().rstrip() for line in printable(text).split("\n")]
    return [line for line in kept if line][-lines:]


def plain_ascii(text: str) -> str:
    """``text`` in ASCII: accents dropped, typographic signs spelled as on a typewriter, the rest ``?``."""
    decomposed = unicodedata.normalize("NFKD", printable(text).translate(_SPELLING))
    bare = "".join(c for c in decomposed if not unicodedata.combining(c))
    return bare.encode("ascii", "replace").decode()


def folded(text: str, width: int, indent: str = "", hanging: str | None = None) -> list[str]:
    """``text`` as one paragraph of lines of at most ``width``; words longer than that are broken."""
    following = indent if hanging is None else hanging
    wrapper = textwrap.TextWrapper(width, initial_indent=indent, subsequent_indent=following, break_on_hyphens=False)
    return wrapper.wrap(one_line(text))


def quoted(text: str, width: int, mark: str, lines: int = TAIL_LINES) -> list[str]:
    """The tail of a log, each line marked; long lines go on in the next one."""
    room = width - len(mark)
    return [mark + line[at : at + room] for line in tail(text, lines) for at in range(0, len(line), room)]
