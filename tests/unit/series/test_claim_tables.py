# SPDX-License-Identifier: GPL-2.0-or-later
"""Tables as mmtests prints them, and as people mail them."""

from __future__ import annotations

import pytest

from kpatch_ci.model.claim import Claim, ClaimKind
from kpatch_ci.series.claimtables import Table, tables

TWO = """\
netperf-udp
                                  6.1.0-rc3              6.1.0-rc3
                                    vanilla         sched-one-v1r1
Hmean     send-64         235.21 (   0.00%)      112.75 * -52.06%*
Min       send-64         230.00 (   0.00%)      110.00 ( -52.17%)
CoeffVar  send-64           2.00 (   0.00%)        1.00 (  50.00%)
"""
THREE = """\
                      5.15.0-rc1             5.15.0-rc1             5.15.0-rc1
                         vanilla sched-scale-something-v2r4     sched-other-v1r1
Amean     1        0.3253 (   0.00%)      0.3330 (  -2.37%)      0.3257 (  -0.12%)
Amean     4        0.8300 (   0.00%)      0.7570 (   8.80%)      0.7560 *   8.92%*
"""


def read(text: str) -> list[Table]:
    return list(tables(text.split("\n")))


def one(line: str) -> Claim:
    (table,) = read(line)
    (row,) = table.rows
    return row


def test_a_table_has_its_title_its_kernels_and_a_claim_a_row() -> None:
    (table,) = read(TWO)
    assert table.title == "netperf-udp"
    assert table.lines == (1, 6)
    assert [(r.statistic, r.label, r.line) for r in table.rows] == [
        ("Hmean", "send-64", 4),
        ("Min", "send-64", 5),
        ("CoeffVar", "send-64", 6),
    ]
    assert [f.kernel for f in table.rows[0].figures] == ["6.1.0-rc3-vanilla", "6.1.0-rc3-sched-one-v1r1"]
    assert [(r.better, r.change_percent) for r in table.rows] == [
        ("higher", -52.06),
        ("higher", -52.17),
        ("lower", 50.0),
    ]
    assert [r.significant for r in table.rows] == [True, None, None]


def test_of_several_kernels_the_first_is_the_baseline_and_the_last_the_patched_one() -> None:
    (table,) = read(THREE)
    first, second = table.rows
    assert [f.text for f in first.figures] == ["0.3253", "0.3330", "0.3257"]
    assert (first.change_percent, second.change_percent) == (-0.12, 8.92)
    assert (first.significant, second.significant) == (False, True)
    assert [f.kernel for f in first.figures] == [
        "5.15.0-rc1-vanilla",
        "5.15.0-rc1-sched-scale-something-v2r4",
        "5.15.0-rc1-sched-other-v1r1",
    ]


def test_names_that_ran_together_are_left_out_where_nothing_tells_where_one_ends() -> None:
    text = TWO.replace("6.1.0-rc3              6.1.0-rc3", "6_1_base_config6_1_final_config").replace(
        "vanilla         sched", "vanilla-and-sched"
    )
    (table,) = read(text)
    assert [f.kernel for f in table.rows[0].figures] == ["", ""]


def test_tabs_in_a_heading_do_no_harm() -> None:
    (table,) = read("\t\t      before\t after\nAmean     1       0.4743 (   0.00%)      0.4295 *   9.45%*\n")
    assert [f.kernel for f in table.rows[0].figures] == ["before", "after"]


def test_rows_without_mmtests_names_and_with_pct_are_rows_of_unknown_statistic() -> None:
    row = one("    8    3799.57 (0.00 pct)      3020.87 (-20.49 pct)")
    assert (row.statistic, row.label, row.better, row.change_percent) == ("", "8", "higher", -20.49)
    row = one("Percentage huge-5       66.18 (   0.00%)       77.80 (  17.56%)")
    assert (row.label, row.better) == ("Percentage huge-5", "higher")


@pytest.mark.parametrize(
    ("line", "statistic"),
    [
        ("BAmean-95 4    2.00 (   0.00%)    1.00 (  50.00%)", "BAmean-95"),
        ("BHmean-50 4    1.00 (   0.00%)    2.00 ( 100.00%)", "BHmean-50"),
        ("Gmean     4    1.00 (   0.00%)    2.00 ( 100.00%)", "Gmean"),
        ("1st-qrtle 4    2.00 (   0.00%)    1.00 (  50.00%)", "1st-qrtle"),
        ("Max-99    4    2.00 (   0.00%)    1.00 (  50.00%)", "Max-99"),
        ("Best95%Amean 4 2.00 (   0.00%)    1.00 (  50.00%)", "Best95%Amean"),
    ],
)
def test_every_statistic_of_mmtests_is_known_by_name(line: str, statistic: str) -> None:
    assert (one(line).statistic, one(line).label) == (statistic, "4")


