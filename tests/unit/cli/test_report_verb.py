# SPDX-License-Identifier: GPL-2.0-or-later
"""``kpatch-ci report``: any report again, from result.json alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kpatch_ci.cli.main import main
from kpatch_ci.report.formats import EXPORTS, FORMATS
from kpatch_ci.report.write import REPORTS, write_reports
from tests.fakes.results import arch_result, arm_result, boot, run_result

Captured = pytest.CaptureFixture[bytes]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    console = tmp_path / "console"
    console.write_text("[    0.0] Booting Linux\n")
    arm = arm_result("patched", boots=(boot(1, "patched", console=console),))
    write_reports(run_result(("s", arch_result(patched=arm)), origin="my_ci"), tmp_path / "run", EXPORTS)
    return tmp_path / "run"


@pytest.mark.parametrize(("name", "file"), [*FORMATS.items(), *((file, file) for file in FORMATS.values())])
def test_every_report_is_remade_as_it_was(run: Path, capsysbinary: Captured, name: str, file: str) -> None:
    assert main(["report", str(run), "--format", name]) == 0
    assert capsysbinary.readouterr().out == (run / file).read_bytes()


def test_the_page_has_the_console_that_lies_beside_it(run: Path) -> None:
    assert "Booting Linux" in (run / "report.html").read_text()


def test_result_json_alone_is_enough(tmp_path: Path, capsysbinary: Captured) -> None:
    write_reports(run_result(), tmp_path / "run")
    alone = tmp_path / "result.json"
    alone.write_bytes((tmp_path / "run" / "result.json").read_bytes())
    for name in REPORTS:
        assert main(["report", str(alone), "--format", name]) == 0
        assert capsysbinary.readouterr().out == (tmp_path / "run" / name).read_bytes(), name


def test_a_report_goes_to_the_file_that_is_named(run: Path, tmp_path: Path, capsysbinary: Captured) -> None:
    target = tmp_path / "there" / "x.csv"
    assert main(["report", str(run), "--format", "csv", "-o", str(target)]) == 0
    assert target.read_bytes() == (run / "samples.csv").read_bytes()
    assert capsysbinary.readouterr().out == b""


def test_another_origin_may_submit_it(run: Path, capsysbinary: Captured) -> None:
    for arguments, origin in ([], "my_ci"), (["--origin", "other"], "other"):
        assert main(["report", str(run), "--format", "kcidb", *arguments]) == 0
        found = json.loads(capsysbinary.readouterr().out)
        assert {c["origin"] for c in found["checkouts"]} == {origin}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--origin", "No Good"], "KCIDB takes no origin 'No Good' (lower-case letters, digits and _)"),
        (["--format", "pdf"], "'pdf' is not one of"),
        (["-o", "x"], "--output: the terminal's report has no file (a --format)"),
        (["--format", "csv", "-o", "/dev/null"], "/dev/null: is no regular file"),
    ],
)
def test_what_cannot_be_is_refused(run: Path, capsysbinary: Captured, arguments: list[str], said: str) -> None:
    assert main(["report", str(run), *arguments]) == 2
    assert said in capsysbinary.readouterr().err.decode()


def test_a_binary_report_does_not_go_to_a_terminal(
    run: Path, capsysbinary: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kpatch_ci.cli.report.at_terminal", lambda: True)
    assert main(["report", str(run), "--format", "parquet"]) == 2
    assert "parquet is binary and stdout is a terminal (--output FILE)" in capsysbinary.readouterr().err.decode()
    assert main(["report", str(run), "--format", "csv"]) == 0


def test_without_pyarrow_the_extra_is_named(run: Path, capsysbinary: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert main(["report", str(run), "--format", "parquet"]) == 2
    assert "needs pyarrow, which is not installed (the extra 'parquet': " in capsysbinary.readouterr().err.decode()


def test_cases_and_counters_are_shown_where_more_is_asked_for(tmp_path: Path, capsysbinary: Captured) -> None:
    write_reports(run_result(("s", arch_result())), tmp_path / "run")
    told = []
    for more in ([], ["-v"]):
        assert main(["report", str(tmp_path / "run"), *more]) == 0
        told.append(capsysbinary.readouterr().out.decode())
    assert [("hackbench     +10.0" in text) for text in told] == [True, True]
    assert [("hackbench: context_switches (count)" in text) for text in told] == [False, True]


def test_compare_tells_what_is_the_same_where_more_is_asked_for(tmp_path: Path, capsysbinary: Captured) -> None:
    write_reports(run_result(("s", arch_result())), tmp_path / "run")
    runs = [str(tmp_path / "run")] * 2
    assert main(["compare", *runs]) == 0
    assert capsysbinary.readouterr().out == b"4 of 4 comparisons are identical, sample by sample.\n"
    assert main(["compare", *runs, "-v"]) == 0
    assert capsysbinary.readouterr().out.count(b"improved, the same in both\n") == 3
