# SPDX-License-Identifier: GPL-2.0-or-later
"""What is asked beside figures: which nodes there are, and what they make of a series' status."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kpatch_ci.cli import main as cli
from kpatch_ci.cli.build import exit_status
from kpatch_ci.model.each import CheckResult
from kpatch_ci.model.series import Patch, Series
from kpatch_ci.model.status import Status
from kpatch_ci.pipeline.each import Checks, judged, mails_of
from kpatch_ci.pipeline.plan import Depth, plan
from kpatch_ci.pipeline.stages import Stages
from tests.fakes.results import patch_builds
from tests.unit.pipeline.test_plan import CARRIED, ON_BASE, ONE, stages

__all__ = ["stages"]
BROKEN, WHOLE = patch_builds(), patch_builds(broken=False)
NO_SPARSE = CheckResult("sparse", Status.ERROR, reason="not there")


def nodes(stages: Stages, series: tuple[Series, ...], checks: Checks) -> dict[str, tuple[str, ...]]:
    made = plan(stages, series, Depth(boots=False, checks=checks))
    return {n.name: n.needs for n in made if n.kind in ("each", "check")}


def test_nothing_is_done_that_was_not_asked(stages: Stages) -> None:
    assert nodes(stages, (ONE,), Checks()) == {}


def test_a_kernel_is_walked_once_whatever_variants_want_it(stages: Stages) -> None:
    found = nodes(stages, (ONE, CARRIED), Checks(each=True, w1=True))
    assert list(found) == ["each x86_64 one", "check x86_64 one W=1"]
    assert found["each x86_64 one"] == ("apply one", "build x86_64 baseline", "build x86_64 one")


def test_on_baseline_patches_it_starts_from_them(stages: Stages) -> None:
    found = nodes(stages, (ON_BASE,), Checks(each=True))
    assert "build x86_64 one+b-baseline" in found["each x86_64 one+b"]


def test_a_stacks_mails_are_its_members_and_never_a_port(stages: Stages) -> None:
    one, two, port = (Patch("f", s, "", "a", "e", "m", b"", (), "d") for s in ("one", "two", "port"))
    members = (Series("m1", "t", "o", (one,), ports={"6.1": (port,)}), Series("m2", "t", "o", (two,)))
    assert [p.subject for p in mails_of(Series("s", "t", "o", (), members=members))] == ["one", "two"]


@pytest.mark.parametrize(
    ("status", "each", "checks", "wanted"),
    [
        (Status.PASSED, None, (), Status.PASSED),
        (Status.PASSED, WHOLE, (), Status.PASSED),
        (Status.PASSED, BROKEN, (), Status.FAILED),
        (Status.ERROR, BROKEN, (), Status.ERROR),
        (Status.PASSED, None, (NO_SPARSE,), Status.ERROR),
    ],
)
def test_a_break_fails_a_series_and_a_check_that_was_not_done_is_an_error(
    status: Status, each: Any, checks: Any, wanted: Status
) -> None:
    assert judged(status, "", each, checks)[0] is wanted


def test_both_reasons_are_told() -> None:
    _, reason = judged(Status.FAILED, "hackbench regressed", BROKEN, (NO_SPARSE,))
    assert reason.startswith("not bisectable: patch 2/3")
    assert reason.endswith("; sparse: not there; hackbench regressed")


def test_the_build_verbs_exit_status() -> None:
    row: dict[str, Any] = {"status": "passed"}
    assert exit_status([row, {**row, "each": {"status": "passed"}, "checks": [{"status": "passed"}]}]) == 0
    assert exit_status([row, {**row, "each": {"status": "failed"}}]) == 1
    assert exit_status([{**row, "checks": [{"status": "error"}]}]) == 3
    assert exit_status([{"status": "failed"}]) == 1


def test_strict_is_for_checkpatch(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["build", "--strict"]) == 2
    assert "--checkpatch" in capsys.readouterr().err


def test_a_break_that_is_not_mended_is_told_from_one_that_is() -> None:
    end = replace(BROKEN, patches=BROKEN.patches[:2])
    assert end.reason.startswith("patch 2/2 `b: ")
    assert end.reason.endswith("` is the first that does not build on arm64")
