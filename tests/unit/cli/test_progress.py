# SPDX-License-Identifier: GPL-2.0-or-later
"""Lines of progress: what a patch's subject says stays words."""

from __future__ import annotations

from rich.console import Console

from kpatch_ci.cli.progress import PlainProgress, summary
from kpatch_ci.model.each import CheckResult
from kpatch_ci.model.status import Status
from kpatch_ci.pipeline.engine import Node
from tests.fakes.results import HOSTILE, patch_builds


def test_a_break_is_told_without_the_subjects_escape_sequences() -> None:
    console = Console(record=True, width=300)
    progress = PlainProgress(console)
    progress.finished(Node("each arm64 s", "each", lambda _: None), patch_builds(), 1.0, known=False)
    said = console.export_text()
    assert "each arm64 s: FAILED: not bisectable: patch 2/3" in said
    assert "[bold]x[/bold]" in said
    assert "\x1b" in HOSTILE
    assert "\x1b" not in said


def test_patches_and_findings_are_counted() -> None:
    assert summary(patch_builds(broken=False), 2.0, known=False) == "3 of 3 patches build, 2.0 s"
    assert summary(CheckResult("W=1", Status.PASSED), 2.0, known=False) == "0 new findings, 2.0 s"
    assert summary(CheckResult("W=1", Status.ERROR, reason="why"), 2.0, known=False) == "ERROR: why"


def test_a_second_round_adds_to_what_is_ahead_and_says_why() -> None:
    console = Console(record=True, width=300)
    progress = PlainProgress(console)
    progress.planned([Node("a", "run", lambda _: None)] * 3)
    progress.note("round 2: 24 boots an arm")
    progress.planned([Node("b", "run", lambda _: None)] * 2)
    progress.finished(Node("a", "run", lambda _: None), CheckResult("W=1", Status.ERROR), 1.0, known=False)
    said = console.export_text()
    assert "stages: 3 measure" in said
    assert "round 2: 24 boots an arm" in said
    assert "stages: 2 measure" in said
    assert progress._counts("run") == "measure: 1/5"
