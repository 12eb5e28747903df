# SPDX-License-Identifier: GPL-2.0-or-later
"""Change points: 200 nights with three planted changes give those three and no other; quiet histories give none."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from kpatch_ci.model.history import Change, Condition, Limit, Line, Night, Standing
from kpatch_ci.stats import changepoint
from kpatch_ci.stats.changepoint import Judge
from kpatch_ci.stats.changepoint_noisy import SHORTEST, despiked, distinct, permutation_p
from tests.fakes.nights import PLANTED, line, night, number_of, real_time, virtual_time

HISTORIES = int(os.environ.get("KPATCH_CI_HISTORIES", "12"))
"""Made-up histories a test; more of them on request."""
NEAR = 3
"""Nights by which a change in noise may be misplaced."""

EXACT, NOISY = line("deterministic"), line("kvm")


def find_changes(one: Line, nights: Sequence[Night], judge: Judge | None = None) -> list[Change]:
    """Of a primary figure that is all there is."""
    return changepoint.find_changes({one: nights}, judge or Judge(), everything=True).changes


def alerts(changes: Sequence[Change]) -> list[Change]:
    return [change for change in changes if change.alert]


def found_and_false(changes: Sequence[Change], near: int) -> tuple[int, int]:
    """How many of the planted changes were found, and how many others."""
    left = [number_of(change.run) for change in alerts(changes)]
    found = 0
    for planted in PLANTED:
        hit = next((n for n in left if abs(n - planted) <= near), None)
        if hit is not None:
            left.remove(hit)
            found += 1
    return found, len(left)


def test_real_time_finds_the_three_and_no_other() -> None:
    scores = [found_and_false(find_changes(NOISY, real_time(seed, PLANTED)), NEAR) for seed in range(HISTORIES)]
    exactly = sum(score == (3, 0) for score in scores)
    assert exactly >= 0.9 * HISTORIES, scores
    assert sum(false for _, false in scores) <= max(1, 0.05 * HISTORIES), scores


def test_quiet_real_time_has_no_change() -> None:
    counts = [len(find_changes(NOISY, real_time(1000 + seed, {}))) for seed in range(HISTORIES)]
    assert sum(counts) <= 0.05 * HISTORIES, counts


@pytest.mark.parametrize("moves", [0.0, 0.1, 1.0])
def test_virtual_time_finds_the_three_on_their_nights_and_no_other(moves: float) -> None:
    scores = [found_and_false(find_changes(EXACT, virtual_time(s, PLANTED, moves=moves)), 0) for s in range(HISTORIES)]
    assert sum(score == (3, 0) for score in scores) >= 0.9 * HISTORIES, scores


@pytest.mark.parametrize("moves", [0.1, 1.0])
def test_quiet_virtual_time_has_differences_and_no_alert(moves: float) -> None:
    for seed in range(HISTORIES):
        changes = find_changes(EXACT, virtual_time(2000 + seed, {}, moves=moves))
        assert len(changes) > 5
        assert alerts(changes) == []


def test_virtual_time_names_the_cause_and_the_first_night() -> None:
    changes = find_changes(EXACT, virtual_time(1, PLANTED, moves=0.0))
    assert [(change.run, change.before_run, [c.what for c in change.causes]) for change in changes] == [
        ("n060", "n059", [Condition.COMPILER]),
        ("n110", "n109", [Condition.KERNEL]),
        ("n160", "n159", [Condition.QEMU]),
    ]
    assert [(c.causes[0].before, c.causes[0].after) for c in changes[:1]] == [("c", "new60")]


@pytest.mark.parametrize("make", [lambda s: real_time(s, PLANTED), lambda s: virtual_time(s, PLANTED, moves=0.0)])
def test_a_recovered_regression_closes_itself_and_the_last_stays_open(make: Callable[[int], list[Night]]) -> None:
    mode = NOISY if make(3)[0].conditions.get("host") else EXACT
    first, second, third = alerts(find_changes(mode, make(3)))
    assert (first.standing, second.standing, third.standing) == (Standing.RECOVERED, Standing.IMPROVED, Standing.OPEN)
    assert first.closed_by == second.run
    assert third.closed_by == ""
    for change, wanted in ((first, -5.0), (second, 4.76), (third, -6.0)):
        assert change.change_percent == pytest.approx(wanted, abs=1.2)
        assert change.threshold == "default: 2 %"


def test_higher_may_be_better() -> None:
    throughput = line("deterministic", "throughput", "higher")
    changes = alerts(find_changes(throughput, virtual_time(1, PLANTED, moves=0.0)))
    assert [c.standing for c in changes] == [Standing.IMPROVED, Standing.RECOVERED, Standing.IMPROVED]
    assert [np.sign(c.change_percent or 0) for c in changes] == [1, -1, 1]


def seeds(value: float, spread: Sequence[float] = (0.0,) * 12) -> dict[str, float]:
    return {f"{1 + i // 2}.{1 + i % 2}": value * (1 + s) for i, s in enumerate(spread)}


def test_the_same_samples_are_no_change_whatever_else_changed() -> None:
    nights = [night(0, seeds(1.0), KERNEL="a"), night(1, seeds(1.0), KERNEL="b")]
    assert find_changes(EXACT, nights) == []


def test_a_difference_below_its_limit_is_told_and_is_no_alert() -> None:
    nights = [night(0, seeds(1.0), COMPILER="a"), night(1, seeds(1.019), COMPILER="b")]
    (change,) = find_changes(EXACT, nights)
    assert (change.alert, change.standing, change.reason) == (False, Standing.NOTED, "below default: 2 %")
    assert [cause.what for cause in change.causes] == ["compiler"]
    (change,) = find_changes(EXACT, nights, Judge({"hackbench.time": Limit("hackbench.time", percent=1.5)}))
    assert change.alert
    assert change.threshold == "hackbench.time: 1.5 %"


def test_an_absolute_limit() -> None:
    nights = [night(0, seeds(1.0)), night(1, seeds(1.5))]
    judge = Judge({"time": Limit("time", amount=0.6)})
    assert not find_changes(EXACT, nights, judge)[0].alert
    assert find_changes(EXACT, [nights[0], night(1, seeds(1.6))], judge)[0].alert


def test_what_goes_both_ways_is_no_alert() -> None:
    mixed = (0.3, 0.3, -0.1, -0.1, 0.2, 0.2, -0.05, -0.05, 0.3, 0.3, -0.1, -0.1)
    (change,) = find_changes(EXACT, [night(0, seeds(1.0), KERNEL="a"), night(1, seeds(1.0, mixed), KERNEL="b")])
    assert not change.alert
    assert "not surely on other seeds" in change.reason


def test_fewer_boots_than_the_test_needs_are_no_alert_however_large_the_change() -> None:
    for count in (1, 3, 5):
        before = {f"{n}.1": 1.0 + n / 100 for n in range(count)}
        (change,) = find_changes(EXACT, [night(0, before), night(1, {k: 9 * v for k, v in before.items()})])
        assert not change.alert
        boots = f"{count} boot" + "s" * (count > 1)
        assert change.reason.startswith(
            f"crosses default: 2 %, but {boots} cannot tell whether others would show it: that needs 6 boots or more"
        )


def test_runs_of_one_boot_are_no_boots() -> None:
    many = {f"1.{n}": 1.0 + n / 100 for n in range(1, 13)}
    (change,) = find_changes(EXACT, [night(0, many), night(1, {k: 2 * v for k, v in many.items()})])
    assert not change.alert
    assert "1 boot cannot tell" in change.reason


def test_nothing_recorded_changed_points_at_determinism() -> None:
    (change,) = find_changes(EXACT, [night(0, seeds(1.0), KERNEL="a"), night(1, seeds(1.5), KERNEL="a")])
    assert change.causes == ()
    assert "verify-determinism" in change.reason


def test_nights_of_other_seeds_are_not_compared() -> None:
    assert find_changes(EXACT, [night(0, {"1.1": 1.0}), night(1, {"2.1": 9.0})]) == []


def test_only_shared_seeds_count() -> None:
    (change,) = find_changes(EXACT, [night(0, {"1.1": 1.0, "1.2": 100.0}), night(1, {"1.1": 1.1, "2.1": 900.0})])
    assert (change.before, change.after) == (1.0, 1.1)


def test_a_repeated_night_is_not_more_evidence() -> None:
    once = virtual_time(5, {}, moves=1.0)[:10]
    often = [replace(n, run=f"{n.run}{k}") for n in once for k in range(20)]
    assert [n.run[:4] for n in distinct(often)] == [n.run for n in once]


def test_a_single_odd_night_is_no_change_and_the_newest_are_kept() -> None:
    values = np.ones(40) + np.random.default_rng(1).normal(0, 0.01, 40)
    values[20] = 2.0
    values[-2:] = 1.5
    clean = despiked(values)
    assert abs(clean[20] - 1) < 0.05
    assert list(clean[-2:]) == [1.5, 1.5]


def test_few_nights_say_nothing() -> None:
    assert find_changes(NOISY, real_time(1, PLANTED)[56:63]) == []
    assert find_changes(NOISY, []) == find_changes(EXACT, []) == []


def test_a_change_of_the_last_nights_is_seen_after_some() -> None:
    nights = real_time(2, {190: (Condition.KERNEL, 1.10)})
    assert len(alerts(find_changes(NOISY, nights[: 190 + SHORTEST - 1]))) == 0
    (change,) = alerts(find_changes(NOISY, nights))
    assert abs(number_of(change.run) - 190) <= NEAR
    assert change.p_value is not None
    assert change.p_value <= 0.001


def test_a_shift_of_level_is_told_with_the_night_that_makes_it_certain() -> None:
    """As whoever looks every night would have seen it, not on the night that it is dated back to."""
    nights = real_time(2, {100: (Condition.KERNEL, 1.10), 150: (Condition.KERNEL, 1 / 1.10)})
    worse, better = alerts(find_changes(NOISY, nights))
    told, ended = number_of(worse.told), number_of(worse.closed_told)
    assert 100 + SHORTEST - 1 <= told <= 100 + 2 * SHORTEST
    assert 150 + SHORTEST - 1 <= ended <= 150 + 2 * SHORTEST
    assert alerts(find_changes(NOISY, nights[:told])) == []
    assert [c.told for c in alerts(find_changes(NOISY, nights[: told + 1]))] == [worse.told]
    assert better.told == worse.closed_told
    (still,) = alerts(find_changes(NOISY, nights[:ended]))
    assert still.closed_by == ""


def test_a_certain_but_small_shift_is_no_alert() -> None:
    assert find_changes(NOISY, real_time(4, {100: (Condition.KERNEL, 1.012)}, spread=0.003)) == []


def test_permutation_p_is_a_p() -> None:
    dice = np.random.default_rng(7)
    p = np.array([permutation_p(dice.normal(0, 1, 30)) for _ in range(60)])
    assert 0.01 <= np.mean(p <= 0.1) <= 0.25
