# SPDX-License-Identifier: GPL-2.0-or-later
"""From the values of a run's nodes to what the run found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kpatch_ci.config.load import Config
from kpatch_ci.guest.console import find_warnings
from kpatch_ci.kernel.additions import tree_additions
from kpatch_ci.kernel.diagnostics import introduced
from kpatch_ci.kernel.kconfig import parse_config
from kpatch_ci.kernel.outputs import config_changes
from kpatch_ci.kernel.prove import prove, prove_derived, prove_in_guest, prove_sources
from kpatch_ci.model.boot import BootResult
from kpatch_ci.model.build import BuildResult, Proof, Tree
from kpatch_ci.model.comparison import Comparison
from kpatch_ci.model.machine import Machine
from kpatch_ci.model.result import ArchResult, ArmResult, SeriesResult, worst
from kpatch_ci.model.series import Adds, ApplyResult, Arm, Contrast, Series
from kpatch_ci.model.status import Status, Verdict
from kpatch_ci.model.workload import Replicate, WorkloadPlan
from kpatch_ci.pipeline.again import lost_once, undecided
from kpatch_ci.pipeline.each import checks_of, each_of, judged
from kpatch_ci.pipeline.engine import Values
from kpatch_ci.pipeline.plan import plans_for
from kpatch_ci.pipeline.stagenames import OVER, apply_name, boot_name, build_name, run_name
from kpatch_ci.series.safety import FLAG
from kpatch_ci.stats.claims import judge_claims
from kpatch_ci.stats.compare import compare_series
from kpatch_ci.stats.precision import told
from kpatch_ci.workloads.table import WORKLOADS

Key = tuple[str, str, Any]


def assemble(
    config: Config, tree: Tree, series: Sequence[Series], values: Values, command: str
) -> tuple[SeriesResult, ...]:
    """Every series on every architecture, compared and judged. ``command`` is what reproduces it."""
    return tuple(_series(config, tree, one, values, command) for one in series)


Arms = dict[str, tuple[ArmResult | None, ArmResult | None]]


def compared(config: Config, series: Series, values: Values) -> tuple[Arms, dict[str, list[Comparison]]]:
    """By architecture: both arms, and their comparisons; none where there is nothing to compare."""
    plans = plans_for(series, config.workloads)
    first, second = series.arms
    arms: Arms = {
        m.arch: (_arm(config, m, first, plans, values), _arm(config, m, second, plans, values)) for m in config.machines
    }
    comparable = {
        arch: (_by_key(baseline), _by_key(patched))
        for arch, (baseline, patched) in arms.items()
        if baseline and patched and patched.boots and not _unchanged(series, baseline, patched)
    }
    metrics = {plan.kind: WORKLOADS[plan.kind].metrics for plan in plans}
    return arms, compare_series(comparable, plans, metrics, config.thresholds)


def _series(config: Config, tree: Tree, series: Series, values: Values, command: str) -> SeriesResult:
    first, second = series.arms
    arms, found = compared(config, series, values)
    judged = tuple(
        _arch(
            series,
            machine,
            values,
            arms[machine.arch],
            [_with_precision(c, config) for c in found.get(machine.arch, [])],
            tree=tree,
            command=command,
        )
        for machine in config.machines
    )
    limits = {plan.name: plan.threshold_percent for plan in config.workloads}
    arches = tuple(
        replace(one, claims=judge_claims(series.claims, one.arch, one.comparisons, limits)) for one in judged
    )
    return SeriesResult(
        name=series.name,
        title=series.title,
        notes=series.notes,
        arches=arches,
        variant=series.variant,
        arms=(first.label, second.label),
        claims=series.claims,
        chosen=series.chosen,
        flags=flags_of(series),
    )


def _with_precision(comparison: Comparison, config: Config) -> Comparison:
    said = told(comparison, config.precision) if config.precision and comparison.primary else ""
    return replace(comparison, reason=f"{comparison.reason}; {said}") if said else comparison


def flags_of(series: Series) -> tuple[str, ...]:
    """What intake flagged in its patches."""
    return tuple(note for patch in series.patches for note in patch.notes if note.startswith(FLAG))


def _arm(config: Config, machine: Machine, arm: Arm, plans: Sequence[WorkloadPlan], values: Values) -> ArmResult | None:
    build: BuildResult | None = values.get(build_name(machine.arch, arm.kernel))
    if build is None:
        return None
    seeds = config.seeds
    boots = [values.get(boot_name(machine.arch, arm.kernel, seed)) for seed in sorted({s.boot for s in seeds})]
    runs = [
        values.get(run_name(machine.arch, arm, plan.name, case.label, seed))
        for plan in plans
        for case in plan.cases
        for seed in seeds
    ]
    return ArmResult(
        build,
        tuple(b for b in boots if isinstance(b, BootResult)),
        tuple(r for r in runs if isinstance(r, Replicate)),
    )


def _by_key(arm: ArmResult) -> dict[Key, Replicate]:
    return {(r.workload, r.case, r.seed): r for r in arm.replicates}


def _unchanged(series: Series, baseline: ArmResult, patched: ArmResult) -> bool:
    """Whether the series leaves image and modules as they were: then there is nothing to measure."""
    if series.contrast is Contrast.SWITCHED:
        return False
    return bool(patched.build.kernel_digest) and patched.build.kernel_digest == baseline.build.kernel_digest


def _arch(
    series: Series,
    machine: Machine,
    values: Values,
    arms: tuple[ArmResult | None, ArmResult | None],
    compared: Sequence[Comparison],
    *,
    tree: Tree,
    command: str,
) -> ArchResult:
    applied: ApplyResult = values[apply_name(series.patched_kernel)]
    baseline, patched = arms
    proofs = _proofs(series.adds, tree, baseline, patched) if series.contrast is not Contrast.SWITCHED else ()
    ordered = (*(c for c in compared if c.primary), *(c for c in compared if not c.primary))
    each = each_of(values, machine.arch, series)
    checks = checks_of(values, machine.arch, series)
    status, reason = judged(*_judge(series, applied, arms, proofs, ordered), each, checks)
    warnings = introduced(patched.build.warnings, baseline.build.warnings) if baseline and patched else ()
    return ArchResult(
        arch=machine.arch,
        machine=machine.name,
        apply=applied,
        baseline=baseline,
        patched=patched,
        new_warnings=warnings,
        proofs=proofs,
        not_compiled=tuple(path for path, made in patched.build.compiled.items() if not made) if patched else (),
        new_complaints=_new_complaints(baseline, patched),
        lost_once=lost_once(baseline, patched),
        differing=patched.build.differing if patched and not series.base else None,
        config_changes=_config_changes(baseline, patched),
        each=each,
        checks=checks,
        comparisons=ordered,
        clusters={cluster.name: cluster.cpus for cluster in machine.clusters},
        status=status,
        reason=reason,
        reproduce=command,
    )


def _proofs(adds: Adds, tree: Tree, baseline: ArmResult | None, patched: ArmResult | None) -> tuple[Proof, ...]:
    if not (baseline and patched and baseline.build.artifact and patched.build.artifact):
        return ()
    in_image = prove(adds, baseline.build.artifact, patched.build.artifact)
    seen = prove_in_guest(adds, _facts(baseline), _facts(patched))
    better = {(p.kind, p.name): p for p in seen}
    named = tuple(better.get((p.kind, p.name), p) for p in in_image)
    added = tree_additions(tree.repo, baseline.build.tree_id, patched.build.tree_id)
    told = {p.name.rsplit("/", 1)[-1] for p in named}
    new = [one for one in added if one.name not in told]
    derived = prove_derived(new, baseline.build.artifact, patched.build.artifact)
    return (*named, *prove_sources(patched.build.compiled), *derived)


def _facts(arm: ArmResult) -> Mapping[str, Any]:
    return next((b.facts for b in arm.boots if b.status is Status.PASSED), {})


def _new_complaints(baseline: ArmResult | None, patched: ArmResult | None) -> tuple[str, ...]:
    if not (baseline and patched):
        return ()
    known = set(_complaints(baseline))
    return tuple(line for line in _complaints(patched) if line not in known)


def _complaints(arm: ArmResult) -> dict[str, None]:
    consoles = [b.console.read_text(errors="replace") for b in arm.boots if b.console and b.console.is_file()]
    return dict.fromkeys(line for text in consoles for line in find_warnings(text))


def _config_changes(baseline: ArmResult | None, patched: ArmResult | None) -> tuple[str, ...]:
    if not (baseline and patched and baseline.build.artifact and patched.build.artifact):
        return ()
    arms = [
        parse_config((arm.build.artifact / "config").read_text()) for arm in (baseline, patched) if arm.build.artifact
    ]
    return config_changes(*arms)


def _judge(
    series: Series,
    applied: ApplyResult,
    arms: tuple[ArmResult | None, ArmResult | None],
    proofs: Sequence[Proof],
    compared: Sequence[Comparison],
) -> tuple[Status, str]:
    """Status of a series on an architecture, and the first reason for it."""
    baseline, patched = arms
    if applied.status is not Status.PASSED:
        return applied.status, applied.reason
    if baseline is None or baseline.build.status is not Status.PASSED:
        return Status.ERROR, f"the baseline does not build: {baseline.build.reason if baseline else 'not tried'}"
    if patched is None or patched.build.status is not Status.PASSED:
        return Status.FAILED, f"does not build: {patched.build.reason if patched else 'not tried'}"
    if _unchanged(series, baseline, patched):
        return Status.FAILED, f"the series leaves the image unchanged: {_why_unchanged(patched)}; not benchmarked"
    fault = _proof_fault(proofs) or _boot_fault(baseline, patched)
    fault = fault or _run_fault(baseline, patched) or _no_time(patched) or _regression(compared)
    return fault or undecided(lost_once(baseline, patched)) or (Status.PASSED, "")


def _no_time(patched: ArmResult) -> tuple[Status, str] | None:
    """Nothing at all was measured because time was up: that is no pass."""
    runs = patched.replicates
    if not runs or any(r.status is not Status.SKIPPED or r.reason != OVER for r in runs):
        return None
    return Status.ERROR, f"nothing was measured: {OVER} (what was built is kept: the same command goes on from there)"


def _why_unchanged(patched: ArmResult) -> str:
    if not any(patched.build.compiled.values()):
        return "nothing of it was built under this configuration"
    return "its files are compiled, and the kernel is the baseline's, byte for byte"


def _proof_fault(proofs: Sequence[Proof]) -> tuple[Status, str] | None:
    sources = [p for p in proofs if p.kind == "source"]
    if sources and not any(p.in_patched for p in sources):
        names = ", ".join(p.name for p in sources)
        return Status.FAILED, f"not one of the files that it changes is compiled under this configuration: {names}"
    added = [p for p in proofs if p.kind != "source" and not p.derived]
    missing = [f"{p.kind} {p.name}" for p in added if not p.in_patched]
    if missing:
        return Status.FAILED, f"not found in the patched kernel: {', '.join(missing)}"
    known = [f"{p.kind} {p.name}" for p in added if p.in_baseline]
    return (Status.FAILED, f"already in the baseline's kernel: {', '.join(known)}") if known else None


def _boot_fault(baseline: ArmResult, patched: ArmResult) -> tuple[Status, str] | None:
    for arm, status, what in (
        (baseline, Status.ERROR, "the baseline does not boot"),
        (patched, Status.FAILED, "does not boot"),
    ):
        bad = next((b for b in arm.boots if b.status is not Status.PASSED), None)
        if bad:
            return status, f"{what} (boot seed {bad.boot_seed}): {bad.reason}"
    return None


def _run_fault(baseline: ArmResult, patched: ArmResult) -> tuple[Status, str] | None:
    """A workload that failed in the baseline too is not the patch's fault."""
    for arm, status, what in (
        (baseline, Status.ERROR, "in the baseline"),
        (patched, Status.FAILED, "in the patched kernel"),
    ):
        bad = next((r for r in arm.replicates if r.status in (Status.FAILED, Status.ERROR)), None)
        if bad:
            worse = worst((status, bad.status)) if bad.status is Status.ERROR else status
            return worse, f"{bad.workload} {bad.case} (seed {bad.seed}) failed {what}: {bad.reason}"
    return None


def _regression(compared: Sequence[Comparison]) -> tuple[Status, str] | None:
    bad = [c for c in compared if c.primary and c.verdict is Verdict.REGRESSED]
    if not bad:
        return None
    return Status.FAILED, "; ".join(f"{c.workload} {c.metric} regressed: {c.reason}" for c in bad)
