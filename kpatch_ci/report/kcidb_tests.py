# SPDX-License-Identifier: GPL-2.0-or-later
"""What a kernel was put through, as KCIDB's tests: boot, proof, builds after each patch, checkers, figures, and the verdict on all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from kpatch_ci.model.status import Status, Verdict
from kpatch_ci.report.checks import check_line, each_line, finding_lines, patch_lines
from kpatch_ci.report.failures import arch_failures, boot_reason, once_reason, proof_reason
from kpatch_ci.report.proofs import proven
from kpatch_ci.report.schema import ArchDoc, ArmBootDoc, ComparisonDoc
from kpatch_ci.report.view import BAD, mean, primaries, sentence

STATUS = {Status.PASSED: "PASS", Status.FAILED: "FAIL", Status.ERROR: "MISS", Status.SKIPPED: "SKIP"}
VERDICT = {
    Verdict.IMPROVED: "PASS",
    Verdict.NO_CHANGE: "PASS",
    Verdict.REGRESSED: "FAIL",
    Verdict.INCONCLUSIVE: "DONE",
    Verdict.FAILED: "FAIL",
    Verdict.ERROR: "ERROR",
    Verdict.SKIPPED: "SKIP",
}
"""Of a primary figure. DONE is KCIDB's word for a measurement that says nothing of whether the code is right."""
FIGURES = (
    "workload case metric unit better mode primary verdict change_percent ci_percent ci_method p_value p_adjusted mde_percent"
    " units reason"
)

Json = dict[str, Any]


def tests(arch: ArchDoc, arm: str) -> Iterator[Json]:
    """Those of one arm's kernel. ``name``: the last part of the identifier, where the path is not enough."""
    for test in (_boot(arch, arm), *(_of_series(arch) if arm == "patched" else ())):
        yield {**test, "machine": arch.machine}


def _of_series(arch: ArchDoc) -> Iterator[Json]:
    """Tests of the series: they are the patched kernel's."""
    if arch.proofs:
        status = Status.FAILED if any(p.broken for p in arch.proofs) else Status.PASSED
        said = {"said": [f"{p.kind} {p.name}: {proven(p)}" for p in arch.proofs]}
        yield {"path": "proof", "status": STATUS[status], "reason": proof_reason(arch), "misc": said}
    if arch.each:
        lines = list(patch_lines(arch.each))
        misc = {"patches": len(arch.each.patches), "first_break": arch.each.first_break, "said": lines}
        reason = each_line(arch.each) if arch.each.status in BAD else ""
        yield {"path": "each", "status": STATUS[arch.each.status], "reason": reason, "misc": misc}
    for check in arch.checks:
        status_text = "DONE" if check.status is Status.PASSED else STATUS[check.status]
        misc = {"said": [check_line(check), *finding_lines(check)], "findings": len(check.findings)}
        name = f"check.{check.checker}"
        path = f"check.{_node(check.checker)}"
        yield {"path": path, "name": name, "status": status_text, "reason": check.reason, "misc": misc} | {
            "log_tail": check.log_tail
        }
    for comparison in arch.comparisons:
        yield _figure(arch, comparison)
    reason = arch.reason or "; ".join(f.reason for f in arch_failures("", arch))
    once = [f"{one.arm} seed {one.seed}: {once_reason(one)}" for one in arch.lost_once]
    told = {"reproduce": arch.reproduce, **({"lost_once": once} if once else {})}
    yield {"path": "verdict", "status": STATUS[arch.status], "reason": reason, "misc": told}


def _boot(arch: ArchDoc, arm: str) -> Json:
    boot: ArmBootDoc = getattr(arch.boot, arm)
    bad = next((b for b in boot.boots if b.status in BAD), None)
    seeds = [{"boot_seed": b.boot_seed, "status": str(b.status), "reason": b.reason, "log": b.log} for b in boot.boots]
    misc = {"boots": seeds, "cpus": boot.cpus}
    found: Json = {"path": "boot", "status": STATUS[boot.status], "misc": misc}
    if boot.boots:
        found["duration"] = float(sum(b.seconds for b in boot.boots))
    if boot.status in BAD:
        found |= {"reason": boot_reason(boot), "log_tail": bad.log_tail if bad else ""}
    return found


def _figure(arch: ArchDoc, c: ComparisonDoc) -> Json:
    """A figure. A case or a counter that changed explains, and fails nothing: it is DONE."""
    status = VERDICT[c.verdict]
    if not c.primary and status in ("PASS", "FAIL") and c.verdict is not Verdict.FAILED:
        status = "DONE"
    head = next((p.metric for p in primaries(arch, c.workload)), c.metric)
    nodes = [c.workload, *([] if c.primary else c.case.split(",")), *([] if c.metric == head else [c.metric])]
    misc = {name: getattr(c, name) for name in FIGURES.split()}
    misc |= {"mode": str(c.mode), "verdict": str(c.verdict), "seeds": len(c.seeds)}
    misc |= {"baseline_mean": mean(c.baseline), "patched_mean": mean(c.patched)}
    found: Json = {"path": ".".join(map(_node, nodes)), "status": status, "misc": misc, "comment": sentence(c)}
    found["name"] = f"{c.workload}/{c.case}/{c.metric}"
    value = mean(c.patched)
    if value is not None and status in ("FAIL", "ERROR", "PASS", "DONE"):
        found["number"] = {"value": value, "unit": c.unit}
    if c.verdict in (Verdict.FAILED, Verdict.ERROR, Verdict.SKIPPED, Verdict.REGRESSED):
        found |= {"reason": sentence(c), "log_tail": _lost(arch, c)}
    return found


def _lost(arch: ArchDoc, c: ComparisonDoc) -> str:
    """What the replicates said that this figure is missing."""
    runs = (*arch.replicates.baseline.failures, *arch.replicates.patched.failures)
    mine = [r for r in runs if r.workload == c.workload and c.case in (r.case, "all")]
    return "\n".join(f"seed {r.seed}: {r.reason}\n{r.log_tail}" for r in mine[:2])


def _node(text: str) -> str:
    """A node of a path: the schema takes letters, digits, ``_`` and ``-``, so that ``groups=4`` becomes ``groups_4``."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", text) or "_"
