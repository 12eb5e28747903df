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
        ("lamp: 1/2 of v3 [x]", Subject("lamp: 1/2 of v3 [x]")),
        ("", Subject("")),
    ],
)
def test_a_subject_is_taken_apart(raw: str, expected: Subject) -> None:
    assert parse_subject(raw) == expected


@given(st.text())
def test_no_subject_breaks_it_and_what_is_left_has_no_folds(raw: str) -> None:
    assert "\n" not in parse_subject(raw).text
