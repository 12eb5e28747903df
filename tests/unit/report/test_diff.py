# SPDX-License-Identifier: GPL-2.0-or-later
"""Two documents beside each other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kpatch_ci.model.errors import UserError
from kpatch_ci.model.result import ArchResult, ArmResult, RunResult
from kpatch_ci.model.status import Mode, Verdict
from kpatch_ci.report.diff import DocumentDiff, compare_documents, diff_text, flatten
from kpatch_ci.report.document import as_document
from tests.fakes.kinds import old_document
from tests.fakes.results import arch_result, arm_result, build, comparison, regressed, run_result


def compared(a: RunResult, b: RunResult) -> DocumentDiff:
    return compare_documents(as_document(a), as_document(b))


def single(**changes: object) -> ArchResult:
    return arch_result(comparisons=(comparison(**changes),))  # type: ignore[arg-type]


def rebuilt(arm: str, digest: str) -> ArmResult:
    return replace(arm_result(arm), build=build(arm, image_digest=digest))


def test_a_run_is_identical_to_itself_even_with_missing_samples() -> None:
    diff = compared(run_result(), run_result(run_id="other", seconds=1.0))
    assert diff.identical
    assert diff.comparable
    assert diff_text(diff) == f"{len(diff.rows)} of {len(diff.rows)} comparisons are identical, sample by sample.\n"
    assert len(diff.rows) == 17


def test_what_is_the_same_is_told_where_every_figure_is_asked_for() -> None:
    same = "S arm64 hackbench time (groups=8): +10.0 %, interval +8.25..+12.1 %, adjusted p 0.0421: improved, the same in both\n"
    diff = compared(run_result(("S", single())), run_result(("S", single())))
    assert diff_text(diff, every=True) == f"{same}1 of 1 comparisons are identical, sample by sample.\n"
    assert same not in diff_text(diff)


def test_other_samples_are_told_with_their_means_and_verdicts() -> None:
    new = single(baseline=(1.1, 2.2, 3.3), verdict=Verdict.NO_CHANGE)
    diff = compared(run_result(("S", single())), run_result(("S", new)))
    [row] = diff.rows
    assert not diff.identical
    assert row.baseline_percent == pytest.approx(10.0)
    assert row.patched_percent == 0.0
    text = diff_text(diff)
    assert "S arm64 hackbench groups=8 time: verdict improved -> no change" in text
    assert "baseline: 2.000 -> 2.200 s (+10.0 %)" in text
    assert "patched: same samples" in text


def test_equal_values_under_other_seeds_are_not_identical() -> None:
    seeds = tuple(replace(s, run=s.run + 7) for s in comparison().seeds)
    assert not compared(run_result(("S", single())), run_result(("S", single(seeds=seeds)))).rows[0].identical


def test_samples_in_another_order_are_not_identical() -> None:
    diff = compared(run_result(("S", single())), run_result(("S", single(patched=(2.7, 1.8, 0.9)))))
    assert not diff.rows[0].identical
    assert diff.rows[0].patched_percent == 0.0


def test_unlike_fingerprints_are_named_by_flattened_key() -> None:
    diff = compared(
        run_result(), run_result(fingerprint={"qemu": {"version": "10.1.0", "argv": ["-icount", "shift=0,sleep=off"]}})
    )
    assert not diff.comparable
    assert {i.key for i in diff.inputs} == {"qemu.version", "host.cpu", "uptime"}
    assert [i.key for i in diff.unlike] == ["qemu.version"], "what one does not record is not known to differ"
    text = diff_text(diff, "OLD", "NEW")
    assert "measured with:\n  qemu.version: OLD 10.0.2, NEW 10.1.0\n" in text
    assert "does not record these:\n  uptime: OLD None, NEW (absent)\n" in text


def test_the_night_that_a_run_belongs_to_is_no_input_of_its_figures() -> None:
    old, new = (run_result(fingerprint={"qemu": "10", "nightly": {"night": n, "item": "a", "inputs": n}}) for n in "12")
    assert compared(old, new).identical
    assert not compared(old, run_result(fingerprint={"qemu": "11"})).identical


def test_another_baseline_image_is_not_comparable_another_patched_one_is() -> None:
    old = run_result(("S", single()))
    other_base = replace(single(), baseline=rebuilt("baseline", "other"))
    other_patch = replace(single(), patched=rebuilt("patched", "other"))
    assert not compared(old, run_result(("S", other_base))).comparable
    diff = compared(old, run_result(("S", other_patch)))
    assert diff.comparable
    assert not diff.identical
    assert "These differ too, and are no obstacle:\n  S.arm64.build.patched.image_digest" in diff_text(diff)


def test_what_one_run_has_not_got_is_told_and_is_no_unlike_input() -> None:
    diff = compared(run_result(("S", single())), run_result(("S", single()), ("T", single())))
    assert diff.comparable
    assert "T arm64 hackbench groups=8 time: only in B" in diff_text(diff)
    assert "T.arm64: A (absent), B passed" in diff_text(diff)


def test_another_end_is_told() -> None:
    assert "S.arm64: A passed, B failed" in diff_text(
        compared(run_result(("S", arch_result())), run_result(("S", regressed())))
    )


@pytest.mark.parametrize(
    ("a", "b"), [(Mode.TCG, Mode.KVM), (Mode.DETERMINISTIC, Mode.TCG), (Mode.KVM, Mode.VIRTUAL_TIME)]
)
def test_unlike_accelerators_are_refused(a: Mode, b: Mode) -> None:
    documents = [run_result(("S", single(mode=mode)), mode=mode) for mode in (a, b)]
    with pytest.raises(
        UserError, match=f"arm64 was measured by unlike accelerators: {a} in the first, {b} in the second"
    ):
        compared(*documents)


def test_one_accelerator_and_architectures_of_their_own_are_not_refused() -> None:
    one = run_result(("S", single(mode=Mode.KVM)), mode=Mode.KVM)
    assert compared(one, one).identical
    other = arch_result("x86_64", comparisons=(comparison(mode=Mode.TCG),))
    assert {r.identical for r in compared(one, run_result(("S", other), mode=Mode.TCG)).rows} == {False}


ARGV = "qemu-system-aarch64 -icount shift=0,sleep=off -seed {0} -append kpci.boot_seed={0}{1}"


def measured_with(**changes: object) -> RunResult:
    """A run under a fingerprint like those of real runs."""
    arches = {"arm64": {"machine": "arm64-6+2", "guest_image": "g1", "qemu_argv": ARGV.format(1, "").split()}}
    found: dict[str, object] = {
        "qemu": "10.0.13",
        "gcc": "14.2",
        "kpatch_ci": "0.1.0",
        "arches": arches,
        "host": {"cpu": "EPYC"},
    }
    found |= {"workloads": {"dd": {"bs=1M": "c1"}}, "series": {"S": "v1"}}
    return run_result(("S", single()), fingerprint=found | changes)


def machine(**changes: object) -> dict[str, object]:
    whole = {"machine": "arm64-6+2", "guest_image": "g1", "qemu_argv": ARGV.format(1, "").split()}
    return {"arches": {"arm64": whole | changes}}


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"qemu": "10.1"}, "qemu"),
        ({"gcc": "15"}, "gcc"),
        ({"workloads": {"dd": {"bs=1M": "other"}}}, "workloads.dd.bs=1M"),
        (machine(guest_image="g2"), "arches.arm64.guest_image"),
        (machine(machine="arm64-fixed"), "arches.arm64.machine"),
        (machine(qemu_argv=ARGV.format(1, " panic=-1").split()), "arches.arm64.qemu_argv"),
    ],
)
def test_what_samples_depend_on_is_an_obstacle(changes: dict[str, object], key: str) -> None:
    assert [i.key for i in compared(measured_with(), measured_with(**changes)).unlike] == [key]


@pytest.mark.parametrize(
    "changes",
    [
        {"kpatch_ci": "0.2.0"},
        {"host": {"cpu": "Xeon"}},
        {"host": {}, "host_cpu": "EPYC"},
        machine(qemu_argv=ARGV.format(2, "").split()),
        {"arches": {}},
        {"workloads": {"hackbench": {}}},
        {"workloads": {"dd": {"bs=4k": "x"}}},
        {"series": {"S": "v2"}},
    ],
    ids=[
        "our version",
        "another host",
        "an old name of a key",
        "the boot seed that was looked at",
        "no such arch",
        "no such workload",
        "no such case",
        "the series",
    ],
)
def test_what_they_do_not_depend_on_is_none(changes: dict[str, object]) -> None:
    assert compared(measured_with(), measured_with(**changes)).comparable


def test_the_host_matters_where_time_is_real() -> None:
    a, b = (replace(measured_with(host={"cpu": cpu}), mode=Mode.KVM) for cpu in ("EPYC", "Xeon"))
    assert [i.key for i in compared(a, b).unlike] == ["host.cpu"]


def test_the_tree_the_configuration_and_the_mode_are_obstacles_and_thresholds_are_none() -> None:
    a = run_result(("S", single()))
    assert [i.key for i in compared(a, replace(a, tree={"tree_id": "other"})).unlike] == ["tree.tree_id"]
    assert [i.key for i in compared(a, replace(a, mode=Mode.VIRTUAL_TIME)).unlike] == ["mode"]
    assert compared(a, replace(a, thresholds={"threshold_percent.hackbench": 9.0})).comparable
    other = replace(arm_result("baseline"), build=build("baseline", config_digest="other"))
    config = compared(a, run_result(("S", replace(single(), baseline=other))))
    assert [i.key for i in config.unlike] == ["S.arm64.build.baseline.config_digest"]


def test_a_patch_may_change_the_configuration() -> None:
    other = replace(arm_result("patched"), build=build("patched", config_digest="other"))
    assert compared(run_result(("S", single())), run_result(("S", replace(single(), patched=other)))).comparable


def test_of_a_long_command_only_the_words_that_differ_are_shown() -> None:
    argv = [f"-word{n}" for n in range(40)]
    diff = compared(measured_with(**machine(qemu_argv=argv)), measured_with(**machine(qemu_argv=[*argv, "-new"])))
    assert "arches.arm64.qemu_argv: A (nothing more), B -new" in diff_text(diff)


def test_an_old_file_is_compared() -> None:
    diff = compare_documents(old_document(), old_document())
    assert (diff.identical, len(diff.rows)) == (True, 1)
    assert compare_documents(old_document(), as_document(run_result(("S", arch_result())))).comparable


def test_flatten_keeps_lists_of_words_together_and_numbers_objects() -> None:
    assert flatten({"b": [1, "x"], "a": {"c": [{"d": None}]}, "e": {}}) == {"a.c.0.d": "None", "b": "1 x"}
