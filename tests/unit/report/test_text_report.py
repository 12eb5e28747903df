# SPDX-License-Identifier: GPL-2.0-or-later
"""report.txt and report.md, read as a mail's reader would."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace

from kpatch_ci.model.result import RunResult, SeriesResult
from kpatch_ci.model.status import Mode, Verdict
from kpatch_ci.report.lines import WIDTH, pasteable
from kpatch_ci.report.markdown import escape, to_markdown
from kpatch_ci.report.text import to_text
from tests.fakes.results import (
    apply_failed,
    arch_result,
    build_failed,
    comparison,
    everything,
    replicate_failed,
    run_result,
)


def line_with(text: str, words: str) -> str:
    [line] = [found for found in text.splitlines() if words in found]
    return line


def test_no_line_is_longer_than_a_mail_takes() -> None:
    long = arch_result(
        reason="word " * 40,
        comparisons=(
            comparison(
                "dd-with-a-suffix",
                case="rw=read,bs=1048576,count=4096,fs=xfs,direct=1",
                change_percent=-123456.7,
                ci_percent=(-99999.4, 9999.4),
                baseline=(9.9e7, 9.9e7, 9.9e7),
                patched=(-1e-5, 1e12, 0.0),
                p_adjusted=1.0,
                verdict=Verdict.INCONCLUSIVE,
            ),
        ),
    )
    text = to_text(run_result(*everything(), ("x" * 100, long)))
    assert max(map(len, text.splitlines())) <= WIDTH == 72


def test_it_is_plain_ascii_without_control_characters() -> None:
    text = to_text(run_result(("no-build", build_failed()), ("ähm\u2013\u201cq\u201d\u2026", arch_result())))
    assert text.isascii()
    assert all(c.isprintable() or c == "\n" for c in text)
    assert 'ahm-"q"... on arm64' in text
    assert "<b>[bold]x[/bold]</b> & `y` ? | cafe 'q'" in text


def test_a_case_has_change_interval_p_and_verdict() -> None:
    row = line_with(to_text(run_result(("S", arch_result()))), "groups=8                 ")
    assert row.split() == ["groups=8", "+10.0", "+8.25..+12.1", "0.0421", "improved"]


def test_a_missing_figure_is_a_dash_and_its_reason_is_told() -> None:
    text = to_text(run_result(("dies", replicate_failed())))
    assert line_with(text, "  hackbench   ").split() == ["hackbench", "-", "-", "-", "failed"]
    assert "hackbench time: failed, no figure\n  1 of 3 replicates failed\n" in text


def test_what_the_patch_did_stands_before_all_else() -> None:
    head = to_text(run_result(("S", arch_result()), ("half", build_failed()))).splitlines()[:8]
    assert head == [
        "kpatch-ci: 2 series on debian:6.1, 6.1.140: failed",
        "=" * 72,
        "Verdicts                          chg %         CI %  p adj verdict",
        "S, arm64: passed",
        "  hackbench                       +10.0 +8.25..+12.1 0.0421 improved",
        "  dd                              +10.0 +8.25..+12.1 0.0421 inconclusive",
        "half, arm64: failed (the build failed)",
        "",
    ]


def test_the_minimum_detectable_effect_has_a_column_where_it_is_known() -> None:
    known = comparison(case="all", primary=True, mde_percent=1.8765)
    text = to_text(run_result(("S", arch_result(comparisons=(known, comparison(mde_percent=None))))))
    assert line_with(text, "Verdicts") == "Verdicts                    chg %         CI %  p adj MDE % verdict"
    assert line_with(text, "  hackbench   ") == "  hackbench                 +10.0 +8.25..+12.1 0.0421  1.88 improved"
    sentence = "hackbench time: improved, +10.0 %; interval +8.25..+12.1 %; adjusted p 0.0421; minimum detectable effect 1.88 %"
    assert sentence in " ".join(text.split())
    assert "MDE: minimum detectable effect, the smallest true change" in " ".join(text.split())
    assert "MDE" not in to_text(run_result(("S", arch_result())))


def test_migrations_per_1000_switches_stand_below_the_counters() -> None:
    figures = (
        comparison(case="all", primary=True),
        comparison(metric="context_switches", baseline=(3060.0,) * 3, patched=(2760.0,) * 3),
        comparison(metric="migrations", baseline=(306.0,) * 3, patched=(0.0,) * 3),
    )
    lines = to_text(run_result(("S", arch_result(comparisons=figures)))).splitlines()
    at = lines.index(" migrations per 1000 context switches (not tested)")
    assert lines[at + 1].split() == ["groups=8", "100.0", "0"]
    assert lines.index(" migrations") < at


def test_counters_stand_in_a_table_of_their_own() -> None:
    figures = [comparison(metric=m, case=f"groups={n},mode=process-pipes") for m in ("wakeups", "x") for n in (1, 2)]
    heads = comparison(case="all", primary=True)
    before, after = to_text(run_result(("S", arch_result(comparisons=(heads, *figures))))).split("hackbench: counters")
    assert "wakeups" not in before
    assert after.splitlines()[:4] == [
        "  baseline   patched  chg %         CI % verdict",
        " wakeups",
        "  groups=1              2.000     1.800  +10.0 +8.25..+12.1 improved",
        "  groups=2              2.000     1.800  +10.0 +8.25..+12.1 improved",
    ]


def test_it_says_what_the_figures_were_measured_with() -> None:
    fingerprint = {"qemu": "10.0.2", "arches": {"arm64": {"accelerator": "tcg, icount shift=0"}}}
    text = to_text(run_result(("S", arch_result()), fingerprint=fingerprint))
    assert (
        "  machine: arm64-machine\n  kernel:  6.1.140, config config\n  qemu:    10.0.2; tcg, icount shift=0\n" in text
    )
    assert "  seeds:   hackbench, dd: 3 of 2 boots, 1.1 to 2.1 (boot.run)\n" in text


def test_a_command_with_an_endless_word_can_still_be_pasted() -> None:
    command = f"./kpatch-ci run --output {'/deep' * 40} --seeds 3"
    lines = pasteable(command)
    assert max(map(len, lines)) <= 72
    assert shlex.split("\n".join(lines).replace("\\\n", "")) == shlex.split(command)


def test_it_says_how_it_applied_built_and_booted() -> None:
    text = to_text(run_result(("S", arch_result())))
    assert "as-mailed, 1 files changed" in text
    assert "baseline reused; patched 7 objects in 62 s; 1 new warnings" in text
    assert "kernel/sched/fair.c:77: unused variable 'b'" in text
    assert "2 of 2 boots, 8 CPUs" in text
    assert "sched_feature SCALE_WAKEUP_GRAN: in patched only" in text


def test_it_says_what_virtual_time_does_not_measure() -> None:
    words = " ".join(to_text(run_result()).split())
    assert "no cache, TLB or branch model" in words
    assert "share one instruction stream" in words
    kvm = run_result(("S", arch_result(comparisons=(comparison(mode=Mode.KVM),))), mode=Mode.KVM)
    for text in (to_text(kvm), to_markdown(kvm)):
        assert "byte for byte" not in text
        assert "own CPUs (KVM) in real time: figures depend on this host" in " ".join(text.split())


def test_it_counts_runs_by_arm_where_there_are_no_pairs() -> None:
    figures = (comparison(primary=True, mode=Mode.TCG, patched=(1.0, None, 2.0)),)
    assert "3 and 2 runs" in to_text(run_result(("S", arch_result(comparisons=figures)), mode=Mode.TCG))
    assert "3 pairs" in to_text(run_result(("S", arch_result(comparisons=(comparison(primary=True),)))))


def test_architectures_of_unlike_modes_have_a_note_each() -> None:
    mixed = [
        ("S", arch_result(a, comparisons=(comparison(mode=m),))) for a, m in (("arm64", Mode.TCG), ("x86_64", Mode.KVM))
    ]
    words = " ".join(to_text(run_result(*mixed, mode=Mode.TCG)).split())
    assert "tcg: Emulated CPUs (TCG) in the host's real time" in words
    assert "kvm: The host's own CPUs (KVM) in real time" in words


def test_the_fingerprint_is_flattened_and_the_command_can_be_pasted() -> None:
    text = to_text(run_result())
    assert "  qemu.version: 10.0.2\n" in text
    command = text.partition("To reproduce\n")[2].replace("\\\n", " ").split()
    assert " ".join(command) == run_result().command


def test_a_failure_brings_its_log_and_command() -> None:
    text = to_text(run_result(("no-build", build_failed())))
    assert "build.patched failed: no-build on arm64" in text
    assert "  | CC foo.o" in text
    assert "log:     logs/arm64/no-build/build.log" in text
    assert "    make ARCH=arm64 patched" in text


def test_a_run_of_nothing_can_be_reported() -> None:
    empty: RunResult = run_result(series=(), fingerprint={}, tree={}, command="")
    assert "0 series" in to_text(empty)
    assert "kpatch-ci: error" in to_markdown(empty)


def test_markdown_has_the_verdicts_first() -> None:
    lines = to_markdown(run_result()).splitlines()
    assert lines[4:9] == [
        "| series | arch | workload | change % | interval % | p adj | verdict |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        "| passes | arm64 | hackbench | +10.0 | +8.25..+12.1 | 0.0421 | **improved** |",
        "| passes | arm64 | dd | +10.0 | +8.25..+12.1 | 0.0421 | inconclusive |",
        "| no\\-apply | arm64 | - | - | - | - | **failed**: apply: hunk 1 of kernel/sched/core.c finds no place |",
    ]
    assert "| worse | arm64 | hackbench | -4.50 | +8.25..+12.1 | 0.0421 | **regressed** |" in lines
    assert "| skipped | arm64 | - | - | - | - | **skipped**: not asked for |" in lines


def test_markdown_has_the_minimum_detectable_effect_where_it_is_known() -> None:
    figures = [comparison(w, case="all", primary=True, mde_percent=m) for w, m in (("dd", 0.731), ("dbench", None))]
    text = to_markdown(run_result(("S", arch_result(comparisons=tuple(figures)))))
    assert "| S | arm64 | dd | +10.0 | +8.25..+12.1 | 0.0421 | 0.73 | **improved** |" in text
    assert "| S | arm64 | dbench | +10.0 | +8.25..+12.1 | 0.0421 |  | **improved** |" in text


def test_markdown_folds_everything_but_verdicts_and_failures() -> None:
    text = to_markdown(run_result(("a-b", arch_result()), ("no-build", build_failed())))
    assert text.count("<details>") == text.count("</details>") == 4
    titles = re.findall("<summary>(.*)</summary>", text)
    assert titles == [
        "Log and command",
        "a-b on arm64: cases and counters",
        "Measured with",
        "What the figures are worth",
    ]
    open_part = re.sub("(?s)<details>.*?</details>", "", text)
    assert "error: \\[red\\]no such field" in open_part
    assert "context\\_switches" in text
    assert "context\\_switches" not in open_part
    assert "CC foo.o" not in open_part


def test_a_folded_title_is_html_and_stays_text() -> None:
    text = to_markdown(run_result(("<b>@me</b>", arch_result())))
    assert "<summary>&lt;b&gt;&#64;me&lt;/b&gt; on arm64: cases and counters</summary>" in text


def test_markdown_rows_have_as_many_cells_as_their_heading() -> None:
    arch = build_failed()
    rows = [line for line in to_markdown(run_result(("a|b", arch))).splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in rows} == {rows[0].count("|")}


def test_markdown_escapes_what_a_patch_wrote() -> None:
    hostile = escape("<img src=x> [a](http://b) | `c` @torvalds **d**")
    assert "<" not in hostile
    assert "](" not in hostile
    assert "@" not in hostile
    assert "\\|" in hostile
    assert "://" not in hostile


def test_markdown_fences_are_longer_than_what_they_hold() -> None:
    result = run_result(("no-apply", apply_failed()), command="x ```` y")
    assert "`````text\nx ```` y\n`````" in to_markdown(result)


def test_a_variant_says_which_arms_it_compares() -> None:
    series = SeriesResult("s+switched", "t", "", (arch_result(),), variant="switched", arms=("s(off)", "s"))
    assert "arms: s(off) against s" in " ".join(to_text(replace(run_result(), series=(series,))).split())
