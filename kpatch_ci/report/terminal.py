# SPDX-License-Identifier: GPL-2.0-or-later
"""The terminal: a verdict table that answers "better, by how much, how sure", and each failure with what is needed to look into it.

Nothing that came from a patch, a compiler or a guest is read as markup: texts are ``Text`` objects, never format strings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console, ConsoleOptions, RenderableType
from rich.text import Text

from kpatch_ci.model.result import RunResult
from kpatch_ci.model.status import Status, Verdict
from kpatch_ci.report.checks import all_lines
from kpatch_ci.report.claims import summary_lines
from kpatch_ci.report.clean import one_line, tail
from kpatch_ci.report.document import as_document
from kpatch_ci.report.failures import Failure, arch_failures, failures
from kpatch_ci.report.labels import split_labels
from kpatch_ci.report.logs import log_names
from kpatch_ci.report.schema import ArchDoc, ComparisonDoc, Document
from kpatch_ci.report.terminal_grid import MEANS, TESTS, Line, grid, style_of, width_of
from kpatch_ci.report.view import BAD, cases, counters, every_arch, measured, primaries, workloads

TAIL = 15
FEW_SEEDS = "cannot give p below"
"""How a reason says that no number of pairs like this could have decided (kpatch_ci/stats/verdict.py)."""
Pairs = list[tuple[str, ArchDoc]]


def verdict_table(source: RunResult | Document) -> RenderableType:
    """A row a series, architecture and workload; below it what would help where there is no verdict, and why a stage failed."""
    return VerdictTable(as_document(source))


@dataclass(frozen=True, slots=True)
class VerdictTable:
    """See verdict_table(); the shape is chosen by the width of the console that prints it."""

    document: Document

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Rich's protocol: the table, then a line a failed stage."""
        pairs = list(every_arch(self.document))
        heading, lines = _flat(pairs)
        if width_of(lines, TESTS) > options.max_width:
            heading, lines = "", _grouped(pairs)
        yield from grid(lines, heading, TESTS, options)
        why = _why_inconclusive([c for _, arch in pairs for c in primaries(arch)])
        if why:
            yield Text.assemble(("inconclusive: ", style_of(Verdict.INCONCLUSIVE)), why)
        for line in summary_lines(self.document):
            yield Text(line)
        for name, arch in pairs:
            stage, reason = _stopped(name, arch)
            if stage:
                yield Text.assemble(
                    (f"{one_line(name)} {arch.arch}: ", "bold"), (f"{stage}: ", style_of(arch.status)), reason
                )


def _why_inconclusive(figures: Iterable[ComparisonDoc]) -> str:
    """What stands in the way of a verdict and what would help, in one line; empty where nothing is inconclusive."""
    reasons = [c.reason for c in figures if c.verdict is Verdict.INCONCLUSIVE]
    few = dict.fromkeys(one_line(r.partition("; interval")[0]) for r in reasons if FEW_SEEDS in r)
    if few:
        return f"{next(iter(few))} (a run without --quick, or --seeds N)"
    return "the change's interval reaches beyond the threshold; more seeds narrow it (--seeds N)" if reasons else ""


def _flat(pairs: Pairs) -> tuple[str, list[Line]]:
    """Series, architecture and workload in columns; a name that is the row's above is not written again."""
    found = [
        ((one_line(name), arch.arch, one_line(c.workload) if c else ""), Line("", c, "" if c else _status(name, arch)))
        for name, arch in pairs
        for c in (*measured(arch),) or (None,)
    ]
    heads = ("series", "arch", "workload")
    widths = [max(len(text) for text in column) for column in zip(heads, *(names for names, _ in found), strict=True)]
    lines, above = [], ("", "")
    for (series, arch, workload), line in found:
        shown = (series * (series != above[0]), arch * ((series, arch) != above), workload)
        above = (series, arch)
        lines.append(replace(line, label=_columns(shown, widths)))
    return _columns(heads, widths), lines


def _columns(texts: Iterable[str], widths: Iterable[int]) -> str:
    return "  ".join(f"{text:{width}}" for text, width in zip(texts, widths, strict=True))


