# SPDX-License-Identifier: GPL-2.0-or-later
"""The terminal: a verdict table that answers "better, by how much, how sure", and each failure with what is needed to look into it.

Nothing that came from a patch, a compiler or a guest is read as markup: texts are ``Text`` objects, never format strings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

from kpatch_ci.model.result import RunResult
from kpatch_ci.model.status import Status, Verdict
from kpatch_ci.report.checks import all_lines
from kpatch_ci.report.claims import summary_lines
from kpatch_ci.report.clean import one_line, tail
from kpatch_ci.report.document import as_document
from kpatch_ci.report.failures import Failure, arch_failures, failures
from kpatch_ci.report.logs import log_names
from kpatch_ci.report.schema import ArchDoc, ComparisonDoc, Document
from kpatch_ci.report.view import BAD, every_arch, interval, percent, primaries, probability, workloads

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
CELL = 12
"""Width that a workload's column needs: ``inconclusive``."""
TAIL = 15
FEW_SEEDS = "cannot give p below"
"""How a reason says that no number of pairs like this could have decided (kpatch_ci/stats/verdict.py)."""


def verdict_table(source: RunResult | Document) -> RenderableType:
    """One row a series and architecture, one column a workload (one row, on narrow terminals); below it why a stage failed."""
    return VerdictTable(as_document(source))


@dataclass(frozen=True, slots=True)
class VerdictTable:
    """See verdict_table(); the shape is chosen by the width of the console that prints it."""

    document: Document

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Rich's protocol: the table, then a line a failed stage."""
        pairs = list(every_arch(self.document))
        names = workloads(arch for _, arch in pairs)
        needed = _label_width(pairs) + sum(max(CELL, len(n)) + 3 for n in names) + 1
        yield _by_column(pairs, names) if needed <= options.max_width else _by_row(pairs)
        why = _why_inconclusive([c for _, arch in pairs for c in primaries(arch)])
        if why:
            yield Text.assemble(("inconclusive: ", STYLES[Verdict.INCONCLUSIVE]), why)
        for line in summary_lines(self.document):
            yield Text(line)
        for name, arch in pairs:
            stage, reason = _stopped(name, arch)
            if stage:
                yield Text.assemble(
                    (f"{one_line(name)} {arch.arch}: ", "bold"), (f"{stage}: ", _style(arch.status)), reason
                )


def _why_inconclusive(figures: Iterable[ComparisonDoc]) -> str:
    """What stands in the way of a verdict, in one line; empty where nothing is inconclusive."""
    reasons = [c.reason for c in figures if c.verdict is Verdict.INCONCLUSIVE]
    few = dict.fromkeys(one_line(r.rpartition("; ")[0]) for r in reasons if FEW_SEEDS in r)
    if few:
        return f"{next(iter(few))} (a run without --quick, or --seeds N)"
    return "the change's interval reaches beyond the threshold; report.txt has each" if reasons else ""


def _measured(arch: ArchDoc) -> list[ComparisonDoc]:
    """Its primary figures; none where all were skipped, for then something stopped it before."""
    found = primaries(arch)
    return found if any(c.verdict is not Verdict.SKIPPED for c in found) else []


def _label_width(pairs: list[tuple[str, ArchDoc]]) -> int:
    return (
        max((len(line) for n, _ in pairs for line in _name(n).plain.splitlines()), default=0)
        + max((len(a.arch) for _, a in pairs), default=0)
        + 6
    )


def _name(series: str) -> Text:
    """A series' name, its variant on a line of its own."""
    name, plus, variant = one_line(series).partition("+")
    return Text(f"{name}\n{plus}{variant}" if variant else name)


def _by_column(pairs: list[tuple[str, ArchDoc]], names: list[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("series", no_wrap=True)
    table.add_column("arch", no_wrap=True)
    for name in names:
        table.add_column(Text(one_line(name)), justify="right", min_width=CELL)
    if not names:
        table.add_column("verdict")
    for series, arch in pairs:
        cells = [_cell(arch, name) for name in names] or [_status(series, arch)]
        if not _measured(arch):
            cells = [_status(series, arch), *(Text("-", "dim") for _ in cells[1:])]
        table.add_row(_name(series), Text(arch.arch), *cells)
    return table


def _by_row(pairs: list[tuple[str, ArchDoc]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("series", "arch", "workload", "change"):
        table.add_column(heading, overflow="fold", justify="right" if heading == "change" else "left")
    table.add_column("verdict", min_width=CELL)
    for series, arch in pairs:
        head = (_name(series), Text(arch.arch))
        for c in _measured(arch):
            table.add_row(*head, Text(one_line(c.workload)), _change(c), Text(c.verdict, _style(c.verdict)))
            head = (Text(""), Text(""))
        if not _measured(arch):
            table.add_row(*head, Text(""), Text(""), _status(series, arch))
    return table


def _cell(arch: ArchDoc, workload: str) -> Text:
    found = primaries(arch, workload)
    return (
        Text("\n").join(Text.assemble(_change(c), "\n", (c.verdict, _style(c.verdict))) for c in found)
        if found
        else Text("-", "dim")
    )


def _change(comparison: ComparisonDoc) -> Text:
    return Text("-" if comparison.change_percent is None else f"{percent(comparison.change_percent)}%")


def _status(series: str, arch: ArchDoc) -> Text:
    """What stands where figures would."""
    stage = _stopped(series, arch)[0]
    word = f"{stage.partition('.')[0]} {arch.status}" if stage not in ("", arch.status) else str(arch.status)
    return Text(word, _style(arch.status))


def _stopped(series: str, arch: ArchDoc) -> tuple[str, str]:
    """The first stage that went wrong and why; empty where all went well or a figure tells it all. A skipped one has its reason."""
    if arch.status is Status.SKIPPED:
        return "skipped", one_line(arch.reason)
    found = [f for f in arch_failures(series, arch) if f.stage != "verdict" or not _measured(arch)]
    return (found[0].stage, one_line(found[0].reason)) if arch.status in BAD and found else ("", "")


def _style(word: str) -> str:
    return STYLES.get(word, "")


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
    head = (f"{failure.stage} {failure.status}", _style(failure.status))
    return Text.assemble(head, f": {one_line(failure.subject)}\n  {one_line(failure.reason)}")


def print_details(console: Console, source: RunResult | Document) -> None:
    """``-v``: every comparison, with interval and adjusted p-value."""
    for name, arch in every_arch(as_document(source)):
        if not arch.comparisons:
            continue
        table = Table(box=None, pad_edge=False, title=Text(f"{one_line(name)} {arch.arch}"), title_justify="left")
        table.add_column("workload", no_wrap=True)
        table.add_column("case", overflow="fold")
        table.add_column("metric", no_wrap=True)
        for heading in ("change %", "interval %", "p adj", "verdict"):
            table.add_column(heading, justify="right", no_wrap=True)
        for c in arch.comparisons:
            words = (Text(one_line(w)) for w in (c.workload, c.case, c.metric))
            figures = (percent(c.change_percent), interval(c.ci_percent), probability(c.p_adjusted))
            table.add_row(*words, *figures, Text(c.verdict, _style(c.verdict)))
        console.print(table)
