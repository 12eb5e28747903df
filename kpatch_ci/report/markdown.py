# SPDX-License-Identifier: GPL-2.0-or-later
"""report.md: for a CI job's summary or a merge request: the verdict table first, then what failed; the rest is folded."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from kpatch_ci.model.result import RunResult
from kpatch_ci.model.status import Status, Verdict
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
from kpatch_ci.report.hosts import host_line, lost_hosts
from kpatch_ci.report.schema import ArchDoc, ComparisonDoc, Document
from kpatch_ci.report.setup import setup_pairs
from kpatch_ci.report.view import (
    cases,
    counters,
    every_arch,
    figure,
    interval,
    magnitude,
    mean,
    measured,
    mode_notes,
    percent,
    primaries,
    probability,
    table_note,
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
    lines += ["", *_verdicts(document), "", table_note(document), ""]
    for failure in failures(document):
        lines += _failure(failure)
    lines += _asked(document)
    lines += _listed("Look closely", [text for series in document.series for text in series.flags])
    lines += _listed("Tested with", [text for series in document.series for text in series.chosen])
    lines += _claims(document)
    lines += _details(document)
    lines += _setups(document)
    lines += _listed("Machines", [text for text in (host_line(document), *lost_hosts(document)) if text])
    lines += _folded("What the figures are worth", [line for note in mode_notes(document) for line in (note, "")])
    if document.command:
        lines += ["Reproduce:", "", *_fence([one_line(document.command)])]
    return "\n".join(lines) + "\n"


def escape(text: str) -> str:
    """``text`` as words, not markup: no HTML, no links, no table cell ends, no mention of a user."""
    text = one_line(text).replace("&", "&amp;").replace("<", "&lt;")
    return _SPECIAL.sub(r"\\\1", text).replace("@", "&#64;").replace("://", ":&#47;/")


def _verdicts(document: Document) -> list[str]:
    """A row a series, architecture and workload, and one for what stopped or failed an architecture."""
    pairs = list(every_arch(document))
    mde = any(c.mde_percent is not None for _, arch in pairs for c in primaries(arch))
    rows = [["series", "arch", "workload", *_heads(mde=mde)]]
    for name, arch in pairs:
        where = [escape(name), escape(arch.arch)]
        stopped = _stopped(name, arch)
        rows += [[*where, escape(c.workload), *_figures(c, mde=mde)] for c in measured(arch)]
        if not measured(arch):
            stopped = stopped or str(arch.status)
        if stopped:
            rows.append([*where, *["-"] * (len(rows[0]) - 3), stopped])
    for series in document.series:
        if not series.arches:
            rows.append([escape(series.name), *["-"] * (len(rows[0]) - 2), f"**{series.status}**"])
    return _table(rows)


def _stopped(series: str, arch: ArchDoc) -> str:
    """What went wrong beside a verdict, with its reason; empty where nothing did."""
    if arch.status is Status.PASSED:
        return ""
    found = [f for f in arch_failures(series, arch) if f.stage != "verdict"]
    if not found and any(c.verdict is Verdict.REGRESSED for c in primaries(arch)):
        return ""
    reason = f"{found[0].stage}: {found[0].reason}" if found else arch.reason
    return f"**{arch.status}**: {escape(reason)}" if reason else f"**{arch.status}**"


def _heads(*, mde: bool) -> list[str]:
    return ["change %", "interval %", "p adj", *(["MDE %"] if mde else []), "verdict"]


def _figures(c: ComparisonDoc, *, mde: bool) -> list[str]:
    """Change, interval, adjusted p, minimum detectable effect (empty where it is not known) and verdict."""
    effect = [magnitude(c.mde_percent)] if mde else []
    verdict = f"**{c.verdict}**" if c.verdict in (Verdict.IMPROVED, Verdict.REGRESSED) else str(c.verdict)
    return [percent(c.change_percent), interval(c.ci_percent), probability(c.p_adjusted), *effect, verdict]


def _failure(failure: Failure) -> list[str]:
    lines = [f"### {failure.stage} {failure.status}: {escape(failure.subject)}", "", escape(failure.reason), ""]
    inside = _fence(tail(failure.log_tail)) if failure.log_tail else []
    inside += [f"Log: {escape(failure.log)}", ""] if failure.log else []
    inside += ["Reproduce:", "", *_fence([one_line(failure.reproduce)])] if failure.reproduce else []
    return [*lines, *(_folded("Log and command", inside) if inside else [])]


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
    """Cases and counters, folded, an architecture at a time."""
    lines: list[str] = []
    for name, arch in every_arch(document):
        found = [*primaries(arch), *cases(arch), *counters(arch)]
        if found:
            mde = any(c.mde_percent is not None for c in found)
            rows = [["workload", "case", "metric", "baseline", "patched", *_heads(mde=mde)]]
            for c in found:
                means = (figure(mean(c.baseline)), figure(mean(c.patched)))
                rows.append([*map(escape, (c.workload, c.case, c.metric)), *means, *_figures(c, mde=mde)])
            lines += _folded(f"{name} on {arch.arch}: cases and counters", _table(rows))
    return lines


def _setups(document: Document) -> list[str]:
    """What each series was measured with, folded."""
    lines = []
    for name, arch in every_arch(document):
        told = "; ".join(f"{key} {value}" for key, value in setup_pairs(arch, document) if value)
        lines.append(f"- {escape(name)} on {escape(arch.arch)}: {escape(told)}")
    return _folded("Measured with", lines) if lines else []


def _folded(title: str, lines: list[str]) -> list[str]:
    """``title`` is plain text: a summary is HTML, in which Markdown's escapes would be shown."""
    shown = html.escape(one_line(title)).replace("@", "&#64;")
    return [f"<details><summary>{shown}</summary>", "", *lines, "", "</details>", ""]


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
