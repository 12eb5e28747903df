# SPDX-License-Identifier: GPL-2.0-or-later
"""A table in the shape that kernel people know from mmtests: a row a statistic and case, a column a kernel."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from kpatch_ci.report.clean import one_line, plain_ascii
from kpatch_ci.report.labels import fitted
from kpatch_ci.report.lines import WIDTH, fold
from kpatch_ci.report.schema import ArchDoc, ComparisonDoc, Document, SeriesDoc
from kpatch_ci.report.summary import improvement, rows_for

NAME = 9
"""Columns of a statistic's name: ``BAmean-95``."""
PERCENT = 11
"""Columns of a percentage: space, parenthesis, seven for the number, percent sign, parenthesis."""
MOST = 10
"""Columns of a figure, at most."""
ALPHA = 0.05
"""Where the document does not say what counts as significant (kpatch_ci/stats/verdict.py)."""


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """One statistic of one case. ``percent``: of baseline, positive where patched is better; None where there is no such figure."""

    name: str
    label: str
    baseline: float | None
    patched: float | None
    percent: float | None
    significant: bool = False


def summary_rows(comparisons: Sequence[ComparisonDoc], labels: Sequence[str], alpha: float) -> list[SummaryRow]:
    """The table's rows, by statistic, then by case. All ``comparisons`` are of one metric; ``significant`` marks means only."""
    if not comparisons:
        return []
    found = []
    for number, statistic in enumerate(rows_for(comparisons[0].better)):
        for c, label in zip(comparisons, labels, strict=True):
            baseline, patched = (statistic.of([v for v in arm if v is not None]) for arm in (c.baseline, c.patched))
            marked = number == 0 and c.p_adjusted is not None and c.p_adjusted < alpha
            percent = improvement(baseline, patched, statistic.better)
            found.append(SummaryRow(statistic.name, label, baseline, patched, percent, marked))
    return found


def alpha_of(document: Document) -> float:
    """Adjusted p below which a change counts as significant."""
    return document.thresholds.get("alpha", ALPHA)


def summary_table(series: SeriesDoc, arch: ArchDoc, comparisons: Sequence[ComparisonDoc], alpha: float) -> list[str]:
    """Lines: settings that all cases share, the kernels' names, the rows, and the rule of the asterisks."""
    decimals = _decimals(comparisons)
    unlabelled = summary_rows(comparisons, [""] * len(comparisons), alpha)
    if not unlabelled:
        return []
    figures = [_figure(v, decimals) for row in unlabelled for v in (row.baseline, row.patched)]
    width = max(8, *map(len, figures))
    room = WIDTH - NAME - 1 - 2 * (1 + width + PERCENT)
    shared, labels, meanings = fitted([c.case for c in comparisons], room, comparisons[0].metric)
    left = NAME + 1 + max(map(len, labels))
    lines = [row for text in meanings for row in fold(text, "  ", "      ")]
    if shared and shared != "all":
        lines = [*fold(f"{'every case' if len(comparisons) > 1 else 'case'}: {shared}", "  ", "      "), *lines]
    lines += _kernels(series, arch, left, width + PERCENT)
    for row in summary_rows(comparisons, labels, alpha):
        own = _percent(0.0 if row.baseline is not None else None, marked=False)
        theirs = _percent(row.percent, marked=row.significant)
        head = f"{row.name:{NAME}} {row.label}"
        before, after = (_figure(v, decimals) for v in (row.baseline, row.patched))
        lines.append(f"{head:{left}} {before:>{width}}{own} {after:>{width}}{theirs}")
    return [*lines, f"  *  %*  significant: p below {alpha:g} after Holm's adjustment"]


def _kernels(series: SeriesDoc, arch: ArchDoc, left: int, width: int) -> list[str]:
    """Each kernel's release, and below it the name of its arm, folded where that is long."""
    names = (series.arms[0], series.name if series.arms[1] == "patched" else series.arms[1])
    releases = (arch.build.baseline.release, arch.build.patched.release)
    lines = []
    for texts in (releases, names):
        heads = [textwrap.wrap(plain_ascii(one_line(text)), width) for text in texts]
        lines += [f"{'':{left}} {a:>{width}} {b:>{width}}" for a, b in zip_longest(*heads, fillvalue="")]
    return lines


def _decimals(comparisons: Iterable[ComparisonDoc]) -> int:
    """So many that the smallest mean has five digits, for all rows have the same and spreads are smaller; two at least, as in mmtests."""
    sizes = []
    for c in comparisons:
        for arm in (c.baseline, c.patched):
            there = [abs(v) for v in arm if v is not None]
            sizes += [math.fsum(there) / len(there)] if there else []
    smallest = min((s for s in sizes if s > 0), default=1.0)
    return max(2, min(6, 4 - math.floor(math.log10(smallest))))


def _figure(value: float | None, decimals: int) -> str:
    if value is None:
        return "-"
    text = f"{value:.{decimals}f}"
    return text if len(text) <= MOST else f"{value:.3e}"


def _percent(value: float | None, *, marked: bool) -> str:
    """`` (   0.00%)``, or between asterisks where ``marked``."""
    number = "-" if value is None else next(t for t in _spellings(value) if len(t) <= 7)
    return f" *{number:>7}%*" if marked else f" ({number:>7}%)" if value is not None else f" ({number:>7} )"


def _spellings(value: float) -> Iterable[str]:
    """``value`` ever shorter; never a negative zero."""
    yield from (f"{value:z.{decimals}f}" for decimals in (2, 1, 0))
    yield f"{value:.0e}".replace("e+0", "e").replace("e+", "e")
