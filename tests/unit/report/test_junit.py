# SPDX-License-Identifier: GPL-2.0-or-later
"""junit.xml against the Jenkins schema, and what each kind of result becomes in it."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import xmlschema

from kpatch_ci.model.build import Proof
from kpatch_ci.model.result import ArchResult
from kpatch_ci.model.status import Status, Verdict
from kpatch_ci.report.junit import to_junit
from tests.fakes.results import (
    apply_failed,
    arch_result,
    boot_failed,
    build_failed,
    comparison,
    everything,
    regressed,
    replicate_failed,
    run_result,
    skipped,
)

XSD = Path(__file__).parents[2] / "data" / "junit" / "jenkins-junit.xsd"


@pytest.fixture(scope="module")
def schema() -> xmlschema.XMLSchema:
    return xmlschema.XMLSchema(str(XSD))


def suite(arch: ArchResult) -> ET.Element:
    root = ET.fromstring(to_junit(run_result(("S", arch))))  # noqa: S314 (our own text)
    return root[0]


def outcome(arch: ArchResult, name: str) -> ET.Element | None:
    """The failure, error or skipped element of a case; None where it passed."""
    [case] = [c for c in suite(arch).iter("testcase") if c.get("name") == name]
    return next((e for e in case if e.tag in ("failure", "error", "skipped")), None)


def failed(arch: ArchResult, name: str) -> ET.Element:
    found = outcome(arch, name)
    assert found is not None
    assert found.tag == "failure"
    return found


def test_every_kind_of_result_validates(schema: xmlschema.XMLSchema) -> None:
    schema.validate(to_junit(run_result()))


@pytest.mark.parametrize("started", ["", "yesterday", "2024-05-06T07:08:09Z"])
def test_a_stamp_that_the_schema_does_not_take_is_mended_or_left_out(schema: xmlschema.XMLSchema, started: str) -> None:
    schema.validate(to_junit(run_result(started=started)))


def test_a_run_without_series_validates(schema: xmlschema.XMLSchema) -> None:
    schema.validate(to_junit(run_result(series=())))


def test_the_schema_can_refuse(schema: xmlschema.XMLSchema) -> None:
    good = to_junit(run_result())
    assert not schema.is_valid(good.replace('<testsuite errors="0"', '<testsuite errors="none"', 1))
    assert not schema.is_valid(good.replace("<testsuites ", '<testsuites disabled="0" ', 1))
    assert not schema.is_valid(good.replace('time="61.500"', 'time="61.500000"', 1))


def test_there_is_a_suite_a_series_and_architecture() -> None:
    result = run_result(("A", arch_result("arm64")), ("B", arch_result("x86_64")))
    root = ET.fromstring(to_junit(result))  # noqa: S314 (our own text)
    assert [s.get("name") for s in root] == ["A.arm64", "B.x86_64"]
    assert [s.get("id") for s in root] == ["0", "1"]


def test_a_good_series_has_a_case_a_stage_and_figure() -> None:
    names = [c.get("name") for c in suite(arch_result()).iter("testcase")]
    stages = ["apply", "build.baseline", "build.patched", "proof", "boot.baseline", "boot.patched"]
    assert names == [*stages, "hackbench.time", "dd.throughput", "hackbench.time.groups=8"]
    found = suite(arch_result())
    assert (found.get("failures"), found.get("errors"), found.get("skipped")) == ("0", "0", "0")


def test_counts_are_those_of_the_cases() -> None:
    root = ET.fromstring(to_junit(run_result()))  # noqa: S314 (our own text)
    assert root.get("failures") == str(len(list(root.iter("failure")))) == "6"
    assert root.get("tests") == str(len(list(root.iter("testcase"))))


def test_a_patch_that_does_not_apply_fails_and_what_follows_is_skipped() -> None:
    failure = failed(apply_failed(), "apply")
    assert failure.get("message") == "hunk 1 of kernel/sched/core.c finds no place"
    assert "long a;" in (failure.text or "")
    for name in ("build.patched", "boot.patched", "proof"):
        after = outcome(apply_failed(), name)
        assert after is not None
        assert after.tag == "skipped"


def test_a_log_tail_is_inside_without_what_xml_forbids() -> None:
    text = failed(build_failed(), "build.patched").text or ""
    assert "foo.c:3: error: ']]>' <b>[bold]x[/bold]</b> & `y` ? | café" in text
    assert "\x1b" not in text


def test_a_panic_is_told_with_its_console() -> None:
    assert "not syncing" in (failed(boot_failed(), "boot.patched").text or "")
    assert outcome(boot_failed(), "boot.baseline") is None


def test_a_workload_that_died_fails_its_figure_with_the_log() -> None:
    failure = failed(replicate_failed(), "hackbench.time")
    assert "1 of 3 replicates failed" in (failure.get("message") or "")
    assert "seed 1.2: exit 1\nhackbench: fork failed" in (failure.text or "")


def test_a_regressed_primary_is_a_failure() -> None:
    assert "-4.50 %" in (failed(regressed(), "hackbench.time").get("message") or "")


def test_a_regressed_case_only_says_so() -> None:
    arch = arch_result(comparisons=(comparison(verdict=Verdict.REGRESSED),))
    assert outcome(arch, "hackbench.time.groups=8") is None
    said = [e.text or "" for e in suite(arch).iter("system-out")]
    assert "regressed" in said[-1]


def test_inconclusive_passes_and_says_so() -> None:
    assert outcome(arch_result(), "dd.throughput") is None
    assert any("inconclusive" in (e.text or "") for e in suite(arch_result()).iter("system-out"))


def test_an_error_is_no_failure() -> None:
    arch = arch_result(comparisons=(comparison(case="all", primary=True, verdict=Verdict.ERROR),))
    found = outcome(arch, "hackbench.time")
    assert found is not None
    assert found.tag == "error"
    assert suite(arch).get("errors") == "1"


def test_a_proof_that_does_not_hold_fails() -> None:
    arch = arch_result(proofs=(Proof("symbol", "foo", in_patched=True, in_baseline=True),))
    assert "symbol foo is in both images" in (failed(arch, "proof").get("message") or "")


def test_a_series_that_failed_for_no_stage_of_its_own_fails_nonetheless() -> None:
    arch = arch_result(status=Status.ERROR, reason="the disk is full")
    found = outcome(arch, "verdict")
    assert found is not None
    assert (found.tag, found.get("message")) == ("error", "the disk is full")


def test_a_reused_stage_took_no_time() -> None:
    times = {c.get("name"): c.get("time") for c in suite(arch_result()).iter("testcase")}
    assert times["build.baseline"] is None
    assert times["build.patched"] == "61.500"


def test_nothing_done_is_skipped_not_passed() -> None:
    found = suite(skipped())
    assert found.get("skipped") == found.get("tests")


def test_every_status_that_is_bad_shows_in_its_suite() -> None:
    for name, arch in everything():
        found = suite(arch)
        bad = int(found.get("failures", "0")) + int(found.get("errors", "0"))
        assert bool(bad) == (arch.status in (Status.FAILED, Status.ERROR)), name
