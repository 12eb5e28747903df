# SPDX-License-Identifier: GPL-2.0-or-later
"""``kpatch-ci report``: any report again, from result.json alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpatch_ci.cli.main import main
from kpatch_ci.report.write import REPORTS, write_reports
from tests.fakes.results import arch_result, arm_result, boot, run_result


def test_every_report_is_remade_as_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    console = tmp_path / "console"
    console.write_text("[    0.0] Booting Linux\n")
    arm = arm_result("patched", boots=(boot(1, "patched", console=console),))
    write_reports(run_result(("s", arch_result(patched=arm))), tmp_path / "run")
    for name in REPORTS:
        assert main(["report", str(tmp_path / "run"), "--format", name]) == 0
        assert capsys.readouterr().out == (tmp_path / "run" / name).read_text(), name
    assert "Booting Linux" in (tmp_path / "run" / "report.html").read_text()


def test_result_json_alone_is_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_reports(run_result(), tmp_path / "run")
    alone = tmp_path / "result.json"
    alone.write_bytes((tmp_path / "run" / "result.json").read_bytes())
    for name in REPORTS:
        assert main(["report", str(alone), "--format", name]) == 0
        assert capsys.readouterr().out == (tmp_path / "run" / name).read_text(), name


def test_cases_and_counters_are_shown_where_more_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_reports(run_result(("s", arch_result())), tmp_path / "run")
    told = []
    for more in ([], ["-v"]):
        assert main(["report", str(tmp_path / "run"), *more]) == 0
        told.append(capsys.readouterr().out)
    assert [("hackbench     +10.0" in text) for text in told] == [True, True]
    assert [("hackbench: context_switches (count)" in text) for text in told] == [False, True]


def test_compare_tells_what_is_the_same_where_more_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_reports(run_result(("s", arch_result())), tmp_path / "run")
    runs = [str(tmp_path / "run")] * 2
    assert main(["compare", *runs]) == 0
    assert capsys.readouterr().out == "4 of 4 comparisons are identical, sample by sample.\n"
    assert main(["compare", *runs, "-v"]) == 0
    assert capsys.readouterr().out.count("improved, the same in both\n") == 3
