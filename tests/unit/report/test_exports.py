# SPDX-License-Identifier: GPL-2.0-or-later
"""What the exports say of particular results; test_every_kind.py has what holds of all."""

from __future__ import annotations

import csv
import io
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from kpatch_ci.model.errors import UserError
from kpatch_ci.model.result import ArchResult, SeriesResult
from kpatch_ci.model.status import Status
from kpatch_ci.report.document import as_document
from kpatch_ci.report.formats import check_formats, check_origin, file_name
from kpatch_ci.report.kcidb import MAX_EXCERPT, excerpt, kcidb
from kpatch_ci.report.openmetrics import to_openmetrics
from kpatch_ci.report.samples_csv import to_csv
from kpatch_ci.report.samples_parquet import to_parquet
from kpatch_ci.report.write import REPORTS, write_reports
from tests.fakes.kinds import KINDS, MARKUP
from tests.fakes.results import (
    apply_failed,
    arch_result,
    arm_result,
    boot_failed,
    build,
    build_failed,
    comparison,
    not_bisectable,
    regressed,
    run_result,
)

LABELS = {"series": "S", "arch": "arm64", "workload": "hackbench", "case": "groups=8", "metric": "time"}


def report(arch: ArchResult, **changes: object) -> dict[str, Any]:
    return kcidb(as_document(run_result(("S", arch), **changes)))


def the_test(found: dict[str, Any], path: str) -> dict[str, Any]:
    [test] = [t for t in found["tests"] if t["path"] == path and "/S/" in t["build_id"]]
    return dict(test)


def metrics(arch: ArchResult) -> dict[str, list[Any]]:
    text = to_openmetrics(as_document(run_result(("S", arch))))
    return {f.name: f.samples for f in text_string_to_metric_families(text)}


def test_a_series_that_does_not_apply_is_an_invalid_checkout_with_the_hunk_and_no_build() -> None:
    found = report(apply_failed())
    series, base = found["checkouts"]
    assert series["valid"] is False
    assert "hunk 1 of kernel/sched/core.c finds no place" in series["log_excerpt"]
    assert "long a;" in series["log_excerpt"]
    assert base["valid"] is True
    assert [b["checkout_id"] for b in found["builds"]] == [base["id"]]


def test_a_failed_build_is_a_build_with_its_status_and_log() -> None:
    base, patched = report(build_failed())["builds"]
    assert (base["status"], patched["status"]) == ("PASS", "FAIL")
    assert "CC foo.o" in patched["log_excerpt"]
    assert "log_excerpt" not in base


def test_a_kernel_that_panics_is_a_failed_boot() -> None:
    boot = the_test(report(boot_failed()), "boot")
    assert boot["status"] == "FAIL"
    assert boot["log_excerpt"].splitlines() == ["kernel panic", "Kernel panic - not syncing: Oops"]
    assert [b["boot_seed"] for b in boot["misc"]["boots"]] == [1, 2]


def test_a_figure_is_a_test_with_its_mean_and_what_statistics_say() -> None:
    primary = the_test(report(arch_result()), "hackbench")
    assert primary["status"] == "PASS"
    assert primary["number"] == {"value": pytest.approx(1.8), "unit": "s"}
    assert primary["misc"]["change_percent"] == 10.0
    assert primary["misc"]["ci_percent"] == [8.25, 12.125]
    assert primary["misc"]["baseline_mean"] == pytest.approx(2.0)
    assert primary["misc"]["verdict"] == "improved"


def test_a_regressed_primary_figure_fails_and_a_case_only_explains() -> None:
    found = report(regressed())
    assert the_test(found, "hackbench")["status"] == "FAIL"
    assert the_test(found, "hackbench.groups_8")["status"] == "DONE"
    assert the_test(found, "dd")["status"] == "DONE"
    counter = the_test(found, "hackbench.groups_8.mode_process-pipes.context_switches")
    assert counter["id"].endswith("/hackbench/groups=8,mode=process-pipes/context_switches")


def test_a_patch_in_between_and_checkers_are_tests() -> None:
    found = report(not_bisectable())
    assert the_test(found, "each")["status"] == "FAIL"
    assert the_test(found, "check.W_1")["status"] == "DONE"
    assert the_test(found, "check.W_1")["misc"]["findings"] == 1


