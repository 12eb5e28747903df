# SPDX-License-Identifier: GPL-2.0-or-later
"""The claims of the three seeds, to the last row. What is expected was written by hand from the mails."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpatch_ci.model.claim import Claim, ClaimKind
from kpatch_ci.series.claims import read_mails
from kpatch_ci.series.folder import load_series
from kpatch_ci.series.intake import read_patches

PATCHES = Path(__file__).parents[3] / "patches"

WAKEUP_GRAN = """\
Amean    1    0.3890  0.3823  1.71
Amean    4    0.5217  0.4867  6.71
Amean    7    0.5387  0.5053  6.19
Amean    12   0.5443  0.5450  -0.12
Amean    21   0.6487  0.6807  -4.93
Amean    30   0.8033  0.7107  11.54*
Amean    48   1.2400  1.0447  15.75*
Amean    79   1.8200  1.6033  11.90*
Amean    110  2.5820  2.0763  19.58*
Amean    141  3.2203  2.5313  21.40*
Amean    172  3.8200  3.1163  18.42*
Amean    203  4.3357  3.5560  17.98*
Amean    234  4.8047  3.8913  19.01*
Amean    265  5.1243  4.2293  17.47*
Amean    296  5.5940  4.5357  18.92*
Duration User     2567.27   2034.17   -
Duration System   21098.79  17137.08  -
Duration Elapsed  136.49    120.2     -"""

STACK_WORKQUEUE = """\
Hmean   1    392.92   1024.22  160.67
Hmean   2    787.09   1808.38  129.75
Hmean   4    1559.71  2525.42  61.92
Hmean   8    2576.05  2881.12  11.84
Hmean   16   2949.28  3137.65  6.39
Hmean   32   3041.89  3147.92  3.49
Hmean   64   1655.42  1756.21  6.09
Hmean   128  1133.19  1165.39  2.84
Stddev  1    2.59     11.21    -332.82
Stddev  2    8.96     13.57    -51.44
Stddev  4    20.15    8.51     57.75
Stddev  8    17.15    14.45    15.75
Stddev  16   30.29    31.30    -3.33
Stddev  32   64.45    57.22    11.21
Stddev  64   55.89    62.84    -12.43
Stddev  128  55.89    62.75    -12.27
-       User     1561.85  1166.59  -
-       System   6961.89  4965.09  -
-       Elapsed  1472.05  1471.84  -"""


def claims_of(name: str) -> tuple[Claim, ...]:
    return tuple(one.claim for one in read_mails(read_patches(PATCHES / name / "original.txt")))


def as_mailed(claim: Claim) -> list[str]:
    before, after = claim.figures
    star = "*" if after.star else ""
    return [claim.statistic or "-", claim.label, before.text, after.text, f"{claim.stated_percent or '-'}{star}"]


@pytest.mark.parametrize(("name", "rows"), [("wakeup-gran", WAKEUP_GRAN), ("stack-workqueue", STACK_WORKQUEUE)])
def test_every_row_is_read_with_every_number_as_it_stands(name: str, rows: str) -> None:
    assert [as_mailed(claim) for claim in claims_of(name)] == [row.split() for row in rows.splitlines()]


@pytest.mark.parametrize("name", ["wakeup-gran", "stack-workqueue"])
def test_every_row_says_in_which_line_of_the_message_it_stands(name: str) -> None:
    (patch,) = read_patches(PATCHES / name / "original.txt")
    lines = patch.message.split("\n")
    assert [lines[claim.line - 1].strip() for claim in claims_of(name)] == [claim.text for claim in claims_of(name)]


def test_kernels_whose_names_ran_into_each_other_are_told_apart() -> None:
    for claim in claims_of("wakeup-gran"):
        assert [f.kernel for f in claim.figures] == [
            "5.15.0-rc3-sched-wakeeflips-v1r1",
            "5.15.0-rc3-sched-scalewakegran-v3r2",
        ]
    for claim in claims_of("stack-workqueue"):
        assert [f.kernel for f in claim.figures] == ["4.15.0-rc3-wakeprev", "4.15.0-rc3-stackwq"]


def test_only_what_the_mail_marks_is_significant_and_a_table_without_marks_says_nothing_of_it() -> None:
    amean = [claim for claim in claims_of("wakeup-gran") if claim.statistic == "Amean"]
    assert [claim.significant for claim in amean] == [False] * 5 + [True] * 10
    assert {claim.significant for claim in claims_of("stack-workqueue")} == {None}


def test_the_mails_percentages_follow_from_its_figures_and_what_has_none_gets_it_from_them() -> None:
    for name in ("wakeup-gran", "stack-workqueue"):
        for claim in claims_of(name):
            assert claim.note == ""
            if claim.stated_percent:
                assert claim.change_percent == float(claim.stated_percent)
    lines = {claim.name: claim.change_percent for claim in claims_of("wakeup-gran")}
    assert lines["Duration User"] == pytest.approx(100 * (2567.27 - 2034.17) / 2567.27)


def test_the_iowait_boosts_sentence_is_read_and_its_5_percent_are_11() -> None:
    (claim,) = claims_of("schedutil-iowait-boost")
    assert claim.kind is ClaimKind.SENTENCE
    assert claim.text == "Throughput improves from 180MB/s to 200MB/s (~5 percent)."
    assert [(f.text, f.unit, f.value) for f in claim.figures] == [("180", "MB/s", 180.0), ("200", "MB/s", 200.0)]
    assert claim.stated_percent == "~5"
    assert claim.change_percent == pytest.approx(100 * 20 / 180)
    assert claim.note == "the text says ~5 %, its figures give 11.1 %"
    assert claim.line == 22


@pytest.mark.parametrize(
    ("name", "beside"),
    [
        ("schedutil-iowait-boost", ["dd throughput rw=read,bs=1M arm64"]),
        ("wakeup-gran", [f"hackbench time groups={n}" for n in (1, 4, 7, 12, 21, 30, 48, 79, 110, 141, 172, 203, 234, 265, 296)]),
        ("stack-workqueue", [f"dbench throughput fs=xfs,clients={2**n}" for n in range(8)]),
    ],
)  # fmt: skip
def test_series_yaml_sets_a_figure_of_ours_beside_each_row_that_has_one(name: str, beside: list[str]) -> None:
    series = load_series(PATCHES / name, PATCHES)
    read = [c for c in series.claims if c.kind is not ClaimKind.WORDS]
    assert len(read) == len(claims_of(name))
    assert [f"{c.workload} {c.metric} {c.case} {c.arch}".strip() for c in read if c.workload] == beside
    assert all(c.unmeasured for c in read if not c.workload)
    assert not any(c.guessed for c in read)


def test_words_without_a_number_are_the_only_claims_entered_by_hand() -> None:
    by_hand = [
        c
        for name in ("wakeup-gran", "stack-workqueue")
        for c in load_series(PATCHES / name, PATCHES).claims
        if not c.line
    ]
    assert [(c.text, c.says) for c in by_hand] == [
        ("the degree of over-scheduling is still severe ... time is wasted rescheduling tasks", "better"),
        ("has no impact on ext4", "no change"),
        ("It has a noticable impact on migrations", "better"),
        ("It has a noticable impact on migrations", "better"),
        ("has no impact on ext4 as ext4 interacts with a kthread, not a kworker", "no change"),
    ]
    assert {c.change_percent for c in by_hand} == {None}
