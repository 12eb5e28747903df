# SPDX-License-Identifier: GPL-2.0-or-later
"""quilt's ``series`` file: names of patches, in order, with options."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kpatch_ci.model.errors import UserError
from kpatch_ci.series.letter import decode, split_lines

NAMES = ("series", "series.conf")
_STRIP = re.compile(r"-p(\d+|ab)$")


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a series file."""

    name: str
    strip: int | None
    """Leading directories that its names have; None for quilt's own default, -p1."""
    line: int


def read_series_file(data: bytes, where: str) -> list[Entry]:
    """The patches that a series file names. Comments begin with #. Raises UserError for what it says and cannot be done."""
    entries = []
    for number, raw in enumerate(split_lines(data), 1):
        words = re.sub(r"(?:^|\s)#.*", "", decode(raw)).split()
        if words:
            entries.append(_entry(words, number, where))
    if not entries:
        raise UserError("the series file names no patch", where=where, expected="names of patches, one a line")
    return entries


def _entry(words: list[str], number: int, where: str) -> Entry:
    name, strip = words[0], None
    for word in words[1:]:
        match = _STRIP.match(word)
        if match is None:
            what = "a patch that is to be taken back (-R)" if word == "-R" else f"`{word}` after the name of a patch"
            raise UserError(what, where=f"{where}:{number}", expected="NAME or NAME -pN")
        strip = 1 if match.group(1) == "ab" else int(match.group(1))
    if name.startswith("/") or ".." in name.split("/"):
        raise UserError(f"{name!r} leads out of the directory", where=f"{where}:{number}", expected="a name below it")
    return Entry(name, strip, number)