def test_series_share_one_baseline_and_other_baselines_are_checkouts_of_their_own() -> None:
    other = replace(arm_result("baseline"), build=build("baseline", tree_id="0therbase"))
    arches = (("S", arch_result()), ("T", arch_result()), ("U", arch_result(baseline=other)))
    found = kcidb(as_document(run_result(*arches)))
    assert [c["comment"] for c in found["checkouts"]].count("baseline") == 2
    assert [b["comment"] for b in found["builds"]] == ["baseline", "patched", "patched", "baseline", "patched"]


def test_only_a_public_repository_s_commit_is_named() -> None:
    commit = "c0ffee" * 6 + "c0ff"
    debian = report(arch_result(), tree={"label": "debian:6.1", "commit": commit})["checkouts"][0]
    assert "git_commit_hash" not in debian
    public = report(arch_result(), tree={"label": "https://git.example.org/linux.git@v6.1", "commit": commit})
    assert public["checkouts"][0]["git_commit_hash"] == commit
    assert public["checkouts"][0]["git_repository_url"] == "https://git.example.org/linux.git"


def test_the_origin_begins_every_identifier() -> None:
    found = report(arch_result(), origin="my_ci")
    names = [o["id"] for kind in ("checkouts", "builds", "tests") for o in found[kind]]
    assert all(name.startswith("my_ci:2024-05-06-abc-") for name in names)


def test_two_runs_of_one_second_have_other_identifiers() -> None:
    here, there = (report(arch_result(), fingerprint={"host": {"cpu": cpu}}) for cpu in ("a", "b"))
    assert here["checkouts"][0]["id"] != there["checkouts"][0]["id"]


def test_an_excerpt_is_the_end_of_a_log_and_no_longer_than_the_limit() -> None:
    said = excerpt("it broke", "".join(f"line {n} {'x' * 400}\n" for n in range(200)))
    assert len(said) == MAX_EXCERPT
    assert said.startswith("it broke\n")
    assert said.rstrip("x").endswith("line 199 ")


def test_a_user_s_password_is_not_told_to_others() -> None:
    label = "https://me:secret@git.example.org/linux.git@topic/x"
    found = report(arch_result(), tree={"label": label}, command=f"./kpatch-ci run -t {label}")
    assert "secret" not in json.dumps(found)
    assert found["checkouts"][0]["git_repository_url"] == "https://git.example.org/linux.git"
    assert found["checkouts"][0]["tree_name"] == "https://git.example.org/linux.git@topic/x"


def test_what_is_not_known_to_have_begun_with_the_run_has_no_start() -> None:
    found = report(arch_result())
    assert [o for kind in ("builds", "tests") for o in found[kind] if "start_time" in o] == []
    assert {c["start_time"] for c in found["checkouts"]} == {"2024-05-06T07:08:09.123456+00:00"}


@pytest.mark.parametrize("origin", ["", "My", "a-b", "a:b", "a b"])
def test_an_origin_that_kcidb_does_not_take_is_refused(origin: str) -> None:
    with pytest.raises(UserError, match="lower-case letters, digits and _"):
        check_origin(origin)


def test_means_are_gauges_by_unit_with_an_arm_each() -> None:
    found = metrics(arch_result())
    case = {p.labels["arm"]: p.value for p in found["kpatch_ci_mean_seconds"] if p.labels.items() >= LABELS.items()}
    assert case == {"baseline": pytest.approx(2.0), "patched": pytest.approx(1.8)}
    assert {p.labels["metric"] for p in found["kpatch_ci_mean_events"]} == {"context_switches"}
    assert {p.labels["workload"] for p in found["kpatch_ci_mean_megabytes_per_second"]} == {"dd"}


def test_change_interval_and_verdict_are_there() -> None:
    found = metrics(arch_result())
    for name, value in (("change_percent", 10.0), ("change_low_percent", 8.25), ("change_high_percent", 12.125)):
        assert [p.value for p in found[f"kpatch_ci_{name}"] if p.labels == LABELS] == [value]
    verdicts = [p for p in found["kpatch_ci_verdict"] if p.labels.items() >= LABELS.items() and p.value == 1]
    assert [p.labels["kpatch_ci_verdict"] for p in verdicts] == ["improved"]
    assert [p.value for p in found["kpatch_ci_run_start_timestamp_seconds"]] == [pytest.approx(1714979289.123456)]


