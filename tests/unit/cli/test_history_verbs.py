# SPDX-License-Identifier: GPL-2.0-or-later
"""``kpatch-ci history``: what its verbs print, and that recording never costs a run."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kpatch_ci.cli.history import VERBS
from kpatch_ci.cli.history.shared import moment
from kpatch_ci.cli.main import main
from kpatch_ci.cli.run import conclude
from kpatch_ci.model.errors import UserError
from kpatch_ci.report.write import write_reports
from kpatch_ci.store.history.database import Database
from kpatch_ci.store.history.place import find_place
from kpatch_ci.store.history.query import read_run
from kpatch_ci.store.history.record import record
from tests.fakes.nights import PLANTED, virtual_time
from tests.fakes.recorded import comparisons, document
from tests.fakes.results import arch_result, regressed, run_result

PROJECT = Path(__file__).resolve().parents[3]
Output = pytest.CaptureFixture[str]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The history that commands mean; the current directory is an empty one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KPATCH_CI_HISTORY", str(tmp_path / "h.db"))
    return tmp_path / "h.db"


@pytest.fixture
def three(file: Path) -> Path:
    """A history of three nights."""
    for number in range(3):
        record(Database(find_place(str(file))), document(number, status="failed" if number == 1 else "passed"))
    return file


def said(capsys: Output, *arguments: str, code: int = 0) -> str:
    assert main(["history", *arguments]) == code
    return capsys.readouterr().out


def test_list(three: Path, capsys: Output) -> None:
    lines = said(capsys, "list").splitlines()
    assert [line.split()[0] for line in lines if line.startswith("2026")] == [f"2026010{n}-020000" for n in (1, 2, 3)]
    found = json.loads(said(capsys, "list", "--status", "failed", "--json"))["runs"]
    assert [run["name"] for run in found] == ["20260102-020000"]
    assert said(capsys, "list", "--until", "2026-01-02", "--since", "2026-01-02", "--json").count('"name"') == 1
    assert said(capsys, "list", "--series", "absent") == ""


def test_show_is_the_report(three: Path, capsys: Output) -> None:
    assert "hackbench" in said(capsys, "show")
    assert json.loads(said(capsys, "show", "20260102", "--json")) == document(1, status="failed")
    text = said(capsys, "show", "20260101", "--format", "report.txt")
    assert "good" in text


def test_compare(three: Path, capsys: Output) -> None:
    assert "comparisons are identical" in said(capsys, "compare", "20260101", "20260103")
    assert json.loads(said(capsys, "compare", "20260101", "--json"))["inputs"] == []
    changed = document(5)
    comparisons(changed)[0]["patched"][0] = 77.0
    record(Database(find_place(str(three))), changed)
    assert main(["history", "compare", "20260101"]) == 1


def test_trend(three: Path, capsys: Output) -> None:
    arguments = ("trend", "--series", "good", "--arch", "arm64", "--workload", "hackbench")
    rows = [line for line in said(capsys, *arguments).splitlines() if line.startswith("2026")]
    assert len(rows) == 3
    found = json.loads(said(capsys, *arguments, "--case", "groups=8", "--json"))["runs"]
    assert {(r["case"], r["metric"]) for r in found} == {("groups=8", "time")}
    assert [r["change_percent"] for r in found] == [10.0] * 3


def test_trend_of_several_names_them(three: Path, capsys: Output) -> None:
    assert main(["history", "trend", "--workload", "hackbench"]) == 2
    error = capsys.readouterr().err
    assert "good arm64 hackbench all time" in error
    assert "worse arm64 hackbench all time" in error


def test_export_and_record_again(three: Path, tmp_path: Path, capsys: Output) -> None:
    text = said(capsys, "export")
    assert [json.loads(line)["run_id"] for line in text.splitlines()] == [f"2026010{n}-020000" for n in (1, 2, 3)]
    (tmp_path / "all.jsonl").write_text(text)
    again = ("record", "--history", str(tmp_path / "other.db"), str(tmp_path / "all.jsonl"), "--json")
    assert [one["new"] for one in json.loads(said(capsys, *again))["results"]] == [True] * 3
    assert [one["new"] for one in json.loads(said(capsys, *again))["results"]] == [False] * 3
    assert said(capsys, "export", "--history", str(tmp_path / "other.db")) == text


def test_export_of_figures_and_samples(three: Path, capsys: Output) -> None:
    rows = list(csv.DictReader(io.StringIO(said(capsys, "export", "--format", "csv", "--limit", "1"))))
    wanted = comparisons(document(2))
    assert [(r["workload"], r["case"], r["metric"], r["verdict"]) for r in rows] == [
        (c["workload"], c["case"], c["metric"], c["verdict"]) for c in wanted
    ]
    samples = list(csv.DictReader(io.StringIO(said(capsys, "export", "--format", "samples", "--limit", "1"))))
    assert len(samples) == sum(len(c["seeds"]) for c in wanted)


def test_record_takes_what_it_can_and_names_the_rest(file: Path, tmp_path: Path, capsys: Output) -> None:
    write_reports(run_result(("s", arch_result())), tmp_path / "good")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "result.json").write_text('{"schema": "kpatch-ci/result/1"')
    assert main(["history", "record", "bad", "absent", "good"]) == 2
    error = capsys.readouterr().err
    assert "bad/result.json: is damaged, no JSON" in error
    assert "absent: no such result" in error
    assert "1 recorded, 0 known already, 2 could not be read" in error


def test_a_result_of_an_older_version_is_kept_as_it_is(file: Path, tmp_path: Path, capsys: Output) -> None:
    older = document(0)
    for one in comparisons(older):
        del one["mde_percent"], one["units"]
    (tmp_path / "old.json").write_text(json.dumps(older))
    assert main(["history", "record", "old.json", "old.json"]) == 0
    assert "1 recorded, 1 known already" in capsys.readouterr().err
    assert json.loads(said(capsys, "export")) == older


@pytest.fixture
def planted(file: Path) -> Path:
    """A history of two hundred nights, three changes in them."""
    database = Database(find_place(str(file)))
    keys = {"compiler": "gcc_arm64", "QEMU": "qemu"}
    for number, night in enumerate(virtual_time(1, PLANTED, moves=0.0)):
        if number % 10 and number not in PLANTED and number - 1 not in PLANTED and number + 1 not in PLANTED:
            continue
        given = document(number)
        given["fingerprint"] |= {keys[k]: v for k, v in night.conditions.items() if k in keys}
        (good,) = (s["arches"][0] for s in given["series"] if s["name"] == "good")
        good["build"]["baseline"]["tree_id"] = night.conditions["kernel source"]
        good["build"]["patched"]["image_digest"] = f"{night.conditions['kernel source']} {night.conditions['compiler']}"
        for one in good["comparisons"]:
            if one["metric"] == "time":
                one |= {"seeds": list(night.values), "patched": list(night.values.values())}
                one["baseline"] = [1.0] * len(night.values)
        record(database, given)
    return file


def test_changes(planted: Path, capsys: Output) -> None:
    found = json.loads(said(capsys, "changes", "--series", "good", "--arm", "patched", "--json"))["changes"]
    assert [(c["run"][:8], c["standing"], [cause["what"] for cause in c["causes"]]) for c in found] == [
        ("20260302", "recovered", ["compiler"]),
        ("20260421", "improved", ["kernel source"]),
        ("20260610", "open", ["QEMU"]),
    ]
    text = said(capsys, "changes", "--open", code=1)
    assert "20260610-020000 (2026-06-10T02:00): changed since 20260609-020000: QEMU q -> new160" in text
    assert "open -5." in text
    assert "good (patched) on debian:6.1, arm64: hackbench time: " in text
    assert "    shows in groups=8 time -5." in text
    assert "crosses default: 2 %" in text
    assert said(capsys, "changes", "--open", "--threshold", "hackbench.time=9%") == ""
    assert "shows in groups=8 time" in said(capsys, "changes", "--case", "groups=8", "--metric", "time")
    assert said(capsys, "changes", "--case", "groups=8", "--metric", "context_switches") == ""
    assert said(capsys, "changes", "--workload", "dd") == ""
    every = json.loads(said(capsys, "changes", "--case", "groups=8", "--all", "--json"))
    assert {(c["line"]["case"], c["alert"]) for c in every["changes"]} == {("all", True), ("groups=8", False)}
    assert {(one["boots"], one["tests"], one["needed"]) for one in every["reach"]} == {(6, 1, 6)}
    assert main(["history", "changes", "--threshold", "time"]) == 2


def test_nothing_recorded_yet(file: Path, capsys: Output) -> None:
    for verb in ("list", "show", "trend", "changes", "export"):
        assert main(["history", verb]) == 2
        assert f"{file}: there is no history yet" in capsys.readouterr().err
    assert not file.exists()


def test_the_place_is_the_options_then_the_environments_then_the_files(
    tmp_path: Path, file: Path, capsys: Output
) -> None:
    (tmp_path / "pipeline.yaml").write_text("history: from-file.db\n")
    for arguments, place in ((["--history", "given.db"], "given.db"), ([], "h.db")):
        main(["history", "list", *arguments])
        assert str(tmp_path / place) in capsys.readouterr().err


def test_the_files_place(tmp_path: Path, file: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KPATCH_CI_HISTORY")
    (tmp_path / "pipeline.yaml").write_text("history: from-file.db\n")
    main(["history", "list"])
    assert str(tmp_path / "from-file.db") in capsys.readouterr().err
    assert main(["history", "list", "-c", "absent.yaml"]) == 2


@pytest.mark.parametrize("verb", VERBS)
def test_help_teaches(verb: str, capsys: Output) -> None:
    text = said(capsys, verb, "--help")
    assert len(text.splitlines()) > 8
    assert "--history" in text
    assert all(f"\n  {name} " in said(capsys, "--help") for name in VERBS)  # once its verbs are imported, too


def test_help_does_not_load_the_database() -> None:
    code = (
        "import sys\nfrom kpatch_ci.cli.main import main\n"
        "for argv in (['--help'], ['check', '--help'], ['run', '--help'], ['history', '--help'], ['history', 'changes', '--help']):\n"
        "    assert main(argv) == 0\n"
        "found = [m for m in ('sqlalchemy', 'alembic', 'psycopg', 'ruptures') if m in sys.modules]\n"
        "assert not found, found\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=PROJECT, check=True, stdout=subprocess.DEVNULL)


def concluded(tmp_path: Path, place: str | None, *kind: Any) -> int:
    result = run_result(("s", *kind))
    return conclude(result, tmp_path / "run", as_json=False, history=None if place is None else find_place(place))


def test_a_run_records_itself(tmp_path: Path, file: Path, capsys: Output) -> None:
    assert concluded(tmp_path, str(file), arch_result()) == 0
    assert "history: recorded as 2024-05-06-abc" in capsys.readouterr().err
    found = read_run(Database(find_place(str(file))), "latest")
    assert found == json.loads((tmp_path / "run" / "result.json").read_text())
    assert main(["history", "record", str(tmp_path / "run")]) == 0
    assert "0 recorded, 1 known already" in capsys.readouterr().err


def test_no_history_records_nothing(tmp_path: Path, file: Path) -> None:
    assert concluded(tmp_path, None, arch_result()) == 0
    assert not file.exists()


@pytest.mark.parametrize(("kind", "code"), [(arch_result(), 0), (regressed(), 1)])
def test_a_history_that_fails_costs_nothing(tmp_path: Path, file: Path, capsys: Output, kind: Any, code: int) -> None:
    file.write_text("no database, and longer than a header of one is: " * 10)
    assert concluded(tmp_path, str(file), kind) == code
    error = capsys.readouterr().err
    assert "warning: this run is not in the history" in error
    assert f"./kpatch-ci history record {tmp_path / 'run'}" in error
    assert (tmp_path / "run" / "result.json").is_file()
    file.unlink()
    assert main(["history", "record", str(tmp_path / "run")]) == 0


@pytest.mark.parametrize("verb", [["run"], ["try", "a.patch"]])
def test_a_place_that_is_none_is_said_before_any_work(
    verb: list[str], tmp_path: Path, file: Path, capsys: Output
) -> None:
    (tmp_path / "a.patch").write_text((PROJECT / "tests/data/mails/format-patch.patch").read_text())
    assert main([*verb, "-c", str(PROJECT / "pipeline.yaml"), "--history", "mysql://ci:s3cret@db/x"]) == 2
    error = capsys.readouterr().err
    assert "'mysql' is not known" in error
    assert "s3cret" not in error


def test_times() -> None:
    assert moment("2026-01-02", "--since") == 1767312000
    assert moment("2026-01-02", "--until", end=True) == pytest.approx(1767312000 + 86400)
    assert moment("2026-01-02T01:00+01:00", "--since") == 1767312000
    with pytest.raises(UserError, match=r"--since: 'yesterday' is no time .*30d"):
        moment("yesterday", "--since")
