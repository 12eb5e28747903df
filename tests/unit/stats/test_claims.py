# SPDX-License-Identifier: GPL-2.0-or-later
"""Claims beside measurements: each rule with figures that can be followed by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpatch_ci.model.claim import Agreement, Claim, ClaimKind, Figure
from kpatch_ci.model.comparison import Comparison
from kpatch_ci.model.status import Verdict
from kpatch_ci.stats.claims import by_interval, judge, judge_claims
from tests.fakes.results import comparison

AGREES, DISAGREES, UNDECIDED = Agreement.AGREES, Agreement.DISAGREES, Agreement.UNDECIDED


@pytest.mark.parametrize(
    ("claimed", "ci", "agreement", "why"),
    [
        # beyond the threshold of 1 %
        (11.1, (9.0, 12.0), AGREES, "ours is +9.00 to +12.00 %"),
        (11.1, (0.5, 60.0), AGREES, "ours is +0.50 to +60.00 %"),
        (11.1, (8.0, 10.2), AGREES, "ours is +8.00 to +10.20 %"),  # 10.2 + 1 > 11.1
        (11.1, (8.0, 10.0), DISAGREES, "same direction, smaller: ours is +8.00 to +10.00 %"),  # 10 + 1 < 11.1
        (11.1, (12.2, 15.0), DISAGREES, "same direction, larger: ours is +12.20 to +15.00 %"),
        (11.1, (-9.0, -3.0), DISAGREES, "the other direction: ours is -9.00 to -3.00 %"),
        (11.1, (-0.4, 0.3), DISAGREES, "a change is claimed that ours excludes: ours is -0.40 to +0.30 %"),
        (11.1, (-2.0, 14.0), UNDECIDED, "ours is -2.00 to +14.00 %: neither no change nor the claim can be excluded"),
        (1.5, (-0.2, 1.0), UNDECIDED, "ours is -0.20 to +1.00 %: neither no change nor the claim can be excluded"),
        (-4.93, (-6.0, -2.0), AGREES, "ours is -6.00 to -2.00 %"),
        (-4.93, (-3.0, -1.5), DISAGREES, "same direction, smaller: ours is -3.00 to -1.50 %"),
        (-4.93, (-9.0, -6.0), DISAGREES, "same direction, larger: ours is -9.00 to -6.00 %"),
        # within it: no change is claimed
        (-0.12, (-0.5, 0.4), AGREES, "both are no change: ours is -0.50 to +0.40 %, within the threshold of 1 %"),
        (0.9, (0.5, 1.5), AGREES, "ours is +0.50 to +1.50 %, all of it within 1 % of the claim"),
        (0.0, (-5.0, 6.0), UNDECIDED, "ours is -5.00 to +6.00 %, too wide to tell no change from one"),
        (-0.12, (2.0, 4.0), DISAGREES, "no change is claimed, and it got better: ours is +2.00 to +4.00 %"),
        (0.0, (-4.0, -2.0), DISAGREES, "no change is claimed, and it got worse: ours is -4.00 to -2.00 %"),
        (5.0, None, UNDECIDED, "one seed gives no interval"),
    ],
)  # fmt: skip
def test_a_number_beside_an_interval(
    claimed: float, ci: tuple[float, float] | None, agreement: Agreement, why: str
) -> None:
    assert by_interval(claimed, ci, 1.0) == (agreement, why)


PERCENT = st.floats(-200, 200)


@given(PERCENT, PERCENT, PERCENT, st.floats(0, 10))
def test_the_rule_is_the_same_for_a_change_to_the_worse(claimed: float, one: float, other: float, limit: float) -> None:
    low, high = sorted((one, other))
    assert by_interval(claimed, (low, high), limit)[0] is by_interval(-claimed, (-high, -low), limit)[0]


@given(PERCENT, PERCENT, PERCENT, st.floats(0.1, 10))
def test_nothing_agrees_that_lies_on_the_other_side_of_0_or_further_off_than_the_threshold(
    claimed: float, one: float, other: float, limit: float
) -> None:
    low, high = sorted((one, other))
    agreement, _ = by_interval(claimed, (low, high), limit)
    if agreement is AGREES and abs(claimed) > limit:
        assert (low > 0) == (claimed > 0)
        assert low * high > 0
        assert low - limit <= claimed <= high + limit
    if agreement is DISAGREES:
        assert claimed < low - limit or claimed > high + limit


@given(PERCENT, st.floats(0.1, 10))
def test_an_interval_that_says_nothing_decides_nothing(claimed: float, limit: float) -> None:
    assert by_interval(claimed, (-1000.0, 1000.0), limit)[0] is UNDECIDED


ROW = Claim(
    "Amean 8 ...",
    10.0,
    "hackbench",
    "time",
    "groups=8",
    kind=ClaimKind.ROW,
    statistic="Amean",
    label="8",
    better="lower",
)
OURS = comparison(ci_percent=(8.25, 12.125))


def judged(claim: Claim, *found: Comparison) -> tuple[Agreement, str]:
    one = judge(claim, found, {"hackbench": 1.0})
    return one.agreement, one.reason


def test_a_row_stands_beside_the_case_that_it_names_whatever_the_order_of_its_settings() -> None:
    assert judge(ROW, [OURS], {"hackbench": 1.0}).measured is OURS
    two = comparison("dbench", case="fs=xfs,clients=4", metric="throughput", better="higher")
    claim = Claim("Hmean 4", 10.0, "dbench", "throughput", "clients=4,fs=xfs", better="higher")
    assert judge(claim, [OURS, two], {}).measured is two


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"case": "groups=30"}, "not among the cases of hackbench: groups=30"),
        ({"case": "groups=8,transport=socket"}, "not among the cases of hackbench: groups=8,transport=socket"),
        ({"case": ""}, "not among the cases of hackbench: all"),
        ({"metric": "wakeups"}, "not among the metrics of hackbench: wakeups"),
        ({"workload": "dbench"}, "not among the workloads of this run: dbench"),
        ({"workload": "", "unmeasured": "the spread of the mail's own runs"}, "the spread of the mail's own runs"),
        ({"better": "higher"}, "the mail's figure is better when higher, ours when lower: they measure different things"),
    ],
)  # fmt: skip
def test_what_has_no_counterpart_is_not_measured_and_says_why(change: dict[str, str], why: str) -> None:
    assert judged(replace(ROW, **change), OURS) == (Agreement.NOT_MEASURED, why)  # type: ignore[arg-type]


def test_nothing_is_beside_it_where_nothing_was_measured_or_the_comparison_failed() -> None:
    assert judged(ROW) == (Agreement.NOT_MEASURED, "nothing was measured here")
    failed = comparison(verdict=Verdict.FAILED, change_percent=None, ci_percent=None, reason="every patched run failed")
    assert judged(ROW, failed) == (Agreement.NOT_MEASURED, "ours gave no figure: every patched run failed")


def test_the_primary_figure_is_meant_only_where_no_case_is_named() -> None:
    primary = comparison(case="all", primary=True)
    assert judge(replace(ROW, case=""), [OURS, primary], {}).measured is primary
    assert judge(ROW, [primary, OURS], {}).measured is OURS


def test_what_the_mail_does_not_mark_as_significant_is_said_so() -> None:
    assert judged(replace(ROW, significant=False), OURS)[1].endswith("; the mail does not mark it as significant")
    assert "mark" not in judged(replace(ROW, significant=True), OURS)[1]
    assert "mark" not in judged(ROW, OURS)[1]


@pytest.mark.parametrize(
    ("says", "verdict", "agreement"),
    [
        ("better", Verdict.IMPROVED, AGREES),
        ("better", Verdict.REGRESSED, DISAGREES),
        ("better", Verdict.NO_CHANGE, DISAGREES),
        ("better", Verdict.INCONCLUSIVE, UNDECIDED),
        ("worse", Verdict.REGRESSED, AGREES),
        ("no change", Verdict.NO_CHANGE, AGREES),
        ("no change", Verdict.IMPROVED, DISAGREES),
        ("no change", Verdict.INCONCLUSIVE, UNDECIDED),
        ("changes", Verdict.REGRESSED, AGREES),
        ("changes", Verdict.NO_CHANGE, DISAGREES),
        ("", Verdict.IMPROVED, UNDECIDED),
    ],
)
def test_words_are_judged_by_the_comparisons_verdict(says: str, verdict: Verdict, agreement: Agreement) -> None:
    claim = Claim("much better", workload="hackbench", metric="time", case="groups=8", says=says)
    assert judged(claim, comparison(verdict=verdict))[0] is agreement


def test_figures_whose_direction_the_text_leaves_open_are_read_as_our_metric_has_it() -> None:
    figures = (Figure("2.0", 2.0, "MB"), Figure("1.8", 1.8, "MB"))
    claim = Claim("from 2.0 to 1.8", workload="hackbench", metric="time", case="groups=8", figures=figures)
    assert judged(claim, OURS)[0] is AGREES  # lower is better: 10 %, in 8.25..12.125
    assert judged(claim, replace(OURS, better="higher"))[0] is DISAGREES  # -10 %


def test_a_claim_about_one_architecture_is_judged_on_that_alone() -> None:
    here, there, both = replace(ROW, arch="arm64"), replace(ROW, arch="x86_64"), ROW
    found = judge_claims([here, there, both], "arm64", [OURS], {})
    assert [one.claim for one in found] == [here, both]
