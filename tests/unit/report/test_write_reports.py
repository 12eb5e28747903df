# SPDX-License-Identifier: GPL-2.0-or-later
"""The directory that a run leaves."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from kpatch_ci.report.document import load_document
from kpatch_ci.report.logs import log_names
from kpatch_ci.report.write import REPORTS, write_document, write_reports
from tests.fakes.results import arch_result, arm_result, boot, build, run_result


def test_every_report_is_there_and_the_document_can_be_read_back(tmp_path: Path) -> None:
    document = write_reports(run_result(), tmp_path)
    assert {p.name for p in tmp_path.iterdir()} == set(REPORTS)
    assert load_document(tmp_path / "result.json") == document


def test_reports_made_again_from_the_document_alone_are_the_same(tmp_path: Path) -> None:
    write_reports(run_result(), tmp_path / "a")
    write_document(load_document(tmp_path / "a" / "result.json"), tmp_path / "b")
    for name in REPORTS:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name


def test_the_same_result_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_reports(run_result(), tmp_path / name)
    assert (tmp_path / "a" / "result.json").read_bytes() == (tmp_path / "b" / "result.json").read_bytes()


def test_logs_are_carried_along_and_one_that_is_gone_is_not_named(tmp_path: Path) -> None:
    log = tmp_path / "store" / "build.log"
    log.parent.mkdir()
    log.write_bytes(b"CC a.o\n\xff")
    arm = replace(arm_result("patched"), build=build("patched", log=log), boots=(boot(console=tmp_path / "gone"),))
    output = tmp_path / "out"
    document = write_reports(run_result(("S", arch_result(patched=arm))), output)
    arch = document.series[0].arches[0]
    assert arch.build.patched.log == "logs/arm64/S/build.log"
    assert (output / arch.build.patched.log).read_bytes() == log.read_bytes()
    assert arch.boot.patched.boots[0].log == ""
    assert "gone" not in json.dumps(document.model_dump(mode="json"))


def test_a_log_that_lies_in_the_output_keeps_its_place(tmp_path: Path) -> None:
    mine, other = tmp_path / "logs" / "arm64" / "S" / "build.log", tmp_path.parent / "elsewhere.log"
    arm = replace(arm_result("patched"), build=build("patched", log=mine))
    base = replace(arm_result("patched"), build=build("patched", log=other))
    result = run_result(("S", arch_result(patched=base)), ("S", arch_result(patched=arm)))
    names = log_names(result, tmp_path)
    assert names[mine] == "logs/arm64/S/build.log"
    assert names[other] == "logs/arm64/S/build-2.log"