def test_a_percentage_that_its_figures_do_not_give_is_said_and_the_figures_count() -> None:
    row = one("Amean  1  0.3890 (   0.00%)   0.3823 (   4.71%)")
    assert row.note == "the mail says 4.71 %, its figures give +1.72 %"
    assert row.change_percent == pytest.approx(1.7223650)
    assert row.stated_percent == "4.71"


def test_a_percentage_of_the_other_sign_leaves_the_direction_open_and_says_so() -> None:
    row = one("Amean  tput-1  100.00 (   0.00%)   110.00 (  10.00%)")
    assert (row.better, row.change_percent) == ("", None)
    assert row.note == "the mail says 10.00 %, as if higher were better, which Amean is not used for"


@pytest.mark.parametrize(
    ("row", "note"),
    [
        ("Amean 1  0.3 (0.00%)  0.2 (20.00%)", False),  # 0.25 to 0.35 and 0.15 to 0.25: 0 to 57 %
        ("Amean 1  0.3 (0.00%)  0.2 (60.00%)", True),
        ("Amean 1  0.5443 (0.00%)  0.5450 (-0.12%)", False),
        ("Amean 1  0.5443 (0.00%)  0.5450 (-0.20%)", True),
        ("Stddev 1  0.00 (0.00%)  0.00 (0.00%)", False),
        ("Stddev 1  0.00 (0.00%)  3.00 (-99.00%)", False),  # of a zero that may be 0.004 anything can be said
    ],
)
def test_rounding_of_figures_and_percentage_is_allowed_for(row: str, note: bool) -> None:
    assert bool(one(row).note) is note


def test_a_baseline_of_zero_gives_no_percentage_of_ours() -> None:
    row = one("Ops Migrations  0 (0.00%)  3 (0.00%)")
    assert row.change_percent is None


def test_durations_are_read_with_the_rows_among_them() -> None:
    (table,) = read(
        "           vanilla  patched\nUser        10.0     9.0\nMinor Faults  5  5\nElapsed  7.0  7.5\n\nText."
    )
    assert [(r.name, r.kind, r.change_percent) for r in table.rows] == [
        ("User", ClaimKind.DURATION, 10.0),
        ("Minor Faults", ClaimKind.DURATION, 0.0),
        ("Elapsed", ClaimKind.DURATION, pytest.approx(-7.142857)),
    ]
    assert all(r.unmeasured for r in table.rows)
    (ops,) = read("Ops NUMA hint local percent   34.41   96.68\nOps Swap Ins   0.00   0.00")
    assert [(r.statistic, r.label, r.better, r.change_percent) for r in ops.rows] == [
        ("Ops", "NUMA hint local percent", "", None),
        ("Ops", "Swap Ins", "", None),
    ]


def test_a_second_block_of_a_table_goes_on_with_its_title_and_kernels() -> None:
    text = TWO + "\n" + "Stddev    send-64           2.00 (   0.00%)        1.00 (  50.00%)\n"
    first, second = read(text)
    assert second.title == first.title == "netperf-udp"
    assert [f.kernel for f in second.rows[0].figures] == [f.kernel for f in first.rows[0].figures]


@pytest.mark.parametrize(
    "line",
    [
        "> Amean  1  0.3890 (   0.00%)   0.3823 (   1.71%)",
        "Amean  1  0.3890 (   0.00%)",
        "Amean  1  0.3890 (   0.10%)   0.3823 (   1.71%)",
        "Amean  1  0.3890   0.3823",
        "Of 5 (10.00%) and 6 (12.00%) pages",
        "kernel/sched/fair.c     | 17 +++++++++++++++--",
        " 2 files changed, 17 insertions(+), 2 deletions(-)",
        "Version 5 6",
        "Amean  1  nan (   0.00%)   nan (   0.00%)",
        "x" * 500 + "  0.3890 (   0.00%)   0.3823 (   1.71%)",
    ],
)
def test_what_is_no_row_is_none(line: str) -> None:
    assert read(line) == []
