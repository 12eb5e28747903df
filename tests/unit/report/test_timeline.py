# SPDX-License-Identifier: GPL-2.0-or-later
"""Frequency over time in result.json, from what a real guest recorded (arm64-6+2, dd rw=read,bs=1M, seed 1.1)."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kpatch_ci.model.status import Mode, Status
from kpatch_ci.model.workload import Replicate
from kpatch_ci.report.document import as_document
from kpatch_ci.report.timeline import MOST_CASES, MOST_CHANGES, thinned, timelines
from tests.fakes.results import SEEDS, arch_result, arm_result, run_result

DATA = Path(__file__).resolve().parents[2] / "data" / "outputs"
RECORDED: dict[str, Any] = {
    arm: json.loads((DATA / f"recorded-arm64-dd-{arm}.json").read_text()) for arm in ("baseline", "patched")
}


def run(frequency: object, n: int = 0, case: str = "bs=1M", status: Status = Status.PASSED) -> Replicate:
    return Replicate("dd", case, SEEDS[n], status, Mode.DETERMINISTIC, extra={"frequency": frequency})


def line(changes: object, **other: object) -> dict[str, object]:
    told = {"span_ns": 1000, "lost": 0, "known_from_ns": 0} | other
    return told | {"policies": {"policy0": {"khz": 500000, "changes": changes}}}


def test_both_arms_lines_stand_side_by_side_under_one_seed() -> None:
    arms = [arm_result(arm, replicates=(run(RECORDED[arm]["frequency"]),)) for arm in ("baseline", "patched")]
    found = timelines(*arms)
    assert [(f["workload"], f["case"], f["seed"], f["policy"]) for f in found] == [
        ("dd", "bs=1M", "1.1", "policy0"),
        ("dd", "bs=1M", "1.1", "policy6"),
    ]
    told = RECORDED["baseline"]["frequency"]
    before = found[0]["baseline"]
    assert before["span_ns"] == told["span_ns"]
    assert before["khz"] == told["policies"]["policy0"]["khz"]
    assert [list(c) for c in before["changes"]] == told["policies"]["policy0"]["changes"]
    assert (before["total"], before["lost"]) == (len(before["changes"]), 0)
    ends = {arm: found[0][arm]["changes"][-1][1] for arm in ("baseline", "patched")}
    assert ends == {"baseline": 500000, "patched": 1800000}, "the boost is lost, and kept"


def test_what_was_recorded_agrees_with_the_kernels_own_time_in_state() -> None:
    """Within the 10 ms that time_in_state counts in, and the change that is under way at either end."""
    for recorded in RECORDED.values():
        frequency = recorded["frequency"]
        for policy, told in frequency["policies"].items():
            spent: dict[str, float] = {}
            points = [[0, told["khz"]], *told["changes"], [frequency["span_ns"], 0]]
            for (start, khz), (end, _) in pairwise(points):
                spent[str(khz)] = spent.get(str(khz), 0) + (end - start) / 1e7
            ticks = recorded["time_in_state"][policy]
            assert {k: spent.get(k, 0) for k in ticks} == pytest.approx(ticks, abs=1.5)


def test_the_seed_is_the_first_that_both_arms_passed() -> None:
    baseline = arm_result("baseline", replicates=(run(line([])), run(line([[5, 7]]), n=1)))
    patched = arm_result("patched", replicates=(run(line([]), status=Status.FAILED), run(line([]), n=1)))
    [found] = timelines(baseline, patched)
    assert found["seed"] == "1.2"
    assert found["baseline"]["changes"] == [(5, 7)]
    [alone] = timelines(None, patched)
    assert (alone["seed"], "baseline" in alone) == ("1.2", False)
    arch = as_document(run_result(("s", arch_result(baseline=None, patched=patched)))).series[0].arches[0]
    assert (arch.timelines[0].baseline.span_ns, arch.timelines[0].patched.span_ns) == (0, 1000)


def test_the_first_cases_of_a_workload_are_kept() -> None:
    runs = tuple(run(line([]), case=f"bs={n}") for n in range(MOST_CASES + 2))
    assert [f["case"] for f in timelines(arm_result("baseline", replicates=runs), None)] == [
        f"bs={n}" for n in range(MOST_CASES)
    ]


def test_of_many_changes_what_was_in_force_at_even_times_is_kept() -> None:
    changes = [(10 * n, 500000 if n % 2 else 900000) for n in range(1, 1001)]
    assert thinned(changes, 500000, 10_000, most=1000) == changes
    kept = thinned(changes, 500000, 10_000, most=3)
    assert kept == [(6666, 900000), (10_000, 900000)][:1], "at 3333: 500000 as before; at 6666 and at the end: 900000"
    [found] = timelines(
        arm_result("baseline", replicates=(run(line([list(c) for c in changes], span_ns=10_000)),)), None
    )
    assert len(found["baseline"]["changes"]) <= MOST_CHANGES
    assert found["baseline"]["total"] == 1000


@pytest.mark.parametrize(
    "told",
    [
        None,
        {},
        "nothing",
        {"span_ns": 1, "lost": 0, "known_from_ns": 0, "policies": {}},
        {"span_ns": -1, "lost": 0, "known_from_ns": 0, "policies": {"policy0": {"khz": 1, "changes": []}}},
        {"span_ns": 1, "lost": None, "known_from_ns": 0, "policies": {"policy0": {"khz": 1, "changes": []}}},
        {"span_ns": 1, "lost": 0, "known_from_ns": 0, "policies": {"policy0": {"khz": "1", "changes": []}}},
        {"span_ns": 1, "lost": 0, "known_from_ns": 0, "policies": {"policy0": 3}},
        {"span_ns": 10**400, "lost": 0, "known_from_ns": 0, "policies": {"policy0": {"khz": 1, "changes": []}}},
    ],
)
def test_what_cannot_be_read_is_no_line(told: object) -> None:
    assert timelines(arm_result("baseline", replicates=(run(told),)), None) == []


def test_a_change_that_cannot_be_read_is_left_out() -> None:
    odd = line([[1, 2], [1], "x", [3, -4], [5, 6, 7], [True, 8], [8, 9]])
    [found] = timelines(arm_result("baseline", replicates=(run(odd),)), None)
    assert found["baseline"]["changes"] == [(1, 2), (8, 9)]
