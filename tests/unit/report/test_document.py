# SPDX-License-Identifier: GPL-2.0-or-later
"""result.json: what is in it, and what is said of one that cannot be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kpatch_ci.model.errors import UserError
from kpatch_ci.model.result import SCHEMA
from kpatch_ci.model.status import Verdict
from kpatch_ci.report.document import as_document, load_document, to_document
from tests.fakes.results import HOSTILE, apply_failed, arch_result, build_failed, replicate_failed, run_result, skipped


def only_arch(document: dict[str, Any]) -> dict[str, Any]:
    arch: dict[str, Any] = document["series"][0]["arches"][0]
    return arch


def test_the_top_has_every_key_that_the_format_names() -> None:
    document = to_document(run_result())
    top = "schema run_id status fingerprint tree mode profile thresholds stages command origin started seconds series hosts"
    assert set(document) == set(top.split())
    assert document["schema"] == SCHEMA
    assert document["status"] == "failed"


def test_an_architecture_has_both_arms_of_build_and_boot() -> None:
    arch = only_arch(to_document(run_result(("S", arch_result()))))
    assert arch["apply"]["method"] == "as-mailed"
    assert arch["build"]["baseline"]["cached"] is True
    assert arch["build"]["baseline"]["objects"] == 1234
    assert [w["line"] for w in arch["build"]["patched"]["new_warnings"]] == [77]
    assert arch["boot"]["patched"]["cpus"] == 8
    assert [b["boot_seed"] for b in arch["boot"]["patched"]["boots"]] == [1, 2]
    assert arch["proofs"][0]["holds"] is True
    assert arch["replicates"]["patched"] == {"total": 3, "cached": 3, "failures": []}


def test_facts_are_kept_but_for_the_long_lists() -> None:
    facts = only_arch(to_document(run_result(("S", arch_result()))))["boot"]["baseline"]["facts"]
    assert facts == {"cpus": 8, "release": "6.1.140", "features": ["A", "B"]}


def test_a_comparison_is_written_in_seed_order_with_pairs_as_text() -> None:
    primary, _, case, _ = only_arch(to_document(run_result(("S", arch_result()))))["comparisons"]
    assert (primary["case"], primary["primary"]) == ("all", True)
    assert case["primary"] is False
    assert case["seeds"] == ["1.1", "1.2", "2.1"]
    assert case["baseline"] == [1.0, 2.0, 3.0]
    assert case["ci_percent"] == [8.25, 12.125]
    assert case["verdict"] == "improved"


def test_json_gets_neither_nan_nor_lone_surrogates() -> None:
    document = to_document(run_result(("dies", replicate_failed()), ("no-build", build_failed())))
    json.dumps(document, allow_nan=False, ensure_ascii=False).encode()
    assert only_arch(document)["comparisons"][0]["patched"] == [0.9, None, 2.7]
    assert document["fingerprint"]["uptime"] is None


def test_a_failed_replicate_is_named_with_its_seed_and_log() -> None:
    [failure] = only_arch(to_document(run_result(("dies", replicate_failed()))))["replicates"]["patched"]["failures"]
    assert (failure["seed"], failure["reason"], failure["log_tail"]) == ("1.2", "exit 1", "hackbench: fork failed")


def test_an_arm_that_never_was_is_skipped() -> None:
    arch = only_arch(to_document(run_result(("skipped", skipped()))))
    assert arch["build"]["patched"]["status"] == "skipped"
    assert arch["boot"]["baseline"]["boots"] == []


def test_the_hunk_that_found_no_place_is_kept() -> None:
    arch = only_arch(to_document(run_result(("no-apply", apply_failed()))))
    assert arch["apply"]["patches"][0]["failures"][0]["found"] == "long a;"


def test_logs_are_named_relative_to_the_output_directory() -> None:
    arch = only_arch(to_document(run_result(("a/../b", arch_result()))))
    assert arch["build"]["baseline"]["log"] == "logs/arm64/baseline/build.log"
    assert arch["boot"]["patched"]["boots"][1]["log"] == "logs/arm64/a_.._b/console-2.log"


def test_a_document_read_back_is_the_one_that_was_written(tmp_path: Path) -> None:
    result = run_result()
    path = tmp_path / "result.json"
    path.write_text(json.dumps(to_document(result)))
    read = load_document(path)
    assert read == as_document(result)
    assert read.series[0].arches[0].comparisons[0].verdict is Verdict.IMPROVED


def test_keys_of_a_later_version_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    later = to_document(run_result()) | {"claims": [1]}
    only_arch(later)["build"]["patched"]["size"] = 7
    path.write_text(json.dumps(later))
    assert load_document(path).model_dump(mode="json", by_alias=True) == later


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"schema": "kpatch-ci/result/1", "run_id', "no JSON"),
        ("[]", "schema None"),
        ('{"schema": "kpatch-ci/result/2"}', "kpatch-ci/result/2.*reads kpatch-ci/result/1"),
        ('{"schema": "kpatch-ci/result/1", "run_id": "x"}', "damaged at status"),
        (HOSTILE.encode("utf-8", "replace").decode(), "no JSON"),
    ],
)
def test_what_is_no_result_is_refused_with_its_fault(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "result.json"
    path.write_text(text)
    with pytest.raises(UserError, match=said) as caught:
        load_document(path)
    assert str(path) in str(caught.value)


def test_bytes_that_are_no_text_and_a_missing_file_are_user_errors(tmp_path: Path) -> None:
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00{")
    with pytest.raises(UserError, match="no JSON"):
        load_document(tmp_path / "binary.json")
    with pytest.raises(UserError, match="No such file"):
        load_document(tmp_path / "absent.json")


def test_every_fault_is_named_at_once(tmp_path: Path) -> None:
    document = to_document(run_result())
    document["series"][0]["arches"][0]["comparisons"][0]["better"] = "louder"
    document["mode"] = "dream"
    path = tmp_path / "result.json"
    path.write_text(json.dumps(document))
    with pytest.raises(UserError) as caught:
        load_document(path)
    assert "damaged at mode" in str(caught.value)
    assert "damaged at series.0.arches.0.comparisons.0.better" in str(caught.value)
