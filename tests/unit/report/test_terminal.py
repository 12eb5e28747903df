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
    assert text.splitlines()[2:6] == [
        "schedutil-iowait-boost arm64",
        "  dd            +10.0  +8.25..+12.1  0.0421  improved",
        "  hackbench     +10.0  +8.25..+12.1  0.0421  improved",
        "  dbench        +10.0  +8.25..+12.1  0.0421  improved",
    ]
    assert text.count("improved") == 24


def test_a_wide_terminal_has_a_row_for_series_architecture_and_workload() -> None:
    lines = shown(verdict_table(four_by_two()), 100).splitlines()
    assert lines[0] == "series                  arch    workload   change %    interval %   p adj  verdict"
    assert lines[2:6] == [
        "schedutil-iowait-boost  arm64   dd            +10.0  +8.25..+12.1  0.0421  improved",
        "                                hackbench     +10.0  +8.25..+12.1  0.0421  improved",
        "                                dbench        +10.0  +8.25..+12.1  0.0421  improved",
        "                        x86_64  dd            +10.0  +8.25..+12.1  0.0421  improved",
    ]
    assert len(lines) == 2 + 24


def test_the_minimum_detectable_effect_has_a_column_where_one_is_known() -> None:
    figures = [comparison(w, case="all", primary=True, mde_percent=m) for w, m in (("dd", 0.731), ("dbench", None))]
    text = shown(verdict_table(run_result(("S", arch_result(comparisons=tuple(figures))))))
    assert row(text, "series").endswith("p adj  MDE %  verdict")
    assert row(text, "dd ").endswith("0.0421   0.73  improved")
    assert row(text, "dbench").endswith("0.0421         improved")


@pytest.mark.parametrize("width", [30, 45, 60, 80])
def test_columns_that_do_not_fit_are_left_out_and_no_row_is_broken(width: int) -> None:
    lines = shown(verdict_table(four_by_two()), width).splitlines()
    rows = [line for line in lines if "improved" in line]
    assert len(rows) == 24
    assert all("+10.0" in line and len(line) <= width for line in rows)
    assert ("+8.25" in rows[0]) == (width >= 60)


def test_many_workloads_are_rows_that_fit() -> None:
    figures = tuple(comparison(f"dd-variant-{n}", case="all", primary=True) for n in range(8))
    text = shown(verdict_table(run_result(("S", arch_result(comparisons=figures)))))
    assert row(text, "dd-variant-7").split() == ["dd-variant-7", "+10.0", "+8.25..+12.1", "0.0421", "improved"]
    assert max(map(len, text.splitlines())) <= 80


def test_a_failed_stage_stands_where_figures_would_and_its_reason_below() -> None:
    text = shown(verdict_table(run_result()))
    assert "apply failed" in row(text, "no-apply", "arm64")
    assert "build failed" in row(text, "no-build", "arm64")
    assert "boot failed" in row(text, "no-boot", "arm64")
    assert "no-boot arm64: boot.patched: kernel panic" in text
    assert "dies arm64: run.patched: hackbench groups=8: exit 1" in text
    assert "-4.50 " in row(text, "worse", "arm64")


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
    lines = stream.getvalue().splitlines()
    at = lines.index("hackbench: context_switches (count), lower is better")
    assert lines[at + 1].startswith("  mode=process-pipes ")
    assert lines[at + 1].endswith("+10.0  +8.25..+12.1  0.0421  improved")
    assert ("3.33e+08" in lines[at + 1]) == (width == 120)
    assert sum("+8.25..+12.1" in line for line in lines) == 4


def test_details_say_once_what_all_cases_share() -> None:
    cases = [comparison(metric=m, case=f"fs={f},bs=4k") for m in ("time", "wakeups") for f in ("xfs", "ext4")]
    stream = io.StringIO()
    print_details(Console(file=stream, width=80), run_result(("S", arch_result(comparisons=tuple(cases)))))
    text = stream.getvalue()
    assert text.count("bs=4k") == 1
    assert row(text, "hackbench: time (s), lower is better; bs=4k")
    assert text.count("  fs=xfs  ") == 2


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


def test_a_variants_long_name_has_a_line_of_its_own_on_a_narrow_terminal() -> None:
    lines = shown(verdict_table(run_result(("stack-workqueue+no-kthread-stacking", arch_result())))).splitlines()
    assert "stack-workqueue+no-kthread-stacking arm64" in lines
    assert max(map(len, lines)) <= 80
