# SPDX-License-Identifier: GPL-2.0-or-later
"""Frequency residency in result.json."""

from __future__ import annotations

from collections.abc import Mapping

from kpatch_ci.model.status import Mode, Status
from kpatch_ci.model.workload import Replicate, Seed
from kpatch_ci.report.document import as_document
from kpatch_ci.report.residency import residencies
from tests.fakes.results import SEEDS, arch_result, arm_result, run_result


def run(times: object, seed: Seed = SEEDS[0], status: Status = Status.PASSED, case: str = "bs=4k") -> Replicate:
    extra: Mapping[str, object] = {"time_in_state": times}
    return Replicate("dd", case, seed, status, Mode.DETERMINISTIC, extra=extra)


def test_times_of_all_replicates_are_added_before_shares_are_taken() -> None:
    one = run({"policy0": {"1000000": 3, "500000": 1}})
    two = run({"policy0": {"1000000": 0, "500000": 16}}, SEEDS[1])
    patched = run({"policy0": {"1000000": 5, "500000": 0}})
    [found] = residencies(arm_result("baseline", replicates=(one, two)), arm_result("patched", replicates=(patched,)))
    assert (found["workload"], found["case"], found["policy"]) == ("dd", "bs=4k", "policy0")
    assert found["baseline"] == {"seconds": 0.20, "shares": {"500000": 0.85, "1000000": 0.15}}
    assert list(found["baseline"]["shares"]) == ["500000", "1000000"], "rising by frequency, not by spelling"
    assert found["patched"] == {"seconds": 0.05, "shares": {"500000": 0.0, "1000000": 1.0}}


def test_a_failed_replicate_and_nonsense_do_not_count() -> None:
    runs = (
        run({"policy0": {"500000": 7}}, status=Status.FAILED),
        run({"policy0": {"fast": 7, "500000": -1, "600000": "9"}, "policy6": 3}),
        run("none"),
        run({"policy0": {"500000": 0}}, case="idle"),
    )
    assert residencies(arm_result("baseline", replicates=runs), None) == [
        {
            "workload": "dd",
            "case": "idle",
            "policy": "policy0",
            "baseline": {"seconds": 0.0, "shares": {}},
            "patched": {"seconds": 0.0, "shares": {}},
        }
    ]


def test_the_document_carries_them_and_has_none_where_no_frequency_scales() -> None:
    arm = arm_result("baseline", replicates=(run({"policy6": {"2600000": 4}}),))
    [arch] = as_document(run_result(("s", arch_result(baseline=arm)))).series[0].arches
    assert arch.residencies[0].baseline.shares == {"2600000": 1.0}
    assert arch.residencies[0].patched.seconds == 0
    assert as_document(run_result(("s", arch_result()))).series[0].arches[0].residencies == []