def test_what_was_not_measured_has_no_gauge() -> None:
    assert "kpatch_ci_change_percent" not in metrics(boot_failed())
    assert {p.value for p in metrics(boot_failed())["kpatch_ci_samples"]} == {0.0}


def test_a_failed_step_is_named() -> None:
    steps = metrics(build_failed())["kpatch_ci_step_status"]
    now = {(p.labels["step"], p.labels["arm"]): p.labels["kpatch_ci_step_status"] for p in steps if p.value == 1}
    assert (now["build", "patched"], now["build", "baseline"], now["apply", "patched"]) == (
        "failed",
        "passed",
        "passed",
    )


def test_label_values_come_back_as_they_were() -> None:
    families = text_string_to_metric_families(to_openmetrics(KINDS["markup in names"].document))
    [status] = [f for f in families if f.name == "kpatch_ci_series_status"]
    assert {p.labels["series"] for p in status.samples} == {MARKUP}


def test_an_unknown_unit_becomes_a_name() -> None:
    found = metrics(arch_result(comparisons=(comparison(unit="µs/Op"), comparison(unit="µ", metric="m"))))
    assert {"kpatch_ci_mean_s_op", "kpatch_ci_mean_units"} <= set(found)


def test_csv_has_seeds_and_exact_values_in_seed_order() -> None:
    exact = comparison(baseline=(0.1, 1 / 3, 1e-300), patched=(0.1 + 0.2, 5.0, 7.0))
    rows = list(csv.DictReader(io.StringIO(to_csv(as_document(run_result(("S", arch_result(comparisons=(exact,)))))))))
    assert [(r["arm"], r["boot_seed"], r["run_seed"], float(r["value"])) for r in rows] == [
        ("baseline", "1", "1", 0.1),
        ("baseline", "1", "2", 1 / 3),
        ("baseline", "2", "1", 1e-300),
        ("patched", "1", "1", 0.1 + 0.2),
        ("patched", "1", "2", 5.0),
        ("patched", "2", "1", 7.0),
    ]
    head = {"series": "S", "arch": "arm64", "workload": "hackbench", "case": "groups=8", "metric": "time", "unit": "s"}
    assert rows[0].items() >= (head | {"better": "lower", "mode": "deterministic"}).items()


def test_a_missing_sample_has_no_row_and_the_others_keep_their_seeds() -> None:
    rows = list(csv.DictReader(io.StringIO(to_csv(KINDS["tcg"].document))))
    assert [(r["arm"], r["boot_seed"], r["run_seed"]) for r in rows][3:] == [
        ("patched", "1", "1"),
        ("patched", "2", "1"),
    ]


def test_without_pyarrow_parquet_is_refused_and_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UserError, match=r"pyarrow, which is not installed \(the extra 'parquet'"):
        to_parquet(as_document(run_result()))


@pytest.mark.parametrize("name", ["parquet", "samples.parquet"])
def test_it_is_refused_before_anything_is_measured(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    check_formats(["kcidb", "csv", "samples.csv"])
    with pytest.raises(UserError, match="pyarrow"):
        check_formats(["csv", name])


def test_a_format_has_a_name_and_its_file_s(tmp_path: Path) -> None:
    assert (file_name("kcidb"), file_name("kcidb.json")) == ("kcidb.json", "kcidb.json")
    with pytest.raises(UserError, match=r"no report format 'pdf' \(one of junit, text"):
        file_name("pdf")


def test_exports_are_written_beside_the_usual_reports_where_they_are_asked_for(tmp_path: Path) -> None:
    write_reports(run_result(), tmp_path, ["csv", "kcidb"])
    assert {p.name for p in tmp_path.iterdir()} == {*REPORTS, "samples.csv", "kcidb.json"}
    assert json.loads((tmp_path / "kcidb.json").read_text())["version"]["major"] == 5


def test_a_series_on_no_architecture_is_a_checkout_of_which_nothing_is_known() -> None:
    found = kcidb(as_document(run_result(series=(SeriesResult("S", "T", "", ()),))))
    assert [("valid" in c, c["misc"]["status"]) for c in found["checkouts"]] == [(False, str(Status.SKIPPED))]
    assert set(found) == {"version", "checkouts"}
