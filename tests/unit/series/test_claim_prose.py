# SPDX-License-Identifier: GPL-2.0-or-later
"""Sentences that claim a figure, and those that only look like it."""

from __future__ import annotations

import pytest

from kpatch_ci.model.claim import Claim
from kpatch_ci.series.claimprose import prose, sentences


def read(text: str) -> list[Claim]:
    return [claim for claim, _ in prose(text.split("\n"))]


def one(text: str) -> Claim:
    (claim,) = read(text)
    return claim


SEED = "the text says ~5 %, its figures give 11.1 %"
CORRECTED = "the text says 35 %, its figures give 20.0 %"


@pytest.mark.parametrize(
    ("text", "figures", "change", "stated", "note"),
    [
        ("Throughput improves from 180MB/s to 200MB/s (~5 percent).", "180MB/s 200MB/s", 11.111, "~5", SEED),
        ("Throughput improves from 180MB/s to 200MB/s (11%).", "180MB/s 200MB/s", 11.111, "11", ""),
        ("The run time is reduced from 3.2s to 2.9s (9%).", "3.2s 2.9s", 9.375, "9", ""),
        ("The run time is reduced from 3.2s to 2.9s (-9.4%).", "3.2s 2.9s", 9.375, "-9.4", ""),
        ("Boot time went from 1.2 s to 900 ms.", "1.2s 900ms", 25.0, "", ""),
        ("Latency dropped from about 250us to around 200us on my laptop.", "250us 200us", 20.0, "", ""),
        ("Average latency increased from 200us to 250us.", "200us 250us", -25.0, "", ""),
        ("dbench goes from 1,500 MB/sec to 1,800 MB/sec.", "1500MB/sec 1800MB/sec", 20.0, "", ""),
        ("IOPS fall from 100k IOPS to 90k IOPS.".replace("k IOPS", " kIOPS"), "100kIOPS 90kIOPS", -10.0, "", ""),
        ("The number of context switches drops from 2000 to 1500.", "2000 1500", 25.0, "", ""),
        ("The score rises from 50 up to 60.", "50 60", 20.0, "", ""),
        ("CPU usage drops from 30% to 12%.", "30% 12%", 60.0, "", ""),
        ("Throughput went from 10 MB/s to 11 MB/s at 50% load.", "10MB/s 11MB/s", 10.0, "", ""),
        ("Throughput went from 10 MB/s to 12 MB/s, a 35% gain.", "10MB/s 12MB/s", 20.0, "35", CORRECTED),
        ("This improves performance from 3.2s to 2.9s.", "", None, "", ""),  # which way is better is not settled
    ],
)  # fmt: skip
def test_two_figures(text: str, figures: str, change: float | None, stated: str, note: str) -> None:
    if not figures:
        assert read(text) == []
        return
    claim = one(text)
    assert " ".join(f"{f.value:g}{f.unit}" for f in claim.figures) == figures
    assert claim.change_percent == pytest.approx(change, abs=0.001)
    assert (claim.stated_percent, claim.note) == (stated, note)


@pytest.mark.parametrize(
    ("text", "change", "says"),
    [
        ("This improves hackbench by 12% on a server with 80 CPUs.", 12.0, ""),
        ("A 30% improvement in hackbench has been observed with this patch.", 30.0, ""),
        ("Kernel builds are 5% slower in that benchmark.", -5.0, ""),
        ("hackbench is 2.5 percent faster.", 2.5, ""),
        ("Netperf shows a regression of 3%.", -3.0, ""),
        ("Latency is reduced by about 9%.", 9.0, ""),
        ("Latency increased by 9%.", -9.0, ""),
        ("Throughput increases by 7.5%.", 7.5, ""),
        ("We saw 11% fewer context switches.", 11.0, ""),
        ("We saw 20% more page faults.", -20.0, ""),
        ("- FPS improves by ~3.8%", 3.8, ""),
        ("Throughput improves by 5-10%.", None, "better"),
        ("Throughput improves by up to 12%.", None, "better"),
        ("Up to 20% higher throughput was seen.", None, "better"),
        ("Performance degradation in the range of 1% to 50% has been observed.", None, "worse"),
        ("Throughput and latency both increase by 7%.", None, "changes"),
    ],
)
def test_a_percentage(text: str, change: float | None, says: str) -> None:
    claim = one(text)
    assert claim.change_percent == change
    assert claim.says == says
    assert claim.text == text.removeprefix("- ") or claim.text == text


@pytest.mark.parametrize(
    "text",
    [
        # what a setting becomes
        "Bump the timeout from 10ms to 20ms.",
        "Increase the polling interval from 100 us to 1 ms to save power.",
        "Reduce the latency target from 20ms to 10ms.",
        "The default granularity went from 4 ms to 3 ms.",
        "This raises the limit from 5% to 10%.",
        "Raise the link speed from 5 Gbps to 10 Gbps.",
        "The clock goes from 100 kb/s to 400 kb/s.",
        # what might be
        "This could improve throughput by 5%.",
        "Performance should be 5% better.",
        "If throughput drops by 10% the watermark is raised.",
        # what others did
        "The kernel test robot reported a 23.7% regression of unixbench.",
        "Commit 8a99b6833c88 (\"sched: Move it\") degraded throughput by 5%.",
        "Since then hackbench has regressed by 10%.",
        "Fix a 10% throughput regression.",
        # numbers that are none of that
        "It touches 100% of the code in 5 files.",
        "Tested from 4.15 to 5.10 on 8 CPUs.",
        "The buffer grows from 16 to 32 bits at runtime, which is better.",
        "Move it from 5.4 to 5.5, on 2021-03-04 at 12:30:55.",
        "A 50% duty cycle is used, and better than 40%.",
        "The device is charged to 80% of its battery.",
        "Converts 10 percent of the users to the new API.",
        "On Mon, Jul 12, 2021 at 10:00 +0200, Joe wrote: 5% better than I thought.",
        "Signed-off-by: Ten Percent Faster <10%faster@example.com>",
        "Link: https://example.com/improves-throughput-by-5%25",
        "> Throughput improves by 5%.",
        "  | Throughput improves by 5%.",
        "[  12.345678] throughput improves by 5%",
        "$ throughput improves by 5%",
        " kernel/sched/fair.c | 10 +++++ improves throughput by 5%",
        "\tthroughput = latency_improved_by(5%);",
        "diff --git a/throughput b/improves throughput by 5%",
    ],
)  # fmt: skip
def test_what_claims_nothing(text: str) -> None:
    assert read(text) == []


def test_a_sentence_over_several_lines_stands_at_its_first_and_keeps_the_lines_above_it() -> None:
    text = """\
It was tested.

Running dd:
dd if=/dev/zero of=/dev/sda bs=1M oflag=direct
The throughput of it
improves from 10 MB/s
to 11 MB/s. That is all."""
    ((claim, sentence),) = prose(text.split("\n"))
    assert claim.text == "The throughput of it improves from 10 MB/s to 11 MB/s."
    assert claim.line == 5
    assert "dd if=/dev/zero of=/dev/sda bs=1M oflag=direct" in sentence.before


def test_items_of_a_list_are_sentences_of_their_own() -> None:
    found = list(sentences(["- one", "- two", "  goes on", "1) three"]))
    assert [(s.text, s.line) for s in found] == [("- one", 1), ("- two goes on", 2), ("1) three", 4)]


def test_lines_of_tables_are_no_prose() -> None:
    assert list(prose(["Throughput improves by 5%."], [(0, 1)])) == []
