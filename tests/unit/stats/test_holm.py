# SPDX-License-Identifier: GPL-2.0-or-later
"""Holm's adjustment."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpatch_ci.stats.holm import holm

P_VALUES = st.lists(st.floats(0, 1), max_size=20)


def test_known_values_by_hand() -> None:
    # Sorted: .005 x 4 = .02, .01 x 3 = .03, .03 x 2 = .06, .04 x 1 = .04 -> raised to .06.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_it_never_exceeds_one_and_an_empty_family_is_empty() -> None:
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


def test_one_test_alone_is_not_adjusted() -> None:
    assert holm([0.03]) == [0.03]


def test_a_value_that_is_no_probability_is_refused() -> None:
    with pytest.raises(ValueError, match="p-values"):
        holm([0.1, 1.5])


@given(P_VALUES)
def test_it_keeps_the_order_and_lies_between_p_and_bonferroni(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    for p, a in zip(p_values, adjusted, strict=True):
        assert p <= a <= min(1.0, len(p_values) * max(p_values))
    ranked = [a for _, a in sorted(zip(p_values, adjusted, strict=True))]
    assert ranked == sorted(ranked)


@given(P_VALUES, st.randoms())
def test_it_does_not_depend_on_the_order_of_the_tests(p_values: list[float], random: object) -> None:
    assert sorted(holm(sorted(p_values))) == sorted(holm(p_values))
