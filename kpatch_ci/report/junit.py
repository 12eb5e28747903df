# SPDX-License-Identifier: GPL-2.0-or-later
"""junit.xml for CI: one suite a series and architecture, one case a stage, a primary figure, and a workload's case.

junit-xml's quirks, handled here: it drops a failure without message and output (there is always a message), leaves out
an id of 0 (they are texts), and writes what Jenkins' schema refuses: ``disabled``, and times of more than three decimals.
So its elements are taken, mended, and put into a document here; texts are cleaned of what XML forbids before.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from xml.etree import ElementTree as ET

from junit_xml import TestCase, TestSuite

from kpatch_ci.model.result import RunResult
from kpatch_ci.model.status import Status, Verdict
from kpatch_ci.report.checks import check_line, finding_lines, warning_line
from kpatch_ci.report.clean import one_line, printable, tail
from kpatch_ci.report.document import as_document
from kpatch_ci.report.failures import arch_failures, boot_reason, build_reason, once_reason, proof_reason
from kpatch_ci.report.hosts import host_line
from kpatch_ci.report.parts import CheckDoc
from kpatch_ci.report.proofs import proven
from kpatch_ci.report.schema import ArchDoc, ComparisonDoc, Document, OnceDoc, ReplicateDoc
from kpatch_ci.report.view import BAD, applied, cases, every_arch, figure, hunks, mean, primaries, sentence

TAIL = 100
"""Log lines inside a failure."""
_VERDICT_STATUS = {
    Verdict.REGRESSED: Status.FAILED,
    Verdict.FAILED: Status.FAILED,
    Verdict.ERROR: Status.ERROR,
    Verdict.SKIPPED: Status.SKIPPED,
}


def to_junit(source: RunResult | Document) -> str:
    """The run as JUnit XML. A regressed primary figure is a failure; a regressed case only says so in its output, for it explains."""
    document = as_document(source)
    suites = [_suite(document, name, arch, n) for n, (name, arch) in enumerate(every_arch(document))]
    root = ET.Element("testsuites", name="kpatch-ci")
    root.extend(_mended(s.build_xml_doc()) for s in suites)
    for count in ("tests", "failures", "errors"):
        root.set(count, str(sum(int(s.get(count, "0")) for s in root)))
    root.set("time", f"{sum(float(s.get('time', '0')) for s in root):.3f}")
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _mended(suite: ET.Element) -> ET.Element:
    suite.attrib.pop("disabled", None)
    for element in suite.iter():
        if "time" in element.attrib:
            element.set("time", f"{float(element.attrib['time']):.3f}")
    return suite


def _suite(document: Document, series: str, arch: ArchDoc, number: int) -> TestSuite:
    name = f"{series}.{arch.arch}"
    tests = list(_cases(name, series, arch))
    properties = {
        "run_id": document.run_id,
        "mode": str(document.mode),
        "profile": document.profile,
        "machine": arch.machine,
        "tree": document.tree.get("label", ""),
        "tree_id": document.tree.get("tree_id", ""),
        "reproduce": arch.reproduce or document.command,
    }
    if document.hosts:
        properties["hosts"] = host_line(document)
    cleaned = {key: one_line(value) for key, value in properties.items()}
    return TestSuite(one_line(name), tests, id=str(number), timestamp=_timestamp(document.started), properties=cleaned)


def _timestamp(started: str) -> str | None:
    """ISO 8601 to the second and without offset: the schema takes nothing else."""
    try:
        return datetime.fromisoformat(started).replace(microsecond=0, tzinfo=None).isoformat()
    except ValueError:
        return None


def _cases(suite: str, series: str, arch: ArchDoc) -> Iterator[TestCase]:
    tests = [_apply(suite, arch), _build(suite, arch, "baseline"), _build(suite, arch, "patched"), _proof(suite, arch)]
    tests += [*_each(suite, arch), *(_check(suite, c) for c in arch.checks)]
    tests += [_boot(suite, arch, "baseline"), _boot(suite, arch, "patched")]
    tests += [_once(suite, one) for one in arch.lost_once]
    tests += [_figure(suite, arch, c) for c in (*primaries(arch), *cases(arch))]
    yield from tests
    if arch.status in BAD and not any(t.is_failure() or t.is_error() for t in tests):
        reason = arch.reason or "; ".join(f.reason for f in arch_failures(series, arch))
        yield _case(suite, "verdict", arch.status, reason)


def _case(
    suite: str, name: str, status: Status, reason: str, *, output: str = "", log_tail: str = "", seconds: float = 0.0
) -> TestCase:
    case = TestCase(one_line(name), classname=one_line(suite), elapsed_sec=seconds, stdout=printable(output) or None)
    message = one_line(reason) or f"{name} {status}"
    text = "\n".join(tail(log_tail, TAIL)) or message
    if status is Status.FAILED:
        case.add_failure_info(message, text, "failed")
    elif status is Status.ERROR:
        case.add_error_info(message, text, "error")
    elif status is Status.SKIPPED:
        case.add_skipped_info(message)
    return case


def _apply(suite: str, arch: ArchDoc) -> TestCase:
    apply = arch.apply
    return _case(suite, "apply", apply.status, apply.reason, output=applied(apply), log_tail=hunks(apply))


def _build(suite: str, arch: ArchDoc, arm: str) -> TestCase:
    build = arch.build.baseline if arm == "baseline" else arch.build.patched
    said = [f"{build.objects} objects compiled" + (", reused" if build.cached else "")]
    said += [f"new warning: {w.path}:{w.line}: {w.text} {w.option}" for w in build.new_warnings]
    said += [f"log: {build.log}"] if build.log else []
    reason = build_reason(build) if build.status in BAD else build.reason or "a prerequisite failed"
    output = "\n".join(said) if build.status is not Status.SKIPPED else ""
    return _case(
        suite,
        f"build.{arm}",
        build.status,
        reason,
        output=output,
        log_tail=build.log_tail,
        seconds=0.0 if build.cached else build.seconds,
    )


def _each(suite: str, arch: ArchDoc) -> Iterator[TestCase]:
    """A case a patch, where a build after every one was asked for."""
    for patch in arch.each.patches if arch.each else ():
        said = [f"{patch.objects} objects compiled" + (", reused" if patch.cached else "")]
        said += [f"new {warning_line(w)}" for w in patch.new_warnings]
        reason = f"does not build: {patch.reason}"
        text = "\n".join([*map(warning_line, patch.errors), patch.log_tail])
        name = f"each.{patch.number} {patch.subject}"
        seconds = 0.0 if patch.cached else patch.seconds
        output = "\n".join(said)
        yield _case(suite, name, patch.status, reason, output=output, log_tail=text, seconds=seconds)


def _check(suite: str, check: CheckDoc) -> TestCase:
    """What a checker says; its findings are output, no failure."""
    said = "\n".join([check_line(check), *finding_lines(check)])
    seconds = 0.0 if check.cached else check.seconds
    name = f"check.{check.checker}"
    return _case(suite, name, check.status, check.reason, output=said, log_tail=check.log_tail, seconds=seconds)


def _proof(suite: str, arch: ArchDoc) -> TestCase:
    if not arch.proofs:
        built = arch.build.patched.status is Status.PASSED
        reason = "the series names nothing that it adds" if built else "a prerequisite failed"
        return _case(suite, "proof", Status.SKIPPED, reason)
    said = "\n".join(f"{p.kind} {p.name}: {proven(p)}" for p in arch.proofs)
    status = Status.FAILED if any(p.broken for p in arch.proofs) else Status.PASSED
    return _case(suite, "proof", status, proof_reason(arch), output=said, log_tail=said)


def _boot(suite: str, arch: ArchDoc, arm: str) -> TestCase:
    boot = arch.boot.baseline if arm == "baseline" else arch.boot.patched
    bad = [b for b in boot.boots if b.status in BAD]
    reason = boot_reason(boot) if boot.status in BAD else boot.reason or "a prerequisite failed"
    said = "\n".join(f"boot seed {b.boot_seed}: {b.status} {b.reason} {b.log}" for b in boot.boots)
    text = bad[0].log_tail if bad else ""
    return _case(
        suite,
        f"boot.{arm}",
        boot.status,
        reason,
        output=said,
        log_tail=text,
        seconds=sum(b.seconds for b in boot.boots if not b.cached),
    )


def _once(suite: str, one: OnceDoc) -> TestCase:
    """A guest that was lost and not when booted again: an error, for it is neither a pass nor proven to be the patch."""
    name = f"once.{one.arm} {one.what} seed {one.seed}"
    return _case(suite, name, Status.ERROR, once_reason(one), log_tail=one.log_tail)


def _figure(suite: str, arch: ArchDoc, comparison: ComparisonDoc) -> TestCase:
    c = comparison
    name = f"{c.workload}.{c.metric}" + ("" if c.primary else f".{c.case}")
    status = _VERDICT_STATUS.get(c.verdict, Status.PASSED)
    if c.verdict is Verdict.REGRESSED and not c.primary:
        status = Status.PASSED
    said = f"{sentence(c)}\nbaseline {figure(mean(c.baseline))} {c.unit}, patched {figure(mean(c.patched))} {c.unit}"
    text = "\n".join(
        line for r in _lost(arch, c) for line in (f"seed {r.seed}: {r.reason}", *tail(r.log_tail, TAIL // 2))
    )
    return _case(suite, name, status, sentence(c), output=f"{said}, {len(c.seeds)} pairs", log_tail=text or said)


def _lost(arch: ArchDoc, c: ComparisonDoc) -> list[ReplicateDoc]:
    """The first replicates that this figure is missing, of either arm."""
    runs = (*arch.replicates.baseline.failures, *arch.replicates.patched.failures)
    return [r for r in runs if r.workload == c.workload and c.case in (r.case, "all")][:2]
