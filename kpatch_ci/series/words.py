# SPDX-License-Identifier: GPL-2.0-or-later
"""The words of a mail: scissors, headers in the body, and who the author is."""

from __future__ import annotations

import re
from dataclasses import replace

from kpatch_ci.series.letter import Letter
from kpatch_ci.series.mail import decode_words, split_address

_MASKED = re.compile(r"@[x.]*x{3,}|@\.\.\.|\*{3}|\[email.{0,2}protected\]|…", re.IGNORECASE)
_SIGNED = re.compile(r"^Signed-off-by:\s*(.*)$", re.MULTILINE | re.IGNORECASE)
_IN_BODY = re.compile(r"(From|Subject|Date):\s*(.*)", re.IGNORECASE)
_CUT = re.compile(r"(?:>8|8<|>%|%<|✂)")
_DASHES = re.compile(r"[-\s✂]|>8|8<|>%|%<")


def cut_at_scissors(text: str) -> str:
    """What stands below the last scissors line (`-- >8 --`); all of it where there is none. The rule is git mailinfo's."""
    lines = text.split("\n")
    last = next((i for i in range(len(lines) - 1, -1, -1) if _is_scissors(lines[i])), -1)
    return "\n".join(lines[last + 1 :])


def in_body_headers(letter: Letter, text: str) -> tuple[Letter, str]:
    """``From:``, ``Subject:`` and ``Date:`` at the very beginning of a body overrule the mail's own, as in git-am."""
    lines = text.split("\n")
    found: dict[str, str] = {}
    while lines and (match := _IN_BODY.match(lines[0])):
        found[match.group(1).capitalize()] = match.group(2).strip()
        last = match.group(1).capitalize()
        lines.pop(0)
        while lines and lines[0][:1] in (" ", "\t") and lines[0].strip():
            found[last] += " " + lines.pop(0).strip()
    sure = "@" in found.get("From", "")
    if not found or (lines and lines[0].strip() and not sure):
        return letter, text
    if "From" in found:
        name, address = split_address(decode_words(found["From"]))
        letter = replace(letter, author=name, email=address)
    subject = decode_words(found["Subject"]) if found.get("Subject") else letter.subject
    letter = replace(letter, subject=subject, date=found.get("Date", letter.date))
    return letter, "\n".join(lines).strip("\n")


def author_of(letter: Letter, message: str) -> tuple[str, str, tuple[str, ...]]:
    """Name, address and notes; an archive's mask is no address, but the sign-off may still have the real one."""
    name, address = letter.author, letter.email
    masked = _MASKED.search(address) is not None
    if address and not masked:
        return name, address, ()
    if not name and not address:
        return "", "", ()
    for line in _SIGNED.findall(message):
        signer, real = split_address(line)
        if signer == name and "@" in real and not _MASKED.search(real):
            return name, real, (f"the author's address is from the sign-off: {real}",)
    what = f"is masked ({address})" if masked else "is missing"
    return name, "", (f"the author's address {what}",)


def _is_scissors(line: str) -> bool:
    """A line of scissors and dashes that are at least a third of it, words such as `cut here` between them."""
    text = line.strip()
    if not text.startswith(("-", ">8", "8<", ">%", "%<", "✂")) or not _CUT.search(text):
        return False
    marks = "".join(_DASHES.findall(text)).replace(" ", "")
    return "-" in marks and len(marks) * 3 >= len(text) and len(marks) >= 4
