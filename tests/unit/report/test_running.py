# SPDX-License-Identifier: GPL-2.0-or-later
"""Which CPUs ran the tasks, in result.json and as a line."""

from __future__ import annotations

import pytest

from kpatch_ci.model.result import ArmResult
from kpatch_ci.model.status import Mode, Status
from kpatch_ci.model.workload import Replicate
from kpatch_ci.report.document import as_document, to_document
from kpatch_ci.report.running import placement_times, shift_lines
from kpatch_ci.report.schema import ArchDoc, Document
from kpatch_ci.report.text import to_text
from tests.fakes.results import SEEDS, arch_result, arm_result, comparison, run_result

CLUSTERS = {"little": (0, 1), "big": (2,)}


def run(*times: int, n: int = 0, case: str = "bs=4k", status: Status = Status.PASSED) -> Replicate:
    """Running ns by CPU; each waited for a tenth of that."""
    cpus = {f"cpu{i}": {"run_ns": t, "wait_ns": t // 10} for i, t in enumerate(times)}
    return Replicate("dd", case, SEEDS[n], status, Mode.DETERMINISTIC, extra={"cpu_times": cpus})


def arm(name: str, *runs: Replicate) -> ArmResult:
    return arm_result(name, replicates=runs)


def arch_of(baseline: ArmResult, patched: ArmResult) -> ArchDoc:
    head = comparison("dd", case="all", primary=True)
    made = arch_result(baseline=baseline, patched=patched, clusters=CLUSTERS, comparisons=(head,))
    return as_document(run_result(("s", made))).series[0].arches[0]


def test_times_of_all_replicates_are_added_before_shares_are_taken() -> None:
    [found] = placement_times(
        arm("baseline", run(300, 100, 0), run(0, 1000, 600, n=1)), arm("patched", run(0, 0, 50)), CLUSTERS
    )
    assert (found["workload"], found["case"]) == ("dd", "bs=4k")
    assert found["baseline"] == {
        "replicates": 2,
        "seconds": 2e-6,
        "wait_seconds": 2e-7,
        "cpus": {"0": 0.15, "1": 0.55, "2": 0.3},
        "clusters": {"little": pytest.approx(0.7), "big": 0.3},
    }
    assert found["patched"]["clusters"] == {"little": 0.0, "big": 1.0}


def test_a_machine_of_one_cluster_has_no_shares_by_cluster() -> None:
    [found] = placement_times(arm("baseline", run(3, 1, 0)), None, {"all": (0, 1, 2)})
    assert found["baseline"]["cpus"] == {"0": 0.75, "1": 0.25, "2": 0.0}
    assert found["baseline"]["clusters"] == {}
    assert found["patched"] == {"replicates": 0, "seconds": 0.0, "wait_seconds": 0.0, "cpus": {}, "clusters": {}}


@pytest.mark.parametrize(
    "told",
    [
        None,
        "none",
        {"cpu0": 3},
        {"cpux": {"run_ns": 1, "wait_ns": 1}},
        {"cpu0": {"run_ns": 1}},
        {"cpu0": {"run_ns": -1, "wait_ns": 1}},
        {"cpu0": {"run_ns": True, "wait_ns": 1}},
        {"cpu0": {"run_ns": 10**400, "wait_ns": 1}},
    ],
)
def test_nonsense_and_failed_replicates_do_not_count(told: object) -> None:
    odd = Replicate("dd", "bs=4k", SEEDS[0], Status.PASSED, Mode.DETERMINISTIC, extra={"cpu_times": told})
    assert placement_times(arm("baseline", odd, run(1, 2, 3, status=Status.FAILED)), None, CLUSTERS) == []


def test_a_line_tells_where_tasks_moved_and_nothing_of_what_stayed() -> None:
    ms = 1_000_000
    arch = arch_of(
        arm("baseline", run(60 * ms, 9 * ms, 31 * ms), run(50, 0, 50, case="stays"), run(90, 0, 10, case="back")),
        arm("patched", run(20 * ms, 2 * ms, 78 * ms), run(46, 0, 54, case="stays"), run(96, 0, 4, case="back")),
    )
    assert shift_lines(arch, "dd") == [
        "bs=4k: big CPUs 31 % -> 78 % of the running time (0.03100 -> 0.07800 s)",
        "back: little CPUs 90 % -> 96 % of the running time (9.00e-08 -> 9.60e-08 s)",
    ]
    assert shift_lines(arch, "hackbench") == []
    assert shift_lines(arch_of(arm("baseline", run(1, 0, 0)), arm("patched")), "dd") == [], "one arm tells nothing"


def test_a_share_that_grew_because_the_others_got_faster_is_no_move() -> None:
    """As measured: dd rw=write,bs=4k on arm64-6+2, whose little CPUs the iowait boost's patch speeds up."""
    baseline, patched = arm("baseline", run(60_210_000, 0, 8_030_000)), arm("patched", run(20_510_000, 0, 6_950_000))
    arch = arch_of(baseline, patched)
    shares = [arm.clusters["big"] for arm in (arch.placement_times[0].baseline, arch.placement_times[0].patched)]
    assert shares == pytest.approx([0.118, 0.253], abs=0.001)
    assert shift_lines(arch, "dd") == []


def test_replicates_are_counted_so_that_arms_of_unlike_many_compare() -> None:
    arch = arch_of(arm("baseline", run(60, 0, 40), run(60, 0, 40, n=1)), arm("patched", run(20, 0, 60)))
    assert shift_lines(arch, "dd") == ["bs=4k: big CPUs 40 % -> 75 % of the running time (4.00e-08 -> 6.00e-08 s)"]


def test_the_text_report_has_the_line() -> None:
    head = comparison("dd", case="all", primary=True)
    baseline, patched = arm("baseline", run(69_000_000, 0, 31_000_000)), arm("patched", run(22_000_000, 0, 78_000_000))
    arch = arch_result(baseline=baseline, patched=patched, clusters=CLUSTERS, comparisons=(head,))
    text = to_text(run_result(("s", arch)))
    assert "  bs=4k: big CPUs 31 % -> 78 % of the running time (0.03100 -> 0.07800\n" in text


def test_a_result_from_before_they_were_recorded_is_read() -> None:
    raw = to_document(run_result(("s", arch_result())))
    for key in ("clusters", "placement_times", "timelines"):
        del raw["series"][0]["arches"][0][key]
    [arch] = Document.model_validate(raw).series[0].arches
    assert (arch.clusters, arch.placement_times, arch.timelines) == ({}, [], [])
