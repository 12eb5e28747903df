# SPDX-License-Identifier: GPL-2.0-or-later
"""In which function a line stands, as git's driver for C finds it; and whether two names of one are the same."""

from __future__ import annotations

import re
from collections.abc import Sequence

_FUNCTION = re.compile(r"[A-Za-z_$]")
_LABEL = re.compile(r"[A-Za-z_]\w*:\s*(?:$|/[/*])")
_CALLED = re.compile(r"([A-Za-z_$]\w*)\s*\(\s*([^,)]*)")
_KIND = re.compile(r"(?:static |const |typedef |extern )*((?:struct|union|enum)\s+\w+)\s*(?:\{.*)?$")
_MACRO = re.compile(r"[A-Z][A-Z0-9_]*$")
_HEAD = 12
"""Lines that a function's arguments may take."""
SHOWN = 80
"""Bytes of a function's line that git puts into a hunk's header."""


def function_at(lines: Sequence[str], index: int) -> str:
    """The line that names the function in which line ``index`` (from 0) stands: the nearest above it; empty where there is none.

    A line that begins with a letter, an underscore or a dollar names one, and a label does not: git's ``cpp`` driver, which
    the kernel's .gitattributes asks for.
    """
    for line in reversed(lines[: max(0, index)]):
        if _FUNCTION.match(line) and not _LABEL.match(line):
            return line.rstrip().encode("utf-8", "surrogateescape")[:SHOWN].decode(errors="replace").rstrip()
    return ""


def short_name(function: str) -> str:
    """What people call it: ``f()`` of a function's line, ``struct s`` of a structure's, else the line."""
    if match := _CALLED.search(function):
        name, first = match.groups()
        return f"{name}({first.strip()})" if _MACRO.match(name) and first.strip() else f"{name}()"
    if match := _KIND.match(function):
        return match.group(1)
    return function


def is_known(function: str) -> bool:
    """Whether a hunk's header tells a function. It may be empty, or a label where git had no driver for C."""
    return bool(_FUNCTION.match(function)) and not _LABEL.match(function)


def body_of(function: str, lines: Sequence[str]) -> range | None:
    """Lines (from 0) of the function of this name, None where a file has none: a declaration or a macro's call is none."""
    name = short_name(function)
    bare = name.partition("(")[0]
    for start, line in enumerate(lines):
        if bare in line and _FUNCTION.match(line) and short_name(line) == name and _has_body(lines, start):
            ends = (i + 1 for i in range(start + 1, len(lines)) if lines[i].startswith("}"))
            return range(start, next(ends, len(lines)))
    return None


def _has_body(lines: Sequence[str], start: int) -> bool:
    for line in lines[start : start + _HEAD]:
        if "{" in line:
            return True
        if ";" in line or (line.startswith("}") and line is not lines[start]):
            return False
    return False


def is_same(mailed: str, found: str) -> bool:
    """Whether both lines name one function; True where the mail's header does not tell."""
    if not is_known(mailed) or found.startswith(mailed):  # git cuts long ones off
        return True
    one, other = short_name(mailed), short_name(found)
    return one == other or (bool(found) and (one.startswith(other) or other.startswith(one)) and "(" not in one + other)
