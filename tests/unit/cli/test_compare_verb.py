# SPDX-License-Identifier: GPL-2.0-or-later
"""``kpatch-ci compare``: figures side by side where they may be, and else what differs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kpatch_ci.cli.main import main
from kpatch_ci.model.status import Mode
from kpatch_ci.report.write import to_json, write_document, write_reports
from tests.fakes.kinds import old_document
from tests.fakes.recorded import comparisons, document
from tests.fakes.results import arch_result, comparison, regressed, run_result

Text = pytest.CaptureFixture[str]


@pytest.fixture
def places(tmp_path: Path) -> tuple[str, str, str]:
    """Two runs that differ in figures only, and one of another QEMU."""
    write_reports(run_result(("S", arch_result())), tmp_path / "a")
    write_reports(run_result(("S", regressed())), tmp_path / "b")
    write_reports(run_result(("S", regressed()), fingerprint={"qemu": {"version": "11"}}), tmp_path / "c")
    return str(tmp_path / "a"), str(tmp_path / "b" / "result.json"), str(tmp_path / "c")


def test_equal_runs_end_with_0_and_others_with_1(places: tuple[str, str, str], capsys: Text) -> None:
    assert main(["compare", places[0], places[0]]) == 0
    assert capsys.readouterr().out == "4 of 4 comparisons are identical, sample by sample.\n"
    assert main(["compare", places[0], places[1]]) == 1
    assert "hackbench all time: verdict improved -> regressed" in capsys.readouterr().out


def test_unlike_runs_are_refused_with_what_differs(places: tuple[str, str, str], capsys: Text) -> None:
    assert main(["compare", places[0], places[2]]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert f"  qemu.version: {places[0]} 10.0.2, {places[2]} 11\n--unlike compares them all the same" in said.err


def test_unlike_runs_are_compared_on_request(places: tuple[str, str, str], capsys: Text) -> None:
    assert main(["compare", places[0], places[2], "--unlike"]) == 1
    out = capsys.readouterr().out
    assert "These runs differ in what they measured with:\n  qemu.version: " in out
    assert "verdict improved -> regressed" in out


def test_json_has_every_row_with_both_sides(places: tuple[str, str, str], capsys: Text) -> None:
    assert main(["compare", places[0], places[1], "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["comparable"], found["refused"], found["identical"]) == (True, False, False)
    assert found["statuses"] == [{"key": "S.arm64", "a": "passed", "b": "failed"}]
    row = found["rows"][0]
    assert (row["case"], row["verdicts"], row["patched_percent"]) == ("all", ["improved", "regressed"], 0.0)
    assert (row["a"]["change_percent"], row["b"]["change_percent"]) == (10.0, -4.5)


def test_json_of_a_refusal_has_the_reasons_and_no_figures(places: tuple[str, str, str], capsys: Text) -> None:
    assert main(["compare", places[0], places[2], "--json"]) == 2
    found = json.loads(capsys.readouterr().out)
    assert (found["comparable"], found["refused"], found["identical"], found["rows"]) == (False, True, False, [])
    unlike = [i for i in found["inputs"] if i["unlike"]]
    assert unlike == [{"key": "qemu.version", "a": "10.0.2", "b": "11", "expected": False, "unlike": True}]


def test_an_old_file_is_read(tmp_path: Path, capsys: Text) -> None:
    (tmp_path / "old.json").write_text(to_json(old_document()))
    write_document(old_document(), tmp_path / "new")
    assert main(["compare", str(tmp_path / "old.json"), str(tmp_path / "new")]) == 0
    assert "1 of 1 comparisons" in capsys.readouterr().out


def test_unlike_accelerators_stay_refused(tmp_path: Path, capsys: Text) -> None:
    for name, mode in (("a", Mode.TCG), ("b", Mode.KVM)):
        write_reports(run_result(("S", arch_result(comparisons=(comparison(mode=mode),))), mode=mode), tmp_path / name)
    assert main(["compare", str(tmp_path / "a"), str(tmp_path / "b"), "--unlike"]) == 2
    assert "measured by unlike accelerators" in capsys.readouterr().err


def test_json_holds_both_sides(tmp_path: Path, capsys: Text) -> None:
    other = document(1)
    comparisons(other)[0]["patched"][0] = 77.0
    for name, made in (("a", document(0)), ("b", other)):
        (tmp_path / f"{name}.json").write_text(json.dumps(made))
    a, b = str(tmp_path / "a.json"), str(tmp_path / "b.json")
    assert main(["compare", a, b, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["identical"], found["comparable"], found["inputs"]) == (False, True, [])
    (row,) = (row for row in found["rows"] if not row["identical"])
    assert (row["a"]["patched"][0], row["b"]["patched"][0]) != (77.0, 77.0)
    assert row["b"]["patched"][0] == 77.0
    assert main(["compare", a, a, "--json"]) == 0