def _grouped(pairs: Pairs) -> list[Line]:
    """Series and architecture on a line of their own, its workloads below."""
    lines = []
    for name, arch in pairs:
        lines.append(Line(f"{one_line(name)} {arch.arch}", style="bold"))
        lines += [Line(f"  {one_line(c.workload)}", c) for c in measured(arch)] or [
            Line("  ", word=_status(name, arch))
        ]
    return lines


def _status(series: str, arch: ArchDoc) -> str:
    """What stands where figures would."""
    stage = _stopped(series, arch)[0]
    return f"{stage.partition('.')[0]} {arch.status}" if stage not in ("", arch.status) else str(arch.status)


def _stopped(series: str, arch: ArchDoc) -> tuple[str, str]:
    """The first stage that went wrong and why; empty where all went well or a figure tells it all. A skipped one has its reason."""
    if arch.status is Status.SKIPPED:
        return "skipped", one_line(arch.reason)
    found = [f for f in arch_failures(series, arch) if f.stage != "verdict" or not measured(arch)]
    return (found[0].stage, one_line(found[0].reason)) if arch.status in BAD and found else ("", "")


def print_failures(console: Console, source: RunResult | Document, output: Path | None = None) -> None:
    """Print every failure: what, to which series, arch and seed, the log's last lines, its path (below ``output``), the command."""
    names = log_names(source, output) if isinstance(source, RunResult) else None
    for failure in failures(as_document(source, names)):
        console.print()
        console.print(_heading(failure))
        for line in tail(failure.log_tail, TAIL):
            console.print(Text(f"  | {line}", "dim"), soft_wrap=True)
        if failure.log:
            log = output / failure.log if output else Path(failure.log)
            console.print(Text(f"  log: {log}"), soft_wrap=True)
        if failure.reproduce:
            console.print(Text(f"  reproduce: {one_line(failure.reproduce)}"), soft_wrap=True)


def show_checks(console: Console, source: RunResult | Document) -> None:
    """What was asked beside figures: a build after every patch, and checkers' findings."""
    for name, arch in every_arch(as_document(source)):
        for number, line in enumerate(all_lines(arch.each, arch.checks)):
            if number == 0:
                console.print(Text(f"{one_line(name)} {arch.arch}:", "bold"))
            console.print(Text(f"  {line}"), soft_wrap=True)


def _heading(failure: Failure) -> Text:
    head = (f"{failure.stage} {failure.status}", style_of(failure.status))
    return Text.assemble(head, f": {one_line(failure.subject)}\n  {one_line(failure.reason)}")


def print_details(console: Console, source: RunResult | Document) -> None:
    """``-v``: every comparison: of each workload the figure that decides, its cases, and the counters that explain them."""
    for name, arch in every_arch(as_document(source)):
        groups = [g for workload in workloads([arch]) for g in _groups(arch, workload)]
        lines = [line for group in groups for line in group]
        if lines:
            console.print()
            console.print(Text(f"{one_line(name)} {arch.arch}", "bold underline"))
            for text in grid(lines, "", (*MEANS, *TESTS), console.options):
                console.print(text)


def _groups(arch: ArchDoc, workload: str) -> Iterator[list[Line]]:
    """A workload's own figures, then each counter's: a heading and a row a case. What all cases share is said once."""
    found = [*primaries(arch, workload), *cases(arch, workload), *counters(arch, workload)]
    labels = list(dict.fromkeys(one_line(c.case) for c in found if not c.primary))
    shared, own = split_labels(labels) if len(labels) > 1 else ("", labels)
    short = dict(zip(labels, own, strict=True))
    for number, metric in enumerate(dict.fromkeys(c.metric for c in found)):
        rows = [c for c in found if c.metric == metric]
        head = one_line(f"{workload}: {metric} ({rows[0].unit}), {rows[0].better} is better")
        lines = [Line(f"{head}; {shared}" if shared and number == 0 else head, style="bold")]
        yield lines + [Line(f"  {short.get(one_line(c.case)) or one_line(c.case)}", c) for c in rows]
