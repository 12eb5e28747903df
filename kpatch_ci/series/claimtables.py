# SPDX-License-Identifier: GPL-2.0-or-later
"""Tables as mmtests prints and people mail them: rows of figures with percentages, and the run's durations."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kpatch_ci.model.claim import Claim, ClaimKind, Figure
from kpatch_ci.series.claimnumbers import DIGITS, change, figure, follows

_CELL = re.compile(
    rf"(?<![\w.])(?P<text>-?{DIGITS})[ \t]*(?:\([ \t]*(?P<percent>[+-]?{DIGITS})(?:%| pct)[ \t]*\)"
    rf"|(?P<star>\*)[ \t]*(?P<marked>[+-]?{DIGITS})%[ \t]*\*)"
)
_ROW = re.compile(rf"[ \t]*(?P<name>[A-Za-z0-9][^()*]{{0,80}}?)[ \t]+(?=-?{DIGITS}[ \t]*[(*])")
_DURATION = re.compile(
    r"[ \t]*(?P<name>[A-Z][A-Za-z]*(?:[ -][A-Za-z%./]+){0,6})[ \t]+"
    rf"(?P<cells>{DIGITS}(?:[ \t]+{DIGITS})+)[ \t]*$"
)
_OF_THE_RUN = re.compile(r"(?:(?:Duration )?(?:User|System|Elapsed)$|Ops )")
_STATISTIC = re.compile(
    r"(?P<statistic>(?:Best\d+%)?B?[AHG]mean(?:-\d+)?|B?Stddev(?:-\d+)?|B?CoeffVar(?:-\d+)?|Min|Max(?:-\d+%?)?|Mean|Median"
    r"|(?:1st|2nd|3rd)-qrtle|Ops|Duration)(?:[ \t]+|$)(?P<label>.*)"
)
_HEADER_LINES = 4
_ABOVE_LINES = 10
_FEW_WORDS = 4
LONGEST = 400
"""Characters of a line that is read: what is longer is no table and no prose, and must not cost time."""
_SPREAD = "the spread of the mail's own runs; ours is over seeds and boots, so the two cannot be compared"
_OF_RUN = "CPU and elapsed time of the mail's whole benchmark; a replicate here is of another length, and they are not measured"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under one heading, with the words above them."""

    rows: tuple[Claim, ...]
    title: str
    lines: tuple[int, int]
    """Indices of its first line (heading included) and of the line after its last."""


def tables(lines: Sequence[str], source: str = "") -> tuple[Table, ...]:
    """Every table of a text, in order. Lines that are quoted (``>``) belong to somebody else's text."""
    found: list[Table] = []
    at = 0
    while at < len(lines):
        rows = _block(lines, at, source)
        if rows and (rows[0].kind is ClaimKind.ROW or any(_OF_THE_RUN.match(row.name) for row in rows)):
            found.append(_table(lines, at, rows, found))
        at += max(1, len(rows))
    return tuple(found)


def _block(lines: Sequence[str], at: int, source: str) -> list[Claim]:
    """Rows of one kind and one number of columns, from ``at`` on."""
    rows: list[Claim] = []
    for number in range(at + 1, len(lines) + 1):
        line = lines[number - 1]
        one = (_row(line) or _duration(line)) if len(line) <= LONGEST else None
        if one is None or (rows and (one.kind, len(one.figures)) != (rows[0].kind, len(rows[0].figures))):
            break
        rows.append(replace(one, source=source, line=number))
    return rows


def _row(line: str) -> Claim | None:
    head = _ROW.match(line)
    if head is None:
        return None
    cells = list(_CELL.finditer(line, head.end()))
    if len(cells) < 2 or line[head.end() :].strip() == "" or _CELL.sub("", line[head.end() :]).strip():
        return None
    figures = tuple(
        replace(figure(c["text"]), percent=c["percent"] or c["marked"] or "", star=bool(c["star"])) for c in cells
    )
    if float(figures[0].percent) != 0 or figures[0].star:
        return None
    statistic, label = named(head["name"])
    return Claim(line.strip(), kind=ClaimKind.ROW, statistic=statistic, label=label, figures=figures)


def named(words: str) -> tuple[str, str]:
    """``Amean     4`` as statistic and label; a name that is none of mmtests' is a label alone."""
    words = " ".join(words.split())
    match = _STATISTIC.match(words)
    return (match["statistic"], match["label"]) if match else ("", words)


def _duration(line: str) -> Claim | None:
    match = _DURATION.match(line)
    if match is None:
        return None
    figures = tuple(figure(cell) for cell in match["cells"].split())
    statistic, label = named(match["name"])
    return Claim(line.strip(), kind=ClaimKind.DURATION, statistic=statistic, label=label, figures=figures)


