# SPDX-License-Identifier: GPL-2.0-or-later
"""What went wrong in a run, told once each: a baseline that several series share fails once, not once a series."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kpatch_ci.model.result import UNDECIDED
from kpatch_ci.model.status import Status, Verdict
from kpatch_ci.report.checks import warning_line
from kpatch_ci.report.schema import ArchDoc, ArmBootDoc, BuildDoc, Document, OnceDoc, ReplicateDoc
from kpatch_ci.report.view import BAD, every_arch, hunks, primaries, sentence


@dataclass(frozen=True, slots=True)
class Failure:
    """One thing that went wrong, and all that a person needs to look into it. Texts are as they came: not escaped."""

    stage: str
    """apply, build.ARM, each, check.CHECKER, proof, boot.ARM, run.ARM, once.ARM, verdict."""
    series: tuple[str, ...]
    arch: str
    status: Status
    reason: str
    seed: str = ""
    log_tail: str = ""
    log: str = ""
    """Relative to the output directory."""
    reproduce: str = ""

    @property
    def subject(self) -> str:
        """Series, architecture and seed."""
        return f"{', '.join(self.series)} on {self.arch}" + (f", seed {self.seed}" if self.seed else "")


def failures(document: Document) -> list[Failure]:
    """Every failure and error, in the order of series, architecture and stage."""
    groups: dict[tuple[str, ...], list[Failure]] = {}
    for name, arch in every_arch(document):
        for failure in arch_failures(name, arch):
            groups.setdefault(_identity(failure), []).append(failure)
    return [_merged(group, document) for group in groups.values()]


def _identity(failure: Failure) -> tuple[str, ...]:
    """A baseline is no series' own, and how a series applies is no architecture's."""
    series = "" if failure.stage.endswith(".baseline") else failure.series[0]
    arch = "" if failure.stage == "apply" else failure.arch
    return (failure.stage, series, arch, failure.seed, failure.reason, failure.log_tail)


def _merged(group: list[Failure], document: Document) -> Failure:
    first = group[0]
    return replace(
        first,
        series=tuple(dict.fromkeys(f.series[0] for f in group)),
        arch=", ".join(dict.fromkeys(f.arch for f in group)),
        reproduce=first.reproduce or document.command,
    )


def arch_failures(series: str, arch: ArchDoc) -> list[Failure]:
    """Those of one series on one architecture; never empty where its status is failed or error."""
    found = [
        *_apply(series, arch),
        *_arms(series, arch),
        *_each(series, arch),
        *_checks(series, arch),
        *_proofs(series, arch),
        *_lost_once(series, arch),
        *_verdicts(series, arch),
    ]
    if not found and arch.status in BAD:
        found = [Failure("verdict", (series,), arch.arch, arch.status, arch.reason, reproduce=arch.reproduce)]
    return found


def build_reason(build: BuildDoc) -> str:
    """Why a build did not pass; the requested symbols that are missing where that is all that is known."""
    misses = "; ".join(f"{m.symbol}={m.wanted} ({m.where}) came out as {m.got}: {m.reason}" for m in build.misses)
    return build.reason or misses or f"build {build.status}"


def boot_reason(boot: ArmBootDoc) -> str:
    """Why an arm did not boot."""
    return boot.reason or "; ".join(boot.differences) or f"boot {boot.status}"


def _apply(series: str, arch: ArchDoc) -> Iterator[Failure]:
    if arch.apply.status in BAD:
        reason = arch.apply.reason or "does not apply"
        tail = hunks(arch.apply)
        yield Failure("apply", (series,), arch.arch, arch.apply.status, reason, log_tail=tail, reproduce=arch.reproduce)


def _arms(series: str, arch: ArchDoc) -> Iterator[Failure]:
    for arm in ("baseline", "patched"):
        build: BuildDoc = getattr(arch.build, arm)
        if build.status in BAD:
            reproduce = build.reproduce or arch.reproduce
            reason = build_reason(build)
            yield Failure(
                f"build.{arm}", (series,), arch.arch, build.status, reason, "", build.log_tail, build.log, reproduce
            )
        yield from _boots(series, arch, arm)
        for run in getattr(arch.replicates, arm).failures:
            if run.status in BAD:
                yield _run(series, arch, arm, run)


def _each(series: str, arch: ArchDoc) -> Iterator[Failure]:
    """The first patch that breaks the build; where that is the last one, the patched arm's build has told it."""
    first = next((p for p in arch.each.patches if p.status in BAD), None) if arch.each else None
    if arch.each and first and first.number < len(arch.each.patches):
        tail = "\n".join(map(warning_line, first.errors)) or first.log_tail
        yield Failure("each", (series,), arch.arch, first.status, arch.each.reason, "", tail, first.log, arch.reproduce)


def _checks(series: str, arch: ArchDoc) -> Iterator[Failure]:
    for check in arch.checks:
        if check.status in BAD:
            stage = f"check.{check.checker}"
            yield Failure(
                stage, (series,), arch.arch, check.status, check.reason, "", check.log_tail, "", arch.reproduce
            )


def _boots(series: str, arch: ArchDoc, arm: str) -> Iterator[Failure]:
    for boot in getattr(arch.boot, arm).boots:
        if boot.status in BAD:
            reason = boot.reason or "; ".join(boot.differences) or f"boot {boot.status}"
            reproduce = boot.reproduce or arch.reproduce
            seed = str(boot.boot_seed)
            yield Failure(
                f"boot.{arm}", (series,), arch.arch, boot.status, reason, seed, boot.log_tail, boot.log, reproduce
            )


def _run(series: str, arch: ArchDoc, arm: str, run: ReplicateDoc) -> Failure:
    what = f"{run.workload} {run.case}: {run.reason or run.status}"
    boots = {str(b.boot_seed): b.log for b in getattr(arch.boot, arm).boots}
    log = boots.get(run.seed.partition(".")[0], "")
    stage, tail = f"run.{arm}", run.log_tail
    return Failure(stage, (series,), arch.arch, run.status, what, run.seed, tail, log, arch.reproduce)


def _proofs(series: str, arch: ArchDoc) -> Iterator[Failure]:
    broken = [p for p in arch.proofs if p.broken]
    if broken:
        yield Failure("proof", (series,), arch.arch, Status.FAILED, proof_reason(arch), reproduce=arch.reproduce)


def once_reason(one: OnceDoc) -> str:
    """What was seen, and what nobody can tell from it."""
    return f"{one.what}: {one.reason}; {UNDECIDED}"


def _lost_once(series: str, arch: ArchDoc) -> Iterator[Failure]:
    for one in arch.lost_once:
        reason, stage = once_reason(one), f"once.{one.arm}"
        yield Failure(
            stage, (series,), arch.arch, Status.ERROR, reason, one.seed, one.log_tail, reproduce=arch.reproduce
        )


def proof_reason(arch: ArchDoc) -> str:
    """What should tell patched from baseline and does not."""
    words = [
        f"{p.kind} {p.name} {'is in both images' if p.in_patched else 'is not in the patched image'}"
        for p in arch.proofs
        if p.broken
    ]
    return "; ".join(words)


def _verdicts(series: str, arch: ArchDoc) -> Iterator[Failure]:
    for c in primaries(arch):
        if c.verdict is Verdict.REGRESSED:
            yield Failure("verdict", (series,), arch.arch, Status.FAILED, sentence(c), reproduce=arch.reproduce)
