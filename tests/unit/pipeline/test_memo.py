# SPDX-License-Identifier: GPL-2.0-or-later
"""Why a stage ran or was reused."""

from __future__ import annotations

from pathlib import Path

from kpatch_ci.pipeline.memo import Memo


def test_it_names_the_inputs_that_changed_since_the_last_run(tmp_path: Path) -> None:
    memo = Memo(tmp_path / "stages.json")
    assert memo.why("build", {"tree": "a", "tools": "t"}, reused=False) == "ran: for the first time"
    memo.save()
    memo = Memo(tmp_path / "stages.json")
    assert memo.why("build", {"tree": "b", "tools": "t"}, reused=False) == "ran: tree changed"
    assert memo.why("build", {"tree": "b", "tools": "t"}, reused=True) == "reused: every input is the same"
    assert memo.why("build", {"tree": "a", "tools": "t"}, reused=True) == "reused: made earlier from these inputs"
    assert "with the inputs of the last time" in memo.why("build", {"tree": "a", "tools": "t"}, reused=False)


def test_a_damaged_file_loses_explanations_only(tmp_path: Path) -> None:
    (tmp_path / "stages.json").write_text("{not json")
    assert Memo(tmp_path / "stages.json").why("x", {}, reused=False) == "ran: for the first time"
