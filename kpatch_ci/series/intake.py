# SPDX-License-Identifier: GPL-2.0-or-later
"""Intake: patches from what people have. What had to be repaired or assumed is said in notes, what was passed over is named."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from kpatch_ci.model.errors import UserError
from kpatch_ci.model.series import Intake, LeftOut, Patch
from kpatch_ci.series.collect import Collection, collect
from kpatch_ci.series.diff import Diff, find_diff
from kpatch_ci.series.draft import DIFF_EXPECTED, Draft
from kpatch_ci.series.flowed import readings
from kpatch_ci.series.forms import read_letters
from kpatch_ci.series.letter import Letter, NoDiffError, decode, split_lines
from kpatch_ci.series.mail import has_diff
from kpatch_ci.series.mbox import unquote_from
from kpatch_ci.series.order import arrange
from kpatch_ci.series.safety import inspect
from kpatch_ci.series.subject import Subject, parse_subject
from kpatch_ci.series.words import author_of, cut_at_scissors, in_body_headers

_BASE = re.compile(r"^base-commit:[ \t]*(\S+)[ \t\r]*$", re.MULTILINE)
_PREREQUISITE = re.compile(r"^prerequisite-patch-id:[ \t]*([0-9a-f]{7,64})[ \t\r]*$", re.MULTILINE)


def read_patches(path: Path) -> tuple[Patch, ...]:
    """Patches of a file (pasted archive page, mail, mbox, diff) or of a directory of such, in the order to apply them.

    Raises UserError with file and line for what cannot be read.
    """
    return read_all([path])


def read_all(paths: Sequence[Path]) -> tuple[Patch, ...]:
    """Like read_patches, over several files and directories that are one series."""
    patches, account = read_series(paths)
    return (replace(patches[0], notes=(*patches[0].notes, *said(account))), *patches[1:])


def said(account: Intake) -> tuple[str, ...]:
    """What an account says about the series as a whole, a line each: what was assumed, and what was left out and why."""
    left = (
        f"left out: {f'`{one.subject}` ({one.source})' if one.subject else one.source}: {one.reason}"
        for one in account.left_out
    )
    return (*account.notes, *left)


def read_series(paths: Sequence[Path], revision: int | None = None) -> tuple[tuple[Patch, ...], Intake]:
    """The patches of files, directories, archives, standard input (`-`) and message-ids, and an account of the reading.

    ``revision`` is taken instead of the newest. Raises UserError for what cannot be read, InfrastructureError where a
    mail has to be fetched and cannot be.
    """
    found = collect(paths)
    drafts = [draft_of(letter) for letter in _letters(found)]
    if not drafts:
        raise NoDiffError("no patch in it", where=", ".join(map(str, paths)), expected=DIFF_EXPECTED)
    return arrange(drafts, revision, found.left_out)


def _letters(found: Collection) -> list[Letter]:
    letters: list[Letter] = []
    for source in found.sources:
        try:
            letters += read_letters(source)
        except NoDiffError as error:
            if source.path not in found.lenient and not (source.ordered and not source.data.strip()):
                raise
            found.left_out.append(LeftOut(str(source), "", error.what))
    return letters


def draft_of(letter: Letter) -> Draft:
    """A letter with its diff cut out; without a patch where there is no diff in it, or a damaged one."""
    original = _subject(letter)
    problem: UserError | None = letter.problem
    diff = None
    if problem is None:
        try:
            letter, diff = _found(letter)
        except UserError as error:
            problem = error
    lines = split_lines(letter.body)
    text = decode(b"".join(lines[: diff.cut] if diff else lines), letter.charset).replace("\r\n", "\n")
    text = unquote_from(text) if letter.quoted_from else text
    trailers = _outside(lines, diff)
    letter, text = in_body_headers(letter, cut_at_scissors(text).strip("\n"))
    subject = _subject(letter)
    if not subject.prefix:  # a Subject: in the body says what the patch is called, not that it is no part of its series
        subject = replace(original, text=subject.text)
    draft = Draft(
        subject=subject,
        letter=letter,
        text=text.rstrip(),
        patch=None,
        reply=original.reply,
        problem=problem,
        base_commit=next(iter(_BASE.findall(trailers)), ""),
        prerequisites=tuple(_PREREQUISITE.findall(trailers)),
    )
    if diff is None:
        return draft
    try:
        return replace(draft, patch=_patch(draft, diff))
    except UserError as refused:
        return replace(draft, problem=refused)


def _subject(letter: Letter) -> Subject:
    return Subject(" ".join(letter.subject.split())) if letter.exact else parse_subject(letter.subject)


def _found(letter: Letter) -> tuple[Letter, Diff | None]:
    """The diff, and the letter as it had to be read to find it: a flowed one in the way in which its hunks are whole."""
    level = letter.source.strip
    if not letter.flowed or not has_diff(letter.body):
        return letter, find_diff(split_lines(letter.body), letter.at, level)
    first: UserError | None = None
    for body, how in readings(letter.body, delsp=letter.flowed == "delsp"):
        read = letter if body == letter.body else replace(letter, body=body, first_line=None)
        try:
            diff = find_diff(split_lines(body), read.at, level)
        except UserError as error:
            first = first or error
        else:
            return replace(read, notes=(*read.notes, how)), diff
    if first is None:
        raise ValueError("a flowed text has at least one reading")
    raise first


def _outside(lines: Sequence[bytes], diff: Diff | None) -> str:
    """The lines of a mail that are neither in its diff nor quoted: where trailers about the base stand."""
    inside = set(diff.data.split(b"\n")) if diff else set()
    return "\n".join(decode(line).rstrip("\r\n") for line in lines if line.rstrip(b"\r\n") not in inside)


def _patch(draft: Draft, diff: Diff) -> Patch:
    letter, subject = draft.letter, draft.subject
    author, address, author_notes = author_of(letter, draft.text)
    foreign = letter.charset.lower() not in ("utf-8", "us-ascii", "utf8", "ascii")
    charset_notes = [f"the diff holds bytes that are not ASCII, and the mail says {letter.charset}: kept as they came"]
    words = (("subject", subject.text), ("author", f"{author} {address}"), ("message", draft.text))
    flags = inspect(diff.data, diff.paths, letter.at(0), words)
    return Patch(
        source=draft.source,
        subject=subject.text,
        prefix=subject.prefix,
        author=author,
        email=address,
        message=draft.text,
        diff=diff.data,
        paths=diff.paths,
        digest=hashlib.sha256(diff.data).hexdigest(),
        notes=(
            *letter.notes,
            *diff.notes,
            *(charset_notes if foreign and not diff.data.isascii() else ()),
            *author_notes,
            *flags,
        ),
        message_id=letter.message_id,
        date=letter.date,
        base_commit=draft.base_commit,
        prerequisites=draft.prerequisites,
    )
