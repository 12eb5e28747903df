# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest that was lost once and not again: no pass, not the patch's fault, and never silent."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from kpatch_ci.model.boot import Lost
from kpatch_ci.model.result import ArchResult, Once
from kpatch_ci.model.series import Series
from kpatch_ci.model.status import Mode, Status, Verdict
from kpatch_ci.pipeline.assemble import assemble
from kpatch_ci.pipeline.explain import Recorder
from tests.unit.pipeline.test_assemble_claims import config, values

FIRST = Lost("the guest crashed: Kernel panic - not syncing", "RIP: 0010:sched_clock_tick+0x1/0x30")
BOOT, RUN = "boot arm64 {} seed 3", "run arm64 {} hackbench groups=8 seed 5.1"


def arch(*names: str, saved: float = 9.5, **changes: Any) -> ArchResult:
    """The series on arm64 where the first guests of these nodes were lost; ``changes`` beside that."""
    found = {
        name: replace(value, mode=Mode.TCG) if name.startswith("run ") else value
        for name, value in values(saved).items()
    }
    for name in names:
        found[name] = replace(found[name], first=FIRST, **changes)
    tree = cast("Any", SimpleNamespace(repo=None))
    (series,) = assemble(config(1.0), tree, [Series("S", "t", "o", ())], cast("Any", found), "cmd")
    return series.arches[0]


def test_none_lost_is_a_pass() -> None:
    found = arch()
    assert (found.status, found.reason, found.lost_once) == (Status.PASSED, "", ())


def test_one_lost_once_is_an_error_that_says_what_nobody_can_tell() -> None:
    for arm in ("baseline", "S"):
        found = arch(RUN.format(arm))
        told = "patched" if arm == "S" else arm
        assert found.status is Status.ERROR
        assert found.reason == (
            f"{told}, hackbench groups=8 (seed 5.1): the guest crashed: Kernel panic - not syncing; not so when booted again: "
            "a fault of this host or its emulator, or a rare one of the kernel (docs/accelerators.md)"
        )
        assert found.lost_once == (Once(told, "hackbench groups=8", "5.1", FIRST.reason, FIRST.log_tail),)


def test_its_figures_stand() -> None:
    whole, one = arch(), arch(RUN.format("S"))
    assert one.comparisons == whole.comparisons
    assert one.comparisons[0].verdict is Verdict.IMPROVED


def test_boots_count_too_and_the_rest_is_counted() -> None:
    found = arch(RUN.format("S"), BOOT.format("S"), BOOT.format("baseline"))
    assert [(one.arm, one.what, one.seed) for one in found.lost_once] == [
        ("baseline", "boot", "3"),
        ("patched", "boot", "3"),
        ("patched", "hackbench groups=8", "5.1"),
    ]
    assert found.reason.endswith("(docs/accelerators.md) (and 2 more)")


def test_one_lost_twice_is_the_kernels() -> None:
    twice: dict[str, Any] = {"status": Status.FAILED, "reason": "the guest crashed: again", "samples": {}}
    failed = arch(RUN.format("S"), **twice)
    assert (failed.status, failed.lost_once) == (Status.FAILED, ())
    assert failed.reason == "hackbench groups=8 (seed 5.1) failed in the patched kernel: the guest crashed: again"
    assert arch(RUN.format("baseline"), **twice).status is Status.ERROR


def test_a_regression_is_a_failure_all_the_same() -> None:
    found = arch(RUN.format("S"), saved=-9.5)
    assert found.status is Status.FAILED
    assert "regressed" in found.reason
    assert len(found.lost_once) == 1


def test_explain_counts_them() -> None:
    runs = [value for name, value in values(1.0).items() if name.startswith("run arm64 S")]
    runs = [replace(run, mode=Mode.TCG, first=FIRST if run.seed.boot < 3 else None) for run in runs]
    row = Recorder(*cast("Any", (None, None, None)))._case("run arm64 S hackbench groups=8", runs)
    assert "0 of 8 reused, 8 measured, 2 booted again after a first guest was lost; in real time" in row.why
