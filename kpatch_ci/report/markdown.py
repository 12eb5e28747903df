# SPDX-License-Identifier: GPL-2.0-or-later
"""report.md: short, for a CI job's summary or a merge request: the verdict table first, then what failed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kpatch_ci.model.result import RunResult
from kpatch_ci.model.status import Status
from kpatch_ci.report.checks import all_lines
from kpatch_ci.report.claimparts import JudgedClaimDoc
from kpatch_ci.report.claims import (
    WORTH,
    claimed_text,
    claims,
    figure_text,
    interval_text,
    measured_text,
    summary,
    where_text,
)
from kpatch_ci.report.clean import one_line, tail
from kpatch_ci.report.document import as_document
from kpatch_ci.report.failures import Failure, arch_failures, failures
from kpatch_ci.report.schema import ArchDoc, Document
from kpatch_ci.report.view import (
    SIGN_NOTE,
    cases,
    change,
    every_arch,
    interval,
    mode_notes,
    percent,
    primaries,
    probability,
    workloads,
)

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~>-])")


def to_markdown(source: RunResult | Document) -> str:
    """The summary, ending in a newline."""
    document = as_document(source)
    tree = document.tree
    lines = [
        f"## kpatch-ci: {document.status}",
        "",
        f"{escape(tree.get('label', ''))} ({escape(tree.get('release', ''))}), {document.mode}",
    ]
    lines += ["", *_verdicts(document), "", SIGN_NOTE, ""]
    for failure in failures(document):
        lines += _failure(failure)
    lines += _asked(document)
    lines += _listed("Look closely", [text for series in document.series for text in series.flags])
    lines += _listed("Tested with", [text for series in document.series for text in series.chosen])
    lines += _claims(document)
    lines += _details(document)
    lines += [line for note in mode_notes(document) for line in (f"*{note}*", "")]
    if document.command:
        lines += ["Reproduce:", "", *_fence([one_line(document.command)])]
    return "\n".join(lines) + "\n"


def escape(text: str) -> str:
    """``text`` as words, not markup: no HTML, no links, no table cell ends, no mention of a user."""
    text = one_line(text).replace("&", "&amp;").replace("<", "&lt;")
    return _SPECIAL.sub(r"\\\1", text).replace("@", "&#64;").replace("://", ":&#47;/")


def _verdicts(document: Document) -> list[str]:
    names = workloads(arch for _, arch in every_arch(document))
    rows = [["series", "arch", "status", *map(escape, names)]]
    for name, arch in every_arch(document):
        rows.append([escape(name), escape(arch.arch), _status(name, arch), *(_cell(arch, w) for w in names)])
    return _table(rows)


def _status(series: str, arch: ArchDoc) -> str:
    if arch.status is Status.PASSED:
        return str(arch.status)
    found = arch_failures(series, arch)
    reason = f"{found[0].stage}: {found[0].reason}" if found else arch.reason
    return f"**{arch.status}**: {escape(reason)}" if reason else f"**{arch.status}**"


def _cell(arch: ArchDoc, workload: str) -> str:
    return "<br>".join(f"{change(c)} {c.verdict}" for c in primaries(arch, workload)) or "-"


def _failure(failure: Failure) -> list[str]:
    lines = [f"### {failure.stage} {failure.status}: {escape(failure.subject)}", "", escape(failure.reason), ""]
    if failure.log_tail:
        lines += _fence(tail(failure.log_tail))
    if failure.log:
        lines += [f"Log: {escape(failure.log)}", ""]
    if failure.reproduce:
        lines += ["Reproduce:", "", *_fence([one_line(failure.reproduce)])]
    return lines


def _asked(document: Document) -> list[str]:
    """A build after every patch, and checkers' findings: where that was asked for."""
    lines: list[str] = []
    for name, arch in every_arch(document):
        found = list(all_lines(arch.each, arch.checks))
        if found:
            lines += [f"### {escape(name)} on {escape(arch.arch)}: patches and checks", "", *_fence(found)]
    return lines


def _listed(title: str, texts: list[str]) -> list[str]:
    return [f"### {title}", "", *(f"- {escape(text)}" for text in texts), ""] if texts else []


def _claims(document: Document) -> list[str]:
    """What the patches' texts claim beside what was measured: one table a series and architecture."""
    lines: list[str] = []
    head = ["claim", "before", "after", "claimed %", "ours", "measured %", "interval %", "verdict", "why"]
    for series in document.series:
        for arch in series.arches:
            found = claims(series, arch)
            rows = [[*_claim(claim)] for claim in found]
            if rows:
                title = f"### Claims of {escape(series.name)} on {escape(arch.arch)}: {summary(found)}"
                lines += [title, "", *_table([head, *rows]), "", f"*{escape(WORTH)}*", ""]
    return lines


def _claim(claim: JudgedClaimDoc) -> Iterator[str]:
    yield escape(claim.name or claim.text)
    yield from (escape(figure_text(claim, which)) for which in ("before", "after"))
    yield escape(claimed_text(claim))
    yield escape(where_text(claim) + (f" (guessed from {claim.guessed})" if claim.guessed else "")) or "-"
    yield measured_text(claim)
    yield interval_text(claim)
    yield str(claim.agreement)
    yield escape("; ".join(filter(None, (claim.reason, claim.note))))


def _details(document: Document) -> list[str]:
    rows = [["series", "arch", "workload", "case", "metric", "change %", "interval %", "p adj", "verdict"]]
    for name, arch in every_arch(document):
        for c in (*primaries(arch), *cases(arch)):
            words = [name, arch.arch, c.workload, c.case, c.metric]
            figures = [percent(c.change_percent), interval(c.ci_percent), probability(c.p_adjusted), str(c.verdict)]
            rows.append([*map(escape, words), *figures])
    if len(rows) == 1:
        return []
    return ["<details><summary>Figures</summary>", "", *_table(rows), "", "</details>", ""]


def _table(rows: list[list[str]]) -> list[str]:
    head, *body = rows
    return [_line(head), _line(["---"] * len(head)), *map(_line, body)]


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _fence(lines: list[str]) -> list[str]:
    """A code block whose fence is longer than any run of backticks in it."""
    longest = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}text", *lines, fence, ""]