def _table(lines: Sequence[str], at: int, rows: list[Claim], before: Sequence[Table]) -> Table:
    first, kernels = _heading(lines, at, len(rows[0].figures))
    if not kernels and before and _near(lines, before[-1], at):
        last = before[-1].rows[0].figures
        kernels = [one.kernel for one in last] if len(last) == len(rows[0].figures) else []
    marks = any(one.star for row in rows for one in row.figures)
    done = []
    for row in rows:
        figures = tuple(replace(one, kernel=kernels[i] if kernels else "") for i, one in enumerate(row.figures))
        marked = False if marks and "mean" in row.statistic else None
        done.append(judged(replace(row, figures=figures, significant=marked)))
    goes_on = before and not "".join(lines[before[-1].lines[1] : first]).strip()
    title = before[-1].title if goes_on else _above(lines, first)
    return Table(tuple(done), title, (first, at + len(rows)))


def _near(lines: Sequence[str], table: Table, at: int) -> bool:
    """Whether only a line or two of no more than a few words stand between a table and the next rows."""
    between = lines[table.lines[1] : at]
    return len(between) <= 2 and all(len(line.split()) <= _FEW_WORDS for line in between)


def judged(row: Claim, columns: tuple[int, int] = (0, -1)) -> Claim:
    """A row with its change from the two figures of ``columns``, and what its own percentage says of them."""
    row = replace(row, columns=columns)
    baseline, patched = row.baseline, row.patched
    if baseline is None or patched is None:
        return row
    first = columns[0] == 0
    stated = patched.percent if first else ""
    better, note = _better(row.statistic, stated, baseline, patched)
    spread = "Stddev" in row.statistic or "CoeffVar" in row.statistic
    why = _OF_RUN if row.kind is ClaimKind.DURATION else _SPREAD if spread else ""
    own = float(stated) if stated and better and not note else None  # of figures that were not rounded yet
    return replace(
        row,
        better=better,
        change_percent=change(baseline.value, patched.value, better) if own is None else own,
        stated_percent=stated,
        significant=row.significant if row.significant is None else patched.star and first,
        note=note,
        unmeasured=why,
    )


_BY_STATISTIC: Mapping[str, str] = {"Amean": "lower", "Hmean": "higher", "Stddev": "lower", "CoeffVar": "lower"}


def _better(statistic: str, stated: str, baseline: Figure, patched: Figure) -> tuple[str, str]:
    """Which direction is better, and what is wrong with the mail's percentage.

    mmtests prints Amean for times and Hmean for rates; of Min, Max and the like only the percentage's sign tells.
    """
    known = next((way for word, way in _BY_STATISTIC.items() if word in statistic), "")
    if statistic == "Duration" or not stated:
        return known or ("" if statistic == "Ops" or stated else "lower"), ""
    fits = [way for way in ("lower", "higher") if follows(stated, baseline, patched, way)]
    if not known:
        only = fits[0] if len(fits) == 1 else ""
        return only, "" if fits else f"the mail says {stated} %, which its figures do not give in either direction"
    if known in fits:
        return known, ""
    own = change(baseline.value, patched.value, known)
    gives = "nothing" if own is None else f"{own:+.2f} %"
    if fits:
        return "", f"the mail says {stated} %, as if {fits[0]} were better, which {statistic} is not used for"
    return known, f"the mail says {stated} %, its figures give {gives}"


def _heading(lines: Sequence[str], at: int, count: int) -> tuple[int, list[str]]:
    """Index of a table's first line, and its kernels' names: the lines above it that have a name a column."""
    first = at
    above: list[str] = []
    for index in range(at - 1, max(-1, at - 1 - _HEADER_LINES), -1):
        line = lines[index].expandtabs()[:LONGEST]
        words = line.split()
        if line.startswith(" ") and 0 < len(words) <= count and not words[-1].endswith((".", ",", ";", ":")):
            above.insert(0, line)
            first = index
        elif above or len(words) > _FEW_WORDS or not words:
            break
    whole = [line for line in above if len(line.split()) == count]
    edges = [match.end() for match in re.finditer(r"\S+", whole[0])] if whole else []
    names = [split for line in above if (split := _kernels(line, count, edges))]
    return first, ["-".join(column) for column in zip(*names, strict=True)]


def _above(lines: Sequence[str], first: int) -> str:
    """A table's title: the short line right above it; else the paragraph there."""
    at = first - 1
    while at >= 0 and first - at <= 2 and not lines[at].strip():
        at -= 1
    words: list[str] = []
    while at >= 0 and lines[at].strip() and first - at <= _ABOVE_LINES:
        words.insert(0, lines[at].strip()[:LONGEST])
        if len(words[0].split()) <= _FEW_WORDS and len(words) == 1 and not words[0].endswith("."):
            break
        at -= 1
    return " ".join(words)


def _kernels(line: str, count: int, edges: Sequence[int]) -> list[str]:
    """A heading's names; those that ran into each other are cut where the columns of another of its lines end. Empty: they cannot be."""
    words = line.split()
    return words if len(words) == count else _cut(line, edges, count)


def _cut(line: str, edges: Sequence[int], count: int) -> list[str]:
    """Columns are right-aligned: a name that fits into its column ends with it, and one that does not may touch the one before."""
    found: list[str] = []
    for token in re.finditer(r"\S+", line):
        start = token.start()
        for edge in edges[:-1]:
            if start < edge < token.end():
                found.append(line[start:edge])
                start = edge
                break  # the name behind it overflows its own column: where it ends cannot be told from the columns
        found.append(line[start : token.end()])
    return found if len(found) == count else []
