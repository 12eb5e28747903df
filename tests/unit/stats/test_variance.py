# SPDX-License-Identifier: GPL-2.0-or-later
"""Variance between boots."""

from __future__ import annotations

import numpy as np
import pytest

from kpatch_ci.stats.variance import boot_variance_share, components


def test_known_value_by_hand() -> None:
    # Boots (1,3), (5,7): MS_w = 2, MS_b = 2 * ((2-4)^2 + (6-4)^2) / 1 = 16, n_0 = 2: s_b = 7, share 7 / 9.
    assert boot_variance_share([1, 3, 5, 7], [1, 1, 2, 2]) == pytest.approx(7 / 9)


def test_boots_that_differ_less_than_their_runs_have_no_share() -> None:
    assert boot_variance_share([1, 3, 1, 3], [1, 1, 2, 2]) == 0


def test_all_variance_between_boots_is_a_share_of_one() -> None:
    assert boot_variance_share([1, 1, 2, 2], [1, 1, 2, 2]) == 1


@pytest.mark.parametrize(("values", "boots"), [([1, 2], [1, 1]), ([1, 2], [1, 2]), ([0.1] * 4, [1, 1, 2, 2]), ([], [])])
def test_it_is_none_with_one_boot_one_run_a_boot_or_no_variance(values: list[float], boots: list[int]) -> None:
    assert boot_variance_share(values, boots) is None


def test_unequal_boots_recover_the_share_that_was_put_in() -> None:
    rng = np.random.default_rng(4)
    sizes = rng.integers(2, 9, size=400)
    boots = np.repeat(np.arange(400), sizes)
    values = rng.normal(0, 3, size=400)[boots] + rng.normal(0, 4, size=len(boots))
    assert boot_variance_share(values.tolist(), boots.tolist()) == pytest.approx(9 / 25, abs=0.06)


def test_a_boot_for_each_value_is_required() -> None:
    with pytest.raises(ValueError, match="zip"):
        boot_variance_share([1, 2, 3], [1, 2])


def test_components_by_hand_and_as_standard_deviations() -> None:
    found = components([0.01, 0.03, 0.05, 0.07], [1, 1, 2, 2])
    # As above in units of 0.01: s_b = 7, MS_w = 2.
    assert (found.between, found.within) == pytest.approx((7e-4, 2e-4))
    assert found.spreads_percent == pytest.approx((100 * 7e-4**0.5, 100 * 2e-4**0.5))


def test_runs_of_one_boot_tell_of_their_own_spread_alone() -> None:
    found = components([1, 3], [1, 1])
    assert (found.between, found.within, found.share) == (None, 2, None)


def test_boots_of_one_run_tell_nothing_apart() -> None:
    assert components([1, 3], [1, 2]).spreads_percent == (None, None)


def test_no_variance_is_two_spreads_of_zero_and_no_share() -> None:
    found = components([0.1] * 4, [1, 1, 2, 2])
    assert (found.spreads_percent, found.share) == ((0, 0), None)
