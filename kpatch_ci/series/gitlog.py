# SPDX-License-Identifier: GPL-2.0-or-later
"""What ``git show`` and ``git log -p`` print: a commit's words indented by four blanks, then its diff."""

from __future__ import annotations

import re
from dataclasses import replace

from kpatch_ci.model.errors import UserError
from kpatch_ci.series.chain import links
from kpatch_ci.series.letter import Letter, Source, decode, split_lines

_COMMIT = re.compile(rb"commit ([0-9a-f]{7,64})(?: \(.*\))?\s*$")
_FIELD = re.compile(rb"(Author|Date|AuthorDate|Merge|Commit|CommitDate|Reflog.*?|gpg):\s*(.*?)\s*$")


def is_git_log(data: bytes) -> bool:
    """Whether a text begins as git show prints a commit."""
    lines = split_lines(data[:4096])
    first = next((i for i, line in enumerate(lines) if line.strip()), None)
    return first is not None and _starts_commit(lines, first)


def read_git_log(source: Source) -> list[Letter]:
    """A letter a commit, in the order to apply them. Raises UserError for a merge, whose diff cannot be applied."""
    lines = split_lines(source.data)
    starts = [i for i, line in enumerate(lines) if _starts_commit(lines, i)]
    letters = [
        _commit(source, lines[start:end], start, position if len(starts) > 1 else None)
        for position, (start, end) in enumerate(zip(starts, [*starts[1:], len(lines)], strict=True), 1)
    ]
    return _in_order(letters)


def _starts_commit(lines: list[bytes], index: int) -> bool:
    return (
        _COMMIT.match(lines[index]) is not None
        and index + 1 < len(lines)
        and _FIELD.match(lines[index + 1]) is not None
    )


def _commit(source: Source, lines: list[bytes], start: int, position: int | None) -> Letter:
    fields: dict[str, str] = {}
    index = 1
    while index < len(lines) and (match := _FIELD.match(lines[index])):
        fields[match.group(1).decode()] = decode(match.group(2))
        index += 1
    if "Merge" in fields:
        raise UserError(
            "a merge commit: git shows no diff of it that can be applied",
            where=f"{source.path}:{source.first_line + start}",
            expected="commits without merges: git format-patch BASE..TIP",
        )
    words: list[str] = []
    while index < len(lines) and (not lines[index].strip() or lines[index].startswith(b"    ")):
        words.append(decode(lines[index]).rstrip("\r\n").removeprefix("    "))
        index += 1
    subject, _, message = "\n".join(words).strip("\n").partition("\n\n")
    name, _, address = fields.get("Author", "").rpartition("<")
    commit = _COMMIT.match(lines[0])
    body = f"{message.strip()}\n---\n".encode() + b"".join(lines[index:])
    above = message.strip().count("\n") + 2
    return Letter(
        source=replace(source, data=b"", first_line=source.first_line + start, position=position),
        subject=" ".join(subject.split()),
        author=name.strip(),
        email=address.strip("> "),
        body=body,
        first_line=source.first_line + start + index - above,
        message_id=commit.group(1).decode() if commit else "",
        date=fields.get("Date", fields.get("AuthorDate", "")),
    )


def _in_order(letters: list[Letter]) -> list[Letter]:
    """git log prints the newest first unless asked otherwise: blob ids that follow on one another tell which way it is."""
    if len(letters) < 2:
        return letters
    bodies = [letter.body for letter in letters]
    forward, backward = links(bodies), links(bodies[::-1])
    if forward > backward:
        note = "several commits, oldest first: in this order"
        return [_noted(letters[0], note), *letters[1:]]
    why = "as the blob ids show" if backward else "as git log prints them"
    turned = letters[::-1]
    return [
        _noted(turned[0], f"several commits, newest first ({why}): the last one printed is applied first"),
        *turned[1:],
    ]


def _noted(letter: Letter, note: str) -> Letter:
    return letter.with_words(notes=(*letter.notes, note))
