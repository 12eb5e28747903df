# SPDX-License-Identifier: GPL-2.0-or-later
"""Lines of report.txt: plain ASCII, at most 72 columns."""

from __future__ import annotations

from kpatch_ci.report.clean import folded, one_line, plain_ascii

WIDTH = 72
_QUOTING = frozenset("'\"\\")


def fold(text: str, indent: str = "", hanging: str | None = None) -> list[str]:
    """``text`` as a paragraph."""
    return folded(plain_ascii(text), WIDTH, indent, hanging)


def pair(name: str, value: str) -> list[str]:
    """``name: value``, the value in a column of its own; nothing where there is no value."""
    return fold(value, f"  {name + ':':<9}", " " * 11) if value else []


def indented(line: str) -> list[str]:
    """A line of a list below a pair; its own indentation is kept."""
    deeper = " " * (len(line) - len(line.lstrip()))
    return fold(line, f"    {deeper}", f"      {deeper}")


def reproduce(command: str) -> list[str]:
    """A command under its heading; nothing where there is none."""
    return ["  reproduce:", *pasteable(command)] if command else []


def pasteable(command: str) -> list[str]:
    """A command, its lines joined by backslashes so that it can be pasted.

    A word longer than a line goes on at the next line's start, where a shell joins the two; one with quotes is left whole.
    """
    lines, line = [], "    "
    for word in plain_ascii(one_line(command)).split(" "):
        if line.strip() and len(line) + len(word) + 3 > WIDTH:
            lines.append(f"{line.rstrip()} \\")
            line = "        "
        rest = word
        while len(line) + len(rest) + 3 > WIDTH and not _QUOTING & set(word):
            room = WIDTH - len(line) - 1
            lines.append(f"{line}{rest[:room]}\\")
            line, rest = "", rest[room:]
        line += f"{rest} "
    return [*lines, line.rstrip()] if line.strip() else lines
