# SPDX-License-Identifier: GPL-2.0-or-later
"""Comparisons in columns that fit the terminal: on a narrow one the columns that say least are left out, no line is broken."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from rich.console import ConsoleOptions
from rich.text import Text

from kpatch_ci.model.status import Status, Verdict
from kpatch_ci.report.schema import ComparisonDoc
from kpatch_ci.report.view import figure, interval, magnitude, mean, percent, probability

STYLES: dict[str, str] = {
    Verdict.IMPROVED: "green",
    Verdict.REGRESSED: "bold red",
    Verdict.NO_CHANGE: "",
    Verdict.INCONCLUSIVE: "yellow",
    Verdict.FAILED: "bold red",
    Verdict.ERROR: "bold magenta",
    Verdict.SKIPPED: "dim",
    Status.PASSED: "green",
}
GAP = "  "
VERDICT = 12
"""Columns of the longest verdict: ``inconclusive``."""


@dataclass(frozen=True, slots=True)
class Column:
    """A figure of a comparison. Of columns that do not fit, the one with the smallest ``weight`` goes first."""

    heading: str
    width: int
    of: Callable[[ComparisonDoc], str]
    weight: int


CHANGE = Column("change %", 8, lambda c: percent(c.change_percent), 9)
INTERVAL = Column("interval %", 12, lambda c: interval(c.ci_percent), 3)
PROBABILITY = Column("p adj", 6, lambda c: probability(c.p_adjusted), 4)
MDE = Column("MDE %", 5, lambda c: magnitude(c.mde_percent), 5)
BASELINE = Column("baseline", 9, lambda c: figure(mean(c.baseline)), 1)
PATCHED = Column("patched", 9, lambda c: figure(mean(c.patched)), 1)
TESTS = (CHANGE, INTERVAL, PROBABILITY, MDE)
MEANS = (BASELINE, PATCHED)


@dataclass(frozen=True, slots=True)
class Line:
    """A row: figures and verdict of ``comparison``, or ``word`` in its place, or ``label`` alone."""

    label: str
    comparison: ComparisonDoc | None = None
    word: str = ""
    style: str = ""


def style_of(word: str) -> str:
    """The style of a verdict or status."""
    return STYLES.get(word, "")


def width_of(lines: Sequence[Line], columns: Sequence[Column]) -> int:
    """Width of a grid that has all of ``columns``."""
    return _label_width(lines) + _figures_width(_known(lines, columns))


def grid(lines: Sequence[Line], heading: str, columns: Sequence[Column], options: ConsoleOptions) -> Iterator[Text]:
    """Heading, rule and rows. A label that leaves no room for the first column of changes has a line to itself."""
    most = max(len(heading), options.max_width - _figures_width([CHANGE]))
    fitting = [line for line in lines if len(line.label) <= most]
    kept = _fitting(fitting, columns, options.max_width)
    room = max(_label_width(fitting), len(heading))
    head = "".join(f"{GAP}{c.heading:>{c.width}}" for c in kept)
    yield Text(f"{heading:{room}}{head}{GAP}verdict", "bold")
    rule = "-" if options.ascii_only else "\N{BOX DRAWINGS LIGHT HORIZONTAL}"
    yield Text(rule * min(options.max_width, room + _figures_width(kept)))
    for line in lines:
        if len(line.label) > most:
            yield Text(line.label, line.style)
            yield from _row(replace(line, label=""), room, kept)
        else:
            yield from _row(line, room, kept)


def _row(line: Line, room: int, columns: Sequence[Column]) -> Iterator[Text]:
    c = line.comparison
    if c is None and not line.word:
        if line.label:
            yield Text(line.label, line.style)
        return
    figures = "".join(f"{GAP}{column.of(c) if c else '':>{column.width}}" for column in columns)
    word = str(c.verdict) if c else line.word
    style = style_of(word) or style_of(word.rpartition(" ")[2])
    yield Text.assemble((f"{line.label:{room}}", line.style), figures, GAP, (word, style))


def _figures_width(columns: Sequence[Column]) -> int:
    return sum(len(GAP) + c.width for c in columns) + len(GAP) + VERDICT


def _label_width(lines: Sequence[Line]) -> int:
    return max((len(line.label) for line in lines if line.comparison or line.word), default=0)


def _known(lines: Sequence[Line], columns: Sequence[Column]) -> list[Column]:
    """Without a column in which nothing is known."""
    there = [line.comparison for line in lines if line.comparison]
    return [column for column in columns if any(column.of(c) for c in there)]


def _fitting(lines: Sequence[Line], columns: Sequence[Column], width: int) -> list[Column]:
    kept = _known(lines, columns)
    while kept and width_of(lines, kept) > width:
        least = min(column.weight for column in kept)
        kept = [column for column in kept if column.weight > least]
    return kept
