# SPDX-License-Identifier: GPL-2.0-or-later
"""A result of every kind that a run can have, each with what every report of it must tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from kpatch_ci.model.result import SCHEMA, ArchResult, Once, RunResult, SeriesResult
from kpatch_ci.model.status import Mode, Status, Verdict
from kpatch_ci.model.workload import Replicate
from kpatch_ci.report.document import as_document
from kpatch_ci.report.schema import Document
from tests.fakes.results import (
    SEEDS,
    apply_failed,
    arch_result,
    arm_result,
    boot,
    boot_failed,
    build_failed,
    comparison,
    not_bisectable,
    regressed,
    replicate_failed,
    run_result,
    skipped,
)

MARKUP = 'S<b>&"q"\\n+ü-日本語'
"""A name as no series may have: in somebody else's result.json it may."""


@dataclass(frozen=True, slots=True)
class Kind:
    """``said``: what must be read in each report for people. ``ends``: (series, arch) -> status. ``samples``: rows of samples.csv."""

    source: RunResult | Document
    ends: Mapping[tuple[str, str], Status]
    said: tuple[str, ...] = ()
    samples: int = 0

    @property
    def document(self) -> Document:
        """What the writers get."""
        return as_document(self.source)


def single(arch: ArchResult, *said: str, samples: int = 0, **changes: object) -> Kind:
    """A run of one series on one architecture."""
    result = run_result(("S", arch), **changes)
    return Kind(result, {("S", arch.arch): arch.status}, said, samples)


def boot_timeout() -> ArchResult:
    """A guest that fell silent."""
    slow = boot(1, "patched", status=Status.FAILED, reason="silent for 120 s", log_tail="random: crng init done")
    return replace(boot_failed(), patched=arm_result("patched", boots=(slow,), replicates=()), reason="does not boot")


def replicate_timeout() -> ArchResult:
    """A workload that was not done in time."""
    base = replicate_failed()
    assert base.patched is not None
    late = replace(base.patched.replicates[-1], reason="not done after 180 s", log_tail="Running with 8 groups")
    return replace(base, patched=replace(base.patched, replicates=(*base.patched.replicates[:2], late)))


def unpaired() -> ArchResult:
    """Measured in real time: no pairs, one sample missing in an arm."""
    runs = tuple(Replicate("hackbench", "groups=8", s, Status.PASSED, Mode.TCG) for s in SEEDS)
    arms = {arm: arm_result(arm, replicates=runs) for arm in ("baseline", "patched")}
    case = comparison(mode=Mode.TCG, patched=(0.9, None, 2.7), verdict=Verdict.INCONCLUSIVE, reason="too few runs")
    primary = replace(case, case="all", primary=True)
    return arch_result(comparisons=(primary, case), baseline=arms["baseline"], patched=arms["patched"])


def lost_once(found: ArchResult) -> ArchResult:
    """A guest that panicked, and did not when it was booted again, beside whatever else was found."""
    once = Once("patched", "hackbench groups=8", "1.1", "the kernel panicked once", "RIP: sched_clock_tick+0x1")
    found = replace(found, lost_once=(once, replace(once, arm="baseline", reason="silent for 7 s")))
    if found.status is Status.FAILED:
        return found
    return replace(found, status=Status.ERROR, reason="the kernel panicked once; not so when booted again")


def infrastructure() -> ArchResult:
    """The baseline does not build: nobody's patch is to blame."""
    broken = build_failed(arm="baseline")
    return replace(broken, patched=None, status=Status.ERROR, reason="the baseline does not build: no space left")


def old_document() -> Document:
    """A file of the first version: nothing but the keys that the format cannot do without."""
    build = {"status": "passed"}
    compared: dict[str, Any] = {"workload": "dd", "case": "bs=1M", "metric": "throughput", "unit": "MB/s"}
    compared |= {"better": "higher", "mode": "deterministic", "baseline": [180.0], "patched": [200.0], "seeds": ["1.1"]}
    compared |= {"verdict": "improved"}
    arch = {
        "arch": "arm64",
        "status": "failed",
        "reason": "an old reason",
        "apply": {"status": "passed"},
        "build": {"baseline": build, "patched": build},
        "boot": {"baseline": build, "patched": build},
        "comparisons": [compared],
    }
    series = [{"name": "S", "status": "failed", "arches": [arch]}]
    head = {"schema": SCHEMA, "run_id": "old", "status": "failed", "mode": "deterministic", "fingerprint": {}}
    return Document.model_validate({**head, "series": series})


def _two_arches() -> Kind:
    series = SeriesResult("S", "Title", "", (arch_result("arm64"), build_failed("x86_64")))
    ends = {("S", "arm64"): Status.PASSED, ("S", "x86_64"): Status.FAILED}
    return Kind(run_result(series=(series,)), ends, ("no such field",), 12)


def _no_arch() -> Kind:
    series = SeriesResult("S", "Title", "", ())
    return Kind(run_result(series=(series,)), {("S", ""): Status.SKIPPED})


def _hostile() -> Kind:
    case = comparison(MARKUP, case=f"{MARKUP}=1,x=\n2")
    arch = arch_result(comparisons=(case, replace(case, case="all", primary=True)), machine=MARKUP)
    return Kind(run_result((MARKUP, arch)), {(MARKUP, "arm64"): Status.PASSED}, samples=6)


ONCE = ("the kernel panicked once", "silent for 7 s")
KINDS: Mapping[str, Kind] = {
    "all passed": single(arch_result(), samples=12),
    "apply failed": single(apply_failed(), "hunk 1 of kernel/sched/core.c finds no place"),
    "build failed": single(build_failed(), "no such field"),
    "boot panic": single(boot_failed(), "kernel panic"),
    "boot timeout": single(boot_timeout(), "silent for 120 s"),
    "replicate failed": single(replicate_failed(), "exit 1"),
    "replicate timeout": single(replicate_timeout(), "not done after 180 s"),
    "no samples": single(arch_result(comparisons=())),
    "regressed": single(regressed(), "regressed", samples=12),
    "a patch in between does not build": single(not_bisectable(), "make: exit 2", samples=12),
    "baseline does not build": single(infrastructure(), "no such field"),
    "skipped": single(replace(skipped(), reason="no tree"), "no tree"),
    "one of two architectures": _two_arches(),
    "on no architecture": _no_arch(),
    "tcg": single(unpaired(), samples=5, mode=Mode.TCG),
    "lost once": single(lost_once(unpaired()), *ONCE, "not so when booted again", samples=5, mode=Mode.TCG),
    "lost once, and regressed": single(lost_once(regressed()), "regressed", *ONCE, samples=12),
    "markup in names": _hostile(),
    "no series": Kind(run_result(series=()), {}),
    "an old file": Kind(old_document(), {("S", "arm64"): Status.FAILED}, ("an old reason",), 2),
}
