# SPDX-License-Identifier: GPL-2.0-or-later
"""``kpatch-ci try``: what is told before anything is fetched or built."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kpatch_ci.cli.main import main

DIFF = "--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-old\n+new\n"


def test_a_patch_of_documentation_is_not_built_and_the_reports_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.diff").write_text(DIFF.format("Documentation/a.rst") + DIFF.format("arch/riscv/b.c"))
    assert main(["try", "a.diff", "--json", "--output", "out"]) == 0
    said = capsys.readouterr()
    result = json.loads(said.out)
    assert result["status"] == "skipped", "never passed: nothing was tested"
    assert result["profile"] == "quick"
    (series,) = result["series"]
    assert series["arches"] == []
    assert series["chosen"][:2] == [
        "not built: Documentation/a.rst: no kernel is built from it",
        "not built: arch/riscv/b.c: none of our architectures, which are arm64 and x86_64",
    ]
    assert "nothing to build" in said.err
    assert "nothing to build" in Path("out/report.txt").read_text()
    assert "nothing to build" in Path("out/report.md").read_text()


def test_a_profile_that_is_named_is_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    patch = tmp_path / "a.diff"
    patch.write_text(DIFF.format("MAINTAINERS"))
    for given, taken in (
        (["--profile", "default"], "default"),
        (["--profile", "dvfs"], "dvfs"),
        (["--quick"], "quick"),
    ):
        assert main(["try", str(patch), "--json", *given, "--output", str(tmp_path / "out")]) == 0
        assert json.loads(capsys.readouterr().out)["profile"] == taken


def test_exports_that_were_asked_for_are_there_and_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    patch, output = tmp_path / "a.diff", tmp_path / "out"
    patch.write_text(DIFF.format("MAINTAINERS"))
    arguments = ["try", str(patch), "--format", "kcidb", "--format", "csv", "--output", str(output)]
    assert main(arguments) == 0
    assert "result.json, kcidb.json, samples.csv, logs/" in " ".join(capsys.readouterr().out.split())
    (checkout,) = json.loads((output / "kcidb.json").read_text())["checkouts"]
    assert checkout["origin"] == "kpatchci"
    assert (output / "samples.csv").read_text().count("\n") == 1


def test_an_export_that_cannot_be_written_here_is_refused_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    (tmp_path / "a.diff").write_text(DIFF.format("MAINTAINERS"))
    output = tmp_path / "out"
    assert main(["try", str(tmp_path / "a.diff"), "--format", "parquet", "--output", str(output)]) == 2
    assert "parquet needs pyarrow" in capsys.readouterr().err
    assert not output.exists()
