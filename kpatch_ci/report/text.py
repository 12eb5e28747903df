# SPDX-License-Identifier: GPL-2.0-or-later
"""report.txt: plain ASCII, at most 72 columns, made to be pasted into a reply on a mailing list."""

from __future__ import annotations

from kpatch_ci.model.result import RunResult
from kpatch_ci.model.status import Status
from kpatch_ci.report.checks import check_line, each_line, finding_lines, patch_lines
from kpatch_ci.report.claims import claims, text_lines
from kpatch_ci.report.clean import folded, one_line, plain_ascii, quoted
from kpatch_ci.report.diff import flatten
from kpatch_ci.report.document import as_document
from kpatch_ci.report.failures import Failure, failures
from kpatch_ci.report.proofs import added, differing, proven
from kpatch_ci.report.running import shift_lines
from kpatch_ci.report.schema import ArchDoc, ArmBootDoc, BuildDoc, ComparisonDoc, Document, SeriesDoc
from kpatch_ci.report.view import (
    SIGN_NOTE,
    applied,
    cases,
    change,
    counters,
    every_arch,
    figure,
    interval,
    mean,
    migration_rates,
    mode_notes,
    percent,
    primaries,
    probability,
    sample_count,
    threshold,
    workloads,
)

WIDTH = 72
LABEL = 12
"""Columns of a case's label; a longer one has a line to itself."""
MAX_WARNINGS = 10
LABELS = {"checkpatch": "mails"}
"""Checkers whose name is too long for its column."""
_HEAD = f"{'':{LABEL}} {'baseline':>9} {'patched':>9} {'chg %':>6} {'CI %':>12} {'p adj':>6} verdict"


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
    lines = [
        *_fold(
            f"kpatch-ci: {len(document.series)} series on {tree.get('label', 'an unnamed tree')}{release}: {document.status}"
        ),
        "=" * WIDTH,
        *_pair("run", f"{document.run_id}, {document.started}, {document.seconds:.0f} s"),
        *_pair("tree", ", ".join(f"{k} {v}" for k, v in tree.items())),
        *_pair("mode", f"{document.mode}, profile {document.profile or 'default'}"),
        "",
        "Verdicts",
    ]
    for name, arch in every_arch(document):
        lines += _fold(f"{name}, {arch.arch}: {_verdict(arch)}", "  ", "      ")
    for series in document.series:
        lines += [] if series.arches else _fold(f"{series.name}: {series.status}, on no architecture", "  ", "      ")
    return [*lines, ""]


def _verdict(arch: ArchDoc) -> str:
    heads = [f"{c.workload} {change(c)} ({c.verdict})" for c in primaries(arch)]
    reason = f" ({one_line(arch.reason)})" if arch.reason else ""
    return f"{arch.status}{reason}" + (f": {', '.join(heads)}" if heads else "")


def _series(series: SeriesDoc, document: Document) -> list[str]:
    lines: list[str] = []
    if series.chosen or series.flags:
        lines += ["-" * WIDTH, *_fold(f"{series.name}: {series.title}")]
        lines += [line for text in (*series.flags, *series.chosen) for line in _fold(text, "  ", "    ")]
    for arch in series.arches:
        lines += ["-" * WIDTH, *_fold(f"{series.name} on {arch.arch}: {arch.status}")]
        lines += _fold(series.title, "  ")
        lines += _pair("apply", applied(arch.apply))
        lines += _pair("build", _build(arch))
        for warning in arch.build.patched.new_warnings[:MAX_WARNINGS]:
            lines += _fold(f"{warning.path}:{warning.line}: {warning.text} {warning.option}", "    ", "      ")
        lines += _asked(arch)
        named = [p for p in arch.proofs if not p.derived]
        lines += _pair("proof", "; ".join(f"{p.kind} {p.name}: {proven(p)}" for p in named))
        lines += _pair("adds", added(arch))
        lines += _pair("objects", differing(arch))
        lines += _pair(
            "unused",
            f"not compiled under this configuration: {', '.join(arch.not_compiled)}" if arch.not_compiled else "",
        )
        lines += _pair(
            "config", f"differs between the arms: {'; '.join(arch.config_changes[:8])}" if arch.config_changes else ""
        )
        lines += _pair("machine", arch.machine)
        lines += _pair("boot", f"baseline {_boot(arch.boot.baseline)}; patched {_boot(arch.boot.patched)}")
        for complaint in arch.new_complaints[:MAX_WARNINGS]:
            lines += _fold(f"new on the console: {complaint}", "    ", "      ")
        lines += _pair("arms", f"{series.arms[0]} against {series.arms[1]}" if series.variant else "")
        lines += _pair("notes", series.notes)
        lines += _tables(arch, document)
        lines += text_lines(claims(series, arch))
        lines += _reproduce(arch.reproduce)
        lines.append("")
    return lines


