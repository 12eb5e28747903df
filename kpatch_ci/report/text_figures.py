# SPDX-License-Identifier: GPL-2.0-or-later
"""report.txt's figures: what it says first, and of each workload the summary, the tests and the counters."""

from __future__ import annotations

from collections.abc import Sequence

from kpatch_ci.model.status import Verdict
from kpatch_ci.report.clean import one_line, plain_ascii
from kpatch_ci.report.labels import fitted
from kpatch_ci.report.lines import WIDTH, fold
from kpatch_ci.report.running import shift_lines
from kpatch_ci.report.schema import ArchDoc, ComparisonDoc, Document, SeriesDoc
from kpatch_ci.report.summary_table import alpha_of, summary_table
from kpatch_ci.report.view import (
    cases,
    change,
    counters,
    every_arch,
    figure,
    interval,
    magnitude,
    mean,
    measured,
    migration_rates,
    percent,
    primaries,
    probability,
    sample_count,
    threshold,
    workloads,
)

SAID = frozenset({Verdict.IMPROVED, Verdict.REGRESSED})
"""Verdicts whose reason repeats the figures."""
COUNTER_LABEL = 17
_COUNTER_HEAD = f"{'baseline':>9} {'patched':>9} {'chg %':>6} {'CI %':>12} verdict"


def verdict_lines(document: Document) -> list[str]:
    """What every series did on every architecture: a line a workload, with its change, interval, p and minimum detectable effect."""
    pairs = list(every_arch(document))
    mde = any(c.mde_percent is not None for _, arch in pairs for c in primaries(arch))
    room = WIDTH - len(_test_cells(None, mde=mde)) - 1
    lines = [
        f"{'Verdicts':{room}} {_test_cells(None, mde=mde)}" if any(measured(arch) for _, arch in pairs) else "Verdicts"
    ]
    for name, arch in pairs:
        reason = f" ({one_line(arch.reason)})" if arch.reason else ""
        lines += fold(f"{name}, {arch.arch}: {arch.status}{reason}", "", "    ")
        for c in measured(arch):
            lines += _test_row(f"  {c.workload}", c, room, mde=mde)
    for series in document.series:
        lines += [] if series.arches else fold(f"{series.name}: {series.status}, on no architecture", "", "    ")
    return lines


def figure_lines(series: SeriesDoc, arch: ArchDoc, document: Document) -> list[str]:
    """Of each workload: a table of its cases as mmtests has it, the verdict, what the tests say of each case, the counters."""
    lines: list[str] = []
    for name in workloads([arch]):
        heads, each = primaries(arch, name), cases(arch, name)
        for metric in dict.fromkeys(c.metric for c in (*heads, *each)):
            rows = [c for c in each or heads if c.metric == metric and (c.baseline or c.patched)]
            if rows:
                lines += ["", *_heading(name, rows[0], threshold(document, name))]
                lines += summary_table(series, arch, rows, alpha_of(document))
        lines += [line for c in heads for line in _verdict(c, document)]
        lines += _tests(each)
        lines += _counters(arch, name)
        lines += [line for shift in shift_lines(arch, name) for line in fold(shift, "  ")]
    methods = sorted({c.ci_method for c in arch.comparisons if c.ci_method and c.ci_percent})
    return [*lines, "", *fold(f"CI: {', '.join(methods)}.", "  ")] if methods else lines


def _heading(name: str, c: ComparisonDoc, practical: float | None) -> list[str]:
    limit = f", threshold {practical:g} %" if practical is not None else ""
    return fold(f"{name}: {c.metric} ({c.unit}), {c.better} is better, {sample_count(c)}{limit}", "", "  ")


def _verdict(c: ComparisonDoc, document: Document) -> list[str]:
    """The figure that decides, in one sentence; why, where the sentence does not say it."""
    words = [f"{c.verdict}, {change(c)}"]
    if c.ci_percent is not None:
        confidence = document.thresholds.get("confidence")
        words.append(f"{f'{100 * confidence:g} % ' if confidence else ''}interval {interval(c.ci_percent)} %")
    if c.p_adjusted is not None:
        words.append(f"adjusted p {probability(c.p_adjusted)}")
    if c.mde_percent is not None:
        words.append(f"minimum detectable effect {magnitude(c.mde_percent)} %")
    lines = ["", *fold(f"{c.workload} {c.metric}: {'; '.join(words)}", "", "  ")]
    return lines + ([] if c.verdict in SAID or not c.reason else fold(c.reason, "  "))


def _tests(each: Sequence[ComparisonDoc]) -> list[str]:
    """What the tests say of each case."""
    if not each:
        return []
    mde = any(c.mde_percent is not None for c in each)
    room = WIDTH - len(_test_cells(None, mde=mde)) - 1
    _, labels, _ = fitted([c.case for c in each], room, each[0].metric)
    rows = [line for c, label in zip(each, labels, strict=True) for line in _test_row(label, c, room, mde=mde)]
    return ["", f"{'':{room}} {_test_cells(None, mde=mde)}", *rows]


def _test_row(label: str, c: ComparisonDoc, room: int, *, mde: bool) -> list[str]:
    """A comparison's line; a label that is too long for it stands above."""
    label = plain_ascii(label)
    above = fold(label, label[: len(label) - len(label.lstrip())]) if len(label) > room else []
    return [*above, f"{'' if above else label:{room}} {_test_cells(c, mde=mde)}"]


def _test_cells(c: ComparisonDoc | None, *, mde: bool) -> str:
    """Change, interval, adjusted p, minimum detectable effect and verdict; their headings for None."""
    if c is None:
        return f"{'chg %':>6} {'CI %':>12} {'p adj':>6}{' MDE %' if mde else ''} {'verdict':12}"
    effect = f" {magnitude(c.mde_percent):>5}" if mde else ""
    figures = f"{percent(c.change_percent):>6} {interval(c.ci_percent):>12} {probability(c.p_adjusted):>6}"
    return f"{figures}{effect} {c.verdict}"


def _counters(arch: ArchDoc, name: str) -> list[str]:
    """What explains the figures: a line a counter and case."""
    found = counters(arch, name)
    if not found:
        return []
    every = list(dict.fromkeys(c.case for c in found))
    _, short, meanings = fitted(every, COUNTER_LABEL, "all")
    labels = dict(zip(every, short, strict=True))
    lines = ["", *(line for text in meanings for line in fold(f"case {text}", "  ", "      "))]
    title = f"{name}: counters"
    if len(title) > COUNTER_LABEL + 2:
        lines += fold(title, "", "  ")
        title = ""
    lines.append(f"{title:{COUNTER_LABEL + 2}} {_COUNTER_HEAD}")
    for metric in dict.fromkeys(c.metric for c in found):
        lines += fold(metric, " ")
        lines += [f"  {labels[c.case]:{COUNTER_LABEL}} {_counter_cells(c)}" for c in found if c.metric == metric]
    rates = migration_rates(arch, name)
    lines += fold("migrations per 1000 context switches (not tested)", " ") if rates else []
    lines += [f"  {labels[case]:{COUNTER_LABEL}} {figure(b):>9} {figure(p):>9}" for case, b, p in rates]
    return lines


def _counter_cells(c: ComparisonDoc) -> str:
    figures = f"{figure(mean(c.baseline)):>9} {figure(mean(c.patched)):>9} {percent(c.change_percent):>6}"
    return f"{figures} {interval(c.ci_percent):>12} {c.verdict}"
