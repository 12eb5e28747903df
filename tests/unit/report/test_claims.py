# SPDX-License-Identifier: GPL-2.0-or-later
"""Claims in result.json, report.txt, report.md and on the terminal (the page: test_page.py)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kpatch_ci.model.claim import Agreement, Claim, ClaimKind, Figure, JudgedClaim
from kpatch_ci.model.result import RunResult, SeriesResult
from kpatch_ci.report.claimlines import claim_lines
from kpatch_ci.report.claims import claims, groups, summary, summary_lines
from kpatch_ci.report.document import as_document, load_document, to_document
from kpatch_ci.report.html.page import to_html
from kpatch_ci.report.lines import WIDTH
from kpatch_ci.report.markdown import to_markdown
from kpatch_ci.report.schema import Document
from kpatch_ci.report.text import to_text
from tests.fakes.results import arch_result, comparison, run_result

OURS = comparison(case="groups=30", change_percent=8.0, ci_percent=(5.0, 9.5))


def row(label: str, before: str, after: str, change: float, *, star: bool = False, **more: object) -> Claim:
    figures = (Figure(before, float(before)), Figure(after, float(after), percent=f"{change:.2f}", star=star))
    made = Claim(
        f"Amean {label} {before} {after}",
        change,
        "hackbench",
        "time",
        f"groups={label}",
        kind=ClaimKind.ROW,
        statistic="Amean",
        label=label,
        figures=figures,
        stated_percent=f"{change:.2f}",
        significant=star,
        better="lower",
        line=int(label),
    )
    return replace(made, **more)  # type: ignore[arg-type]


SENTENCE = Claim(
    "Throughput improves from 180MB/s to 200MB/s (~5 percent).",
    100 * 20 / 180,
    "dd",
    "throughput",
    "rw=read,bs=1M",
    kind=ClaimKind.SENTENCE,
    figures=(Figure("180", 180.0, "MB/s"), Figure("200", 200.0, "MB/s")),
    stated_percent="~5",
    note="the text says ~5 %, its figures give 11.1 %",
    guessed="`dd if=zeros of=/dev/null bs=1M`",
)
FOUND = (
    JudgedClaim(row("30", "0.8033", "0.7107", 11.54, star=True), Agreement.DISAGREES, "same direction, smaller", OURS),
    JudgedClaim(
        row("48", "1.2400", "1.0447", 15.75, star=True), Agreement.NOT_MEASURED, "not among the cases: groups=48"
    ),
    JudgedClaim(
        row("79", "1.8200", "1.6033", 11.9, star=True), Agreement.NOT_MEASURED, "not among the cases: groups=79"
    ),
    JudgedClaim(SENTENCE, Agreement.NOT_MEASURED, "not among the workloads of this run: dd"),
)


def result(*found: JudgedClaim) -> RunResult:
    series = SeriesResult(
        "s", "t", "", (arch_result(claims=found, comparisons=(OURS,)),), claims=tuple(one.claim for one in found)
    )
    return replace(run_result(), series=(series,))


def document(*found: JudgedClaim) -> Document:
    return as_document(result(*found))


def test_result_json_has_what_is_claimed_what_was_measured_and_how_the_two_stand() -> None:
    plain = to_document(result(*FOUND))["series"][0]["arches"][0]["claims"]
    assert [one["agreement"] for one in plain] == ["disagrees", "not measured", "not measured", "not measured"]
    first = plain[0]
    assert (first["baseline"]["text"], first["patched"]["text"]) == ("0.8033", "0.7107")
    assert (first["baseline"]["value"], first["patched"]["star"]) == (0.8033, True)
    assert (first["change_percent"], first["stated_percent"], first["significant"]) == (11.54, "11.54", True)
    assert first["measured"]["change_percent"] == 8.0
    assert first["measured"]["ci_percent"] == [5.0, 9.5]
    assert (first["reason"], first["kind"], first["line"]) == ("same direction, smaller", "row", 30)
    assert plain[3]["measured"] is None
    assert plain[3]["note"] == "the text says ~5 %, its figures give 11.1 %"


def test_a_document_with_claims_read_back_is_the_one_that_was_written(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(json.dumps(to_document(result(*FOUND))))
    assert load_document(path) == document(*FOUND)


def test_a_file_of_a_version_that_judged_no_claims_is_read_and_shows_both_sides(tmp_path: Path) -> None:
    plain = to_document(result())
    plain["series"][0]["claims"] = [
        {"text": "Amean 30 ...", "change_percent": 11.54, "workload": "hackbench", "metric": "time", "case": "groups=30", "arch": ""},
        {"text": "elsewhere", "change_percent": 1.0, "workload": "dd", "metric": "throughput", "case": "", "arch": "x86_64"},
        {"text": "words", "change_percent": None, "workload": "dd", "metric": "migrations", "case": "rw=read", "arch": ""},
    ]  # fmt: skip
    del plain["series"][0]["arches"][0]["claims"]
    path = tmp_path / "result.json"
    path.write_text(json.dumps(plain))
    old = load_document(path)
    first, last = claims(old.series[0], old.series[0].arches[0])
    assert first.measured is not None
    assert (first.measured.change_percent, first.agreement) == (8.0, Agreement.UNDECIDED)
    assert first.reason == "this file is of a version that did not judge claims"
    assert (last.measured, last.agreement) == (None, Agreement.NOT_MEASURED)
    for text in (to_text(old), to_markdown(old), to_html(old)):
        assert "11.5" in text


def test_the_text_report_has_a_line_a_claim_under_each_statistic() -> None:
    text = to_text(result(*FOUND))
    lines = text.splitlines()
    at = lines.index("Claims of the patch: 1 disagrees, 3 not measured")
    assert lines[at + 1].split() == ["before", "after", "claimed", "%", "ours", "%", "CI", "%", "verdict"]
    assert lines[at + 2] == "Amean: beside hackbench time"
    assert lines[at + 3].split() == ["30", "0.8033", "0.7107", "+11.54*", "+8.00", "+5.00..+9.50", "disagrees"]
    assert lines[at + 4].split() == ["48", "1.2400", "1.0447", "+15.75*", "-", "-", "not", "measured"]
    assert "30: same direction, smaller" in text
    assert "not among the cases: groups=48, groups=79" in text
    flat = " ".join(text.split())
    assert '"Throughput improves from 180MB/s to 200MB/s (~5 percent)."' in flat
    assert "(guessed from `dd if=zeros of=/dev/null bs=1M`)" in flat
    assert "the text says ~5 %, its figures give 11.1 %" in flat
    assert "* marked as significant in the mail" in flat
    assert max(map(len, lines)) <= WIDTH


@pytest.mark.parametrize("wide", ["x" * 200, "\u4e00" * 90, "a\x1b[31m\u202e" * 30, "1234567.8901"])
def test_no_text_of_a_mail_makes_a_line_of_the_text_report_too_wide_or_steers_a_terminal(wide: str) -> None:
    figure = Figure(wide, 1.0, wide, wide, star=True, kernel=wide)
    for kind in ClaimKind:
        claim = Claim(
            wide, 1e9, wide, wide, wide, kind=kind, statistic=wide, label=wide, figures=(figure, figure), says=wide,
            note=wide, guessed=wide, significant=True,
        )  # fmt: skip
        for agreement, ours in ((Agreement.AGREES, OURS), (Agreement.NOT_MEASURED, None)):
            text = to_text(result(JudgedClaim(claim, agreement, wide, ours)))
            assert max(map(len, text.splitlines())) <= WIDTH
            assert text.isascii()
            assert "\x1b" not in text


def test_a_run_without_claims_says_nothing_of_them() -> None:
    assert "claim" not in to_text(result()).lower()
    assert "claim" not in to_markdown(result()).lower()
    assert summary_lines(document()) == []


def test_markdown_has_a_table_a_series_and_architecture_and_escapes_the_mails_words() -> None:
    hostile = replace(SENTENCE, text="<img src=x> | [a](http://b) @torvalds", guessed="`|`")
    found = (*FOUND, JudgedClaim(hostile, Agreement.AGREES, "fine"))
    text = to_markdown(result(*found))
    assert "### Claims of s on arm64: 1 agrees, 1 disagrees, 3 not measured" in text
    assert (
        "| Amean 30 | 0.8033 | 0.7107 | \\+11.54\\* | hackbench time groups=30 | +8.00 | +5.00..+9.50 | disagrees"
        " | same direction, smaller |" in text
    )
    rows = [line for line in text.splitlines() if line.startswith("| ") and "measured" in line]
    assert {line.replace("\\|", "").count("|") for line in rows} == {10}
    assert "<img" not in text
    assert "@torvalds" not in text


def test_the_terminal_has_one_line_that_counts() -> None:
    two = (JudgedClaim(FOUND[0].claim, Agreement.AGREES, ""), JudgedClaim(FOUND[1].claim, Agreement.AGREES, ""))
    assert summary_lines(document(*two, *FOUND[1:])) == ["s arm64: claims: 2 agree, 3 not measured"]
    one = JudgedClaim(SENTENCE, Agreement.UNDECIDED, "")
    assert summary(document(one).series[0].arches[0].claims) == "1 undecided"


def test_rows_of_one_statistic_are_one_group_and_each_sentence_its_own() -> None:
    again = JudgedClaim(replace(SENTENCE, text="Another."), Agreement.AGREES, "")
    found = groups(document(*FOUND, again).series[0].arches[0].claims)
    assert [len(group.claims) for group in found] == [3, 1, 1]
    assert found[0].reasons == ("30: same direction, smaller", "not among the cases: groups=48, groups=79")


def test_the_page_shows_claimed_measured_and_verdict() -> None:
    page = to_html(result(*FOUND))
    assert "Claims of the patch: 1 disagrees, 3 not measured" in page
    assert '<td class="n" data-label="claimed %">+11.54*</td><td class="n" data-label="measured %">+8.00</td>' in page
    assert '<span class="failed word">disagrees</span>' in page
    assert "not among the cases: groups=48, groups=79" in page


def test_what_was_read_is_told_before_anything_is_measured() -> None:
    spread = Claim(
        "Stddev 1 ...", -332.82, kind=ClaimKind.ROW, statistic="Stddev", label="1", unmeasured="another thing", line=9
    )
    found = [row("30", "0.8033", "0.7107", 11.54, star=True), spread, SENTENCE]
    assert list(claim_lines(found)) == [
        "claims: 3 read (1 Amean, 1 Stddev, 1 sentence); 1 beside hackbench, 1 beside dd (1 guessed); -v lists them",
        "note: the text says ~5 %, its figures give 11.1 %",
    ]
    assert list(claim_lines(found, every=True))[2:] == [
        "  line 30: Amean 30: 0.8033 to 0.7107, +11.54 %*; beside hackbench time groups=30",
        "  line 9: Stddev 1: -332.82 %; not measured: another thing",
        '  "Throughput improves from 180MB/s to 200MB/s (~5 percent)." 180MB/s to 200MB/s, +11.11 %; beside dd throughput'
        " rw=read,bs=1M (guessed from `dd if=zeros of=/dev/null bs=1M`)",
    ]
    assert list(claim_lines([])) == []
    assert "\x1b" not in "".join(
        claim_lines([replace(spread, unmeasured="\x1b[31m", statistic="\x1b]0;x\x07")], every=True)
    )
