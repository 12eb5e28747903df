# SPDX-License-Identifier: GPL-2.0-or-later
"""The verdict table and the failures, as a terminal shows them."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console, RenderableType

from kpatch_ci.model.result import ArchResult, RunResult
from kpatch_ci.model.status import Mode, Status, Verdict
from kpatch_ci.report.document import as_document
from kpatch_ci.report.failures import failures
from kpatch_ci.report.terminal import print_details, print_failures, verdict_table
from tests.fakes.results import (
    apply_failed,
    arch_result,
    boot_failed,
    build_failed,
    comparison,
    regressed,
    run_result,
    skipped,
)


def shown(renderable: RenderableType, width: int = 80) -> str:
    stream = io.StringIO()
    Console(file=stream, width=width, force_terminal=False).print(renderable)
    return stream.getvalue()


def failures_of(*arches: tuple[str, ArchResult], width: int = 80) -> str:
    stream = io.StringIO()
    print_failures(Console(file=stream, width=width), run_result(*arches), Path("results/r"))
    return stream.getvalue()


def row(text: str, *words: str) -> str:
    return next(line for line in text.splitlines() if all(w in line for w in words))


def four_by_two() -> RunResult:
    names = ("schedutil-iowait-boost", "wakeup-gran", "stack-workqueue", "all-three")
    figures = tuple(comparison(w, case="all", primary=True) for w in ("dd", "hackbench", "dbench"))
    pairs = [(n, arch_result(a, comparisons=figures)) for n in names for a in ("arm64", "x86_64")]
    return run_result(*pairs)


def test_the_default_run_fits_into_80_columns_with_nothing_cut() -> None:
    text = shown(verdict_table(four_by_two()))
    assert "…" not in text
    found = row(text, "schedutil-iowait-boost", "x86_64")
    assert found.count("+10.0%") == 3
    assert text.count("improved") == 24


def test_many_workloads_become_rows_on_a_narrow_terminal() -> None:
    figures = tuple(comparison(f"dd-variant-{n}", case="all", primary=True) for n in range(8))
    result = run_result(("S", arch_result(comparisons=figures)))
    narrow, wide = shown(verdict_table(result)), shown(verdict_table(result), 200)
    assert "+10.0%" in row(narrow, "dd-variant-7")
    assert "improved" in row(narrow, "dd-variant-7")
    assert row(wide, "dd-variant-0") == row(wide, "dd-variant-7")
    assert max(map(len, narrow.splitlines())) <= 80


def test_a_failed_stage_stands_where_figures_would_and_its_reason_below() -> None:
    text = shown(verdict_table(run_result()))
    assert "apply failed" in row(text, "no-apply", "arm64")
    assert "build failed" in row(text, "no-build", "arm64")
    assert "boot failed" in row(text, "no-boot", "arm64")
    assert "no-boot arm64: boot.patched: kernel panic" in text
    assert "dies arm64: run.patched: hackbench groups=8: exit 1" in text
    assert "-4.50%" in row(text, "worse", "arm64")


def test_nothing_measured_anywhere_still_gives_a_row_each() -> None:
    text = shown(
        verdict_table(
            run_result(("no-boot", boot_failed()), ("skipped", skipped()), ("ok", arch_result(comparisons=())))
        )
    )
    assert "boot failed" in row(text, "no-boot", "arm64")
    assert "skipped arm64: skipped: not asked for" in text
    assert "passed" in row(text, "ok", "arm64")


def test_markup_and_escape_sequences_of_a_log_are_shown_not_obeyed() -> None:
    for text in (
        shown(verdict_table(run_result(("[red]S[/red]", build_failed())))),
        failures_of(("[red]S", build_failed())),
    ):
        assert "[red]no such field[/red]" in text
        assert "[red]S" in text
        assert "\x1b" not in text


def test_a_failure_says_what_where_the_log_and_the_command() -> None:
    text = failures_of(("no-boot", boot_failed()))
    assert "boot.patched failed: no-boot on arm64, seed 2\n  kernel panic" in text
    assert "  | Kernel panic - not syncing: Oops" in text
    assert "log: results/r/logs/arm64/no-boot/console-2.log" in text
    assert "reproduce: ./kpatch-ci boot --arch arm64 --seed 2" in text


def test_a_command_is_not_broken_by_a_narrow_terminal() -> None:
    assert "reproduce: ./kpatch-ci boot --arch arm64 --seed 2" in failures_of(("no-boot", boot_failed()), width=30)


def test_a_regression_is_a_failure_to_tell() -> None:
    assert "hackbench time (all): -4.50 %" in failures_of(("worse", regressed()), width=200)


def test_nothing_is_printed_where_nothing_failed() -> None:
    assert failures_of(("S", arch_result())) == ""


def test_a_baseline_that_four_series_share_fails_once() -> None:
    bad = build_failed(arm="baseline")
    [failure] = failures(as_document(run_result(("A", bad), ("B", bad))))
    assert failure.subject == "A, B on arm64"


def test_a_patch_that_applies_nowhere_is_told_once_for_all_architectures() -> None:
    result = run_result(("A", apply_failed("arm64")), ("A", apply_failed("x86_64")), ("B", apply_failed("x86_64")))
    assert [f.subject for f in failures(as_document(result))] == ["A on arm64, x86_64", "B on x86_64"]


def test_a_failure_without_a_command_of_its_own_gets_the_runs() -> None:
    arch = arch_result(status=Status.ERROR, reason="disk full", reproduce="")
    [failure] = failures(as_document(run_result(("S", arch), mode=Mode.TCG)))
    assert (failure.reason, failure.reproduce) == ("disk full", run_result().command)


@pytest.mark.parametrize("width", [80, 120])
def test_details_show_every_comparison(width: int) -> None:
    stream = io.StringIO()
    print_details(Console(file=stream, width=width), run_result(("S", arch_result())))
    text = stream.getvalue()
    assert "+8.25..+12.1" in row(text, "context_switches")
    assert text.count("hackbench") == 3


def test_few_seeds_are_told_as_the_reason_for_no_verdict() -> None:
    reason = (
        "3 boots cannot give p below 0.75 with 3 tests; alpha 0.05 needs 7 boots or more; interval -1.00 to +2.00 %"
    )
    few = comparison(case="all", primary=True, verdict=Verdict.INCONCLUSIVE, reason=reason)
    text = shown(verdict_table(run_result(("one", arch_result(comparisons=(few,))))), 120)
    assert (
        "inconclusive: 3 boots cannot give p below 0.75 with 3 tests; alpha 0.05 needs 7 boots or more (a run" in text
    )
    wide = comparison(case="all", primary=True, verdict=Verdict.INCONCLUSIVE, reason="p = 0.2 is not below 0.05")
    text = shown(verdict_table(run_result(("one", arch_result(comparisons=(wide,))))), 120)
    assert "inconclusive: the change's interval reaches beyond the threshold" in text
    assert "inconclusive:" not in shown(verdict_table(four_by_two()))


def test_a_variants_name_takes_two_lines_so_that_the_table_stays_narrow() -> None:
    text = shown(verdict_table(run_result(("stack-workqueue+no-kthread-stacking", arch_result()))))
    assert row(text, "stack-workqueue", "arm64")
    assert "stack-workqueue+no" not in text
    assert row(text, "+no-kthread-stacking")
