# SPDX-License-Identifier: GPL-2.0-or-later
"""Intake: patches from what people have. What had to be repaired or assumed is said in each patch's notes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from kpatch_ci.model.errors import UserError
from kpatch_ci.model.series import Patch
from kpatch_ci.series.diff import Diff, find_diff
from kpatch_ci.series.forms import read_letters
from kpatch_ci.series.letter import Letter, Source, decode, split_lines
from kpatch_ci.series.mail import split_address
from kpatch_ci.series.order import Draft, arrange
from kpatch_ci.series.subject import parse_subject

SUFFIXES = (".patch", ".diff", ".mbox", ".mbx", ".eml", ".mail", ".txt")
"""Files of a directory that are taken for patches."""
MAX_BYTES = 256 * 1024 * 1024
"""A file larger than this is no patch."""

_MASKED = re.compile(r"@[x.]*x{3,}|@\.\.\.|\*{3}|\[email.{0,2}protected\]|…", re.IGNORECASE)
_SIGNED = re.compile(r"^Signed-off-by:\s*(.*)$", re.MULTILINE | re.IGNORECASE)
_BASE = re.compile(rb"^base-commit:[ \t]*(\S+)[ \t\r]*$", re.MULTILINE)
_PREREQUISITE = re.compile(rb"^prerequisite-patch-id:[ \t]*([0-9a-f]{7,64})[ \t\r]*$", re.MULTILINE)
_IN_BODY = re.compile(r"(From|Subject|Date):\s*(.*)")


def read_patches(path: Path) -> tuple[Patch, ...]:
    """Patches of a file (pasted archive page, mail, mbox, diff) or of a directory of such, in the order to apply them.

    Cover letters and replies are left out, and named in the notes of the first patch. Raises UserError with file and
    line for what cannot be read.
    """
    return read_all([path])


def read_all(paths: Sequence[Path]) -> tuple[Patch, ...]:
    """Like read_patches, over several files and directories that are one series."""
    sources = [source for path in paths for source in _sources(path)]
    drafts = [_draft(letter) for source in sources for letter in read_letters(source)]
    return arrange(drafts)


def _sources(path: Path) -> list[Source]:
    try:
        if path.is_dir():
            files = sorted(p for p in path.iterdir() if p.is_file() and p.suffix in SUFFIXES and p.name[0] != ".")
            if not files:
                raise UserError(
                    "no patches in this directory", where=str(path), expected=f"files named *{', *'.join(SUFFIXES)}"
                )
            return [source for file in files for source in _sources(file)]
        if path.stat().st_size > MAX_BYTES:
            raise UserError("too large for a patch", where=str(path), expected=f"at most {MAX_BYTES >> 20} MiB")
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read it: {error.strerror}", where=str(path), expected="a file with a patch") from error
    return [Source(path, data.removeprefix(b"\xef\xbb\xbf"))]


def _draft(letter: Letter) -> Draft:
    """A letter with its diff cut out; without a patch where there is no diff in it."""
    lines = split_lines(letter.body)
    diff = find_diff(lines, letter.at)
    cut = diff.cut if diff else len(lines)
    text = decode(b"".join(lines[:cut]), letter.charset).replace("\r\n", "\n")
    letter, text = _in_body_headers(letter, text.strip("\n"))
    subject = parse_subject(letter.subject)
    return Draft(
        subject=subject,
        source=str(letter.source),
        where=letter.at(0),
        patch=_patch(letter, diff, text) if diff else None,
    )


def _patch(letter: Letter, diff: Diff, message: str) -> Patch:
    subject = parse_subject(letter.subject)
    author, address, author_notes = _author(letter, message)
    return Patch(
        source=str(letter.source),
        subject=subject.text,
        prefix=subject.prefix,
        author=author,
        email=address,
        message=message.rstrip(),
        diff=diff.data,
        paths=diff.paths,
        digest=hashlib.sha256(diff.data).hexdigest(),
        notes=(*letter.notes, *diff.notes, *author_notes),
        message_id=letter.message_id,
        date=letter.date,
        base_commit=next((found.decode(errors="replace") for found in _BASE.findall(letter.body)), ""),
        prerequisites=tuple(found.decode() for found in _PREREQUISITE.findall(letter.body)),
    )


def _in_body_headers(letter: Letter, text: str) -> tuple[Letter, str]:
    """``From:`` and ``Subject:`` at the very beginning of a body overrule the mail's own, as in git-am."""
    lines = text.split("\n")
    found: dict[str, str] = {}
    while lines and (match := _IN_BODY.match(lines[0])):
        found[match.group(1)] = match.group(2).strip()
        lines.pop(0)
    if not found or (lines and lines[0].strip()):
        return letter, text
    if "From" in found:
        name, address = split_address(found["From"])
        letter = replace(letter, author=name, email=address)
    letter = replace(letter, subject=found.get("Subject", letter.subject), date=found.get("Date", letter.date))
    return letter, "\n".join(lines).strip("\n")


def _author(letter: Letter, message: str) -> tuple[str, str, tuple[str, ...]]:
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