def _asked(arch: ArchDoc) -> list[str]:
    """A build after every patch, and what checkers say: where that was asked for."""
    lines: list[str] = []
    if arch.each is not None:
        lines += _pair("each", each_line(arch.each))
        lines += [row for line in patch_lines(arch.each) for row in _indented(line)]
    for check in arch.checks:
        lines += _pair(LABELS.get(check.checker, check.checker), check_line(check))
        lines += [row for line in finding_lines(check) for row in _indented(line)]
    return lines


def _indented(line: str) -> list[str]:
    deeper = " " * (len(line) - len(line.lstrip()))
    return _fold(line, f"    {deeper}", f"      {deeper}")


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


def _tables(arch: ArchDoc, document: Document) -> list[str]:
    lines: list[str] = []
    for name in workloads([arch]):
        rows = [*primaries(arch, name), *cases(arch, name)]
        practical = threshold(document, name)
        limit = f", threshold {practical:g} %" if practical is not None else ""
        if rows:
            c = rows[0]
            lines += [
                "",
                *_fold(f"{name}: {c.metric} ({c.unit}), {c.better} is better, {sample_count(c)}{limit}", "", "  "),
                _HEAD,
            ]
            lines += [line for row in rows for line in _row(row.case, row)]
            lines += [line for row in rows if row.primary for line in _fold(row.reason, "  ")]
        explaining = counters(arch, name)
        if explaining:
            lines += ["", *_fold(f"{name}: counters", "", "  "), _HEAD]
            lines += [line for row in explaining for line in _row(f"{row.case} {row.metric}", row)]
        for case, before, after in migration_rates(arch, name):
            rate = f"{figure(before)} -> {figure(after)}"
            lines += _fold(f"{case}: migrations per 1000 context switches {rate}", "  ")
        lines += [line for shift in shift_lines(arch, name) for line in _fold(shift, "  ")]
    methods = sorted({c.ci_method for c in arch.comparisons if c.ci_method})
    return [*lines, "", *_fold(f"CI: {', '.join(methods)}.")] if methods else lines


def _row(label: str, c: ComparisonDoc) -> list[str]:
    figures = (
        f"{figure(mean(c.baseline)):>9} {figure(mean(c.patched)):>9} {percent(c.change_percent):>6}"
        f" {interval(c.ci_percent):>12} {probability(c.p_adjusted):>6} {c.verdict}"
    )
    label = plain_ascii(one_line(label))
    above = _fold(label) if len(label) > LABEL else []
    return [*above, f"{'' if above else label:{LABEL}} {figures}"]


def _failures(found: list[Failure]) -> list[str]:
    lines: list[str] = []
    for failure in found:
        lines += ["-" * WIDTH, *_fold(f"{failure.stage} {failure.status}: {failure.subject}")]
        lines += _fold(failure.reason, "  ")
        lines += quoted(plain_ascii(failure.log_tail), WIDTH, "  | ")
        lines += _pair("log", failure.log)
        lines += [*_reproduce(failure.reproduce), ""]
    return lines


def _footer(document: Document) -> list[str]:
    lines = ["-" * WIDTH, *_fold(SIGN_NOTE), *(line for note in mode_notes(document) for line in _fold(note)), ""]
    lines += ["Fingerprint"]
    for key, value in flatten(document.fingerprint).items():
        lines += _fold(f"{key}: {value}", "  ", "      ")
    return [*lines, "", "To reproduce", *_command(document.command)]


def _reproduce(command: str) -> list[str]:
    return ["  reproduce:", *_command(command)] if command else []


def _command(command: str) -> list[str]:
    """A command, its lines joined by backslashes so that it can be pasted. A word longer than a line is left whole."""
    lines, line = [], "    "
    for word in plain_ascii(one_line(command)).split(" "):
        if line.strip() and len(line) + len(word) + 3 > WIDTH:
            lines.append(f"{line.rstrip()} \\")
            line = "        "
        line += f"{word} "
    return [*lines, line.rstrip()] if line.strip() else lines


def _pair(name: str, value: str) -> list[str]:
    return _fold(value, f"  {name + ':':<9}", " " * 11) if value else []


def _fold(text: str, indent: str = "", hanging: str | None = None) -> list[str]:
    return folded(plain_ascii(text), WIDTH, indent, hanging)
