# SPDX-License-Identifier: GPL-2.0-or-later
"""Subjects of all kinds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpatch_ci.series.subject import Subject, parse_subject


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("[RFC PATCH 1/2] lamp: a", Subject("lamp: a", "[RFC PATCH 1/2]", 1, 2)),
        ("[PATCH v2 RESEND 2/7] lamp: a", Subject("lamp: a", "[PATCH v2 RESEND 2/7]", 2, 7, 2)),
        ("[PATCH 6.6.y] lamp: a", Subject("lamp: a", "[PATCH 6.6.y]")),
        ("[PATCH1/8] lamp: a", Subject("lamp: a", "[PATCH1/8]", 1, 8)),
        ("[PATCHv3 1/8] lamp: a", Subject("lamp: a", "[PATCHv3 1/8]", 1, 8, 3)),
        ("[PATCH net-next V2 01/10] lamp: a", Subject("lamp: a", "[PATCH net-next V2 01/10]", 1, 10, 2)),
        ("[PATCH 5.10 094/290] lamp: a", Subject("lamp: a", "[PATCH 5.10 094/290]", 94, 290)),
        ("[RFC] lamp: a", Subject("lamp: a", "[RFC]")),
        ("Re: [PATCH 0/2] lamp: a", Subject("lamp: a", "[PATCH 0/2]", 0, 2, reply=True)),
        ("[patch v3 01/12] lamp: a", Subject("lamp: a", "[patch v3 01/12]", 1, 12, 3)),
        ("[PATCH,v2,3/5] lamp: a", Subject("lamp: a", "[PATCH,v2,3/5]", 3, 5, 2)),
        ("[v2,1/2] lamp: a", Subject("lamp: a", "[v2,1/2]", 1, 2, 2)),
        ("[RFCv2 1/3] lamp: a", Subject("lamp: a", "[RFCv2 1/3]", 1, 3, 2)),
        ("[PATCH 2.6.36/stable] lamp: a", Subject("lamp: a", "[PATCH 2.6.36/stable]")),
        ("[PATCH 1 of 2] lamp: a", Subject("lamp: a", "[PATCH 1 of 2]", 1, 2)),
        ("[EXT] Re: [PATCH 1/2] lamp: a", Subject("lamp: a", "[EXT] [PATCH 1/2]", 1, 2, reply=True)),
        ("RE: AW: [PATCH] lamp: a", Subject("lamp: a", "[PATCH]", reply=True)),
        ("Re[3]: lamp: a", Subject("lamp: a", reply=True)),
        ("review: lamp: a", Subject("review: lamp: a")),
        ("[PATCH 24 of them] lamp: a", Subject("lamp: a", "[PATCH 24 of them]")),
        ("[i386/686-pae] lamp: a", Subject("lamp: a", "[i386/686-pae]")),
        ("lamp: 1/2 of v3 [x]", Subject("lamp: 1/2 of v3 [x]")),
        ("", Subject("")),
    ],
)
def test_a_subject_is_taken_apart(raw: str, expected: Subject) -> None:
    assert parse_subject(raw) == expected


def test_postings_are_ranked_by_revision_minor_number_and_whether_they_were_sent_again() -> None:
    newer = [
        "[PATCH]",
        "[RESEND PATCH]",
        "[PATCH v2]",
        "[PATCH v2 RESEND 1/2]",
        "[PATCH v2.1 1/2]",
        "[PATCH V3]",
        "[PATCHv10]",
    ]
    ranks = [parse_subject(f"{prefix} lamp: a").rank for prefix in newer]
    assert ranks == sorted(ranks)
    assert len(set(ranks)) == len(ranks)


@given(st.text())
def test_no_subject_breaks_it_and_what_is_left_has_no_folds(raw: str) -> None:
    assert "\n" not in parse_subject(raw).text
