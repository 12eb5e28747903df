# SPDX-License-Identifier: GPL-2.0-or-later
"""A hunk that does not apply, as a maintainer wants it: file, function, the hunk, what the tree has instead, and since when."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from kpatch_ci.report.clean import one_line, printable

_SHOWN = 40
"""Lines of a hunk or of the tree that are shown."""


class Change(Protocol):
    """What is needed of a LastChange."""

    @property
    def commit(self) -> str: ...
    @property
    def author(self) -> str: ...
    @property
    def date(self) -> str: ...
    @property
    def summary(self) -> str: ...
    @property
    def lines(self) -> Sequence[int]: ...


class Failure(Protocol):
    """What is needed of a HunkFailure, as the model or a document has it."""

    @property
    def path(self) -> str: ...
    @property
    def hunk(self) -> int: ...
    @property
    def header(self) -> str: ...
    @property
    def function(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def wanted(self) -> str: ...
    @property
    def found(self) -> str: ...
    @property
    def at(self) -> int: ...
    @property
    def differing(self) -> Sequence[int]: ...
    @property
    def there(self) -> bool: ...
    @property
    def fuzz(self) -> int | None: ...
    @property
    def last_changes(self) -> Sequence[Change]: ...


def conflict(failure: Failure) -> list[str]:
    """Lines about one failure; the first names file, hunk and function."""
    where = ", ".join(filter(None, (f"hunk {failure.hunk}" * bool(failure.hunk), one_line(failure.function))))
    lines = [f"{failure.path}: {where}" if where else failure.path]
    fuzz = f" (would apply with --fuzz {failure.fuzz})" if failure.fuzz else ""
    lines.append(f"  {failure.reason}{fuzz}")
    if failure.there:
        return lines
    if failure.header:
        lines += ["  the hunk:", f"    {failure.header}", *_body(failure.text or failure.wanted)]
    if failure.found and failure.at:
        lines += ["  the tree has (! where it differs):", *_numbered(failure)]
    elif failure.found:
        lines += ["  the tree has:", *_body(failure.found)]
    for change in failure.last_changes:
        lines.append(
            f"  line(s) {_ranges(change.lines)} by {change.commit[:12]} "
            f'("{one_line(change.summary)}", {one_line(change.author)}, {change.date})'
        )
    return lines


def _body(text: str) -> list[str]:
    lines = printable(text).split("\n")
    more = [f"    ... and {len(lines) - _SHOWN} more lines"] if len(lines) > _SHOWN else []
    return [f"    {line}".rstrip() for line in lines[:_SHOWN]] + more


def _numbered(failure: Failure) -> Iterator[str]:
    lines = printable(failure.found).split("\n")
    for number, line in enumerate(lines[:_SHOWN], failure.at):
        yield f"    {number:>6} {'!' if number in failure.differing else ' '} {line}".rstrip()
    if len(lines) > _SHOWN:
        yield f"    ... and {len(lines) - _SHOWN} more lines"


def _ranges(numbers: Sequence[int]) -> str:
    """``3-5, 9`` of 3, 4, 5, 9."""
    groups: list[list[int]] = []
    for number in sorted(set(numbers)):
        if groups and number == groups[-1][-1] + 1:
            groups[-1].append(number)
        else:
            groups.append([number])
    return ", ".join(str(g[0]) if len(g) == 1 else f"{g[0]}-{g[-1]}" for g in groups)
