# SPDX-License-Identifier: GPL-2.0-or-later
"""report.txt: plain ASCII, at most 72 columns, made to be pasted into a reply on a mailing list."""

from __future__ import annotations

from kpatch_ci.model.result import RunResult
from kpatch_ci.model.status import Status
from kpatch_ci.report.checks import check_line, each_line, finding_lines, patch_lines
from kpatch_ci.report.claims import claims, text_lines
from kpatch_ci.report.clean import plain_ascii, quoted
from kpatch_ci.report.diff import flatten
from kpatch_ci.report.document import as_document
from kpatch_ci.report.failures import Failure, failures
from kpatch_ci.report.hosts import host_line, lost_hosts
from kpatch_ci.report.lines import WIDTH, fold, indented, pair, pasteable, reproduce
from kpatch_ci.report.proofs import added, differing, proven
from kpatch_ci.report.schema import ArchDoc, ArmBootDoc, BuildDoc, Document, SeriesDoc
from kpatch_ci.report.setup import setup_pairs
from kpatch_ci.report.text_figures import figure_lines, verdict_lines
from kpatch_ci.report.view import applied, mode_notes, table_note

ROW_NOTE = (
    "A percentage in brackets or asterisks compares the two figures of its row; changes, intervals and verdicts are those of"
    " the tests (docs/statistics.md)."
)
MAX_WARNINGS = 10
LABELS = {"checkpatch": "mails"}
"""Checkers whose name is too long for its column."""


def to_text(source: RunResult | Document) -> str:
    """The whole report, ending in a newline."""
    document = as_document(source)
    lines = _header(document)
    for series in document.series:
        lines += _series(series, document)
    lines += _failures(failures(document))
    lines += _footer(document)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _header(document: Document) -> list[str]:
    tree = document.tree
    release = f", {tree['release']}" if tree.get("release") else ""
    what = document.series[0].name if len(document.series) == 1 else f"{len(document.series)} series"
    return [
        *fold(f"kpatch-ci: {what} on {tree.get('label', 'an unnamed tree')}{release}: {document.status}"),
        "=" * WIDTH,
        *verdict_lines(document),
        "",
        *pair("run", f"{document.run_id}, {document.started}, {document.seconds:.0f} s"),
        *pair("tree", ", ".join(f"{k} {v}" for k, v in tree.items())),
        *pair("mode", f"{document.mode}, profile {document.profile or 'default'}"),
        *pair("hosts", host_line(document)),
        *(line for lost in lost_hosts(document) for line in fold(lost)),
        "",
    ]


def _series(series: SeriesDoc, document: Document) -> list[str]:
    lines: list[str] = []
    if series.chosen or series.flags:
        lines += ["-" * WIDTH, *fold(f"{series.name}: {series.title}")]
        lines += [line for text in (*series.flags, *series.chosen) for line in fold(text, "  ", "    ")]
    for arch in series.arches:
        lines += ["-" * WIDTH, *fold(f"{series.name} on {arch.arch}: {arch.status}")]
        lines += fold(series.title, "  ")
        lines += _compared(series, arch)
        lines += figure_lines(series, arch, document)
        lines += text_lines(claims(series, arch))
        lines += _circumstances(series, arch, document)
        lines += reproduce(arch.reproduce)
        lines.append("")
    return lines


def _compared(series: SeriesDoc, arch: ArchDoc) -> list[str]:
    """What a reader has to know before the figures."""
    lines = pair("arms", f"{series.arms[0]} against {series.arms[1]}" if series.variant else "")
    lines += pair("apply", applied(arch.apply))
    lines += pair("build", _build(arch))
    for warning in arch.build.patched.new_warnings[:MAX_WARNINGS]:
        lines += fold(f"{warning.path}:{warning.line}: {warning.text} {warning.option}", "    ", "      ")
    lines += pair("boot", f"baseline {_boot(arch.boot.baseline)}; patched {_boot(arch.boot.patched)}")
    for complaint in arch.new_complaints[:MAX_WARNINGS]:
        lines += fold(f"new on the console: {complaint}", "    ", "      ")
    differences = "; ".join(arch.config_changes[:8])
    return lines + pair("config", f"differs between the arms: {differences}" if differences else "")


def _circumstances(series: SeriesDoc, arch: ArchDoc, document: Document) -> list[str]:
    """What the figures were measured with, and what else was found."""
    lines = [line for name, value in setup_pairs(arch, document) for line in pair(name, value)]
    named = [p for p in arch.proofs if not p.derived]
    lines += pair("proof", "; ".join(f"{p.kind} {p.name}: {proven(p)}" for p in named))
    lines += pair("adds", added(arch))
    lines += pair("objects", differing(arch))
    left_out = ", ".join(arch.not_compiled)
    lines += pair("unused", f"not compiled under this configuration: {left_out}" if left_out else "")
    return lines + _asked(arch) + pair("notes", series.notes)


def _asked(arch: ArchDoc) -> list[str]:
    """A build after every patch, and what checkers say: where that was asked for."""
    lines: list[str] = []
    if arch.each is not None:
        lines += pair("each", each_line(arch.each))
        lines += [row for line in patch_lines(arch.each) for row in indented(line)]
    for check in arch.checks:
        lines += pair(LABELS.get(check.checker, check.checker), check_line(check))
        lines += [row for line in finding_lines(check) for row in indented(line)]
    return lines


def _build(arch: ArchDoc) -> str:
    new = len(arch.build.patched.new_warnings)
    warnings = f"; {new} new warnings" if arch.build.patched.status is Status.PASSED else ""
    return f"baseline {_arm_build(arch.build.baseline)}; patched {_arm_build(arch.build.patched)}{warnings}"


def _arm_build(build: BuildDoc) -> str:
    if build.status is not Status.PASSED:
        return f"{build.status}"
    return "reused" if build.cached else f"{build.objects} objects in {build.seconds:.0f} s"


def _boot(boot: ArmBootDoc) -> str:
    if boot.status is Status.SKIPPED:
        return "skipped"
    good = sum(b.status is Status.PASSED for b in boot.boots)
    cpus = f", {boot.cpus} CPUs" if boot.cpus else ""
    differences = f", {'; '.join(boot.differences)}" if boot.differences else ""
    return f"{boot.status} ({good} of {len(boot.boots)} boots{cpus}{differences})"


def _failures(found: list[Failure]) -> list[str]:
    lines: list[str] = []
    for failure in found:
        lines += ["-" * WIDTH, *fold(f"{failure.stage} {failure.status}: {failure.subject}")]
        lines += fold(failure.reason, "  ")
        lines += quoted(plain_ascii(failure.log_tail), WIDTH, "  | ")
        lines += pair("log", failure.log)
        lines += [*reproduce(failure.reproduce), ""]
    return lines


def _footer(document: Document) -> list[str]:
    lines = [
        "-" * WIDTH,
        *fold(f"{table_note(document)} {ROW_NOTE}"),
        *(line for note in mode_notes(document) for line in fold(note)),
        "",
    ]
    lines += ["Fingerprint"]
    for key, value in flatten(document.fingerprint).items():
        lines += fold(f"{key}: {value}", "  ", "      ")
    return [*lines, "", "To reproduce", *pasteable(document.command)]
