# SPDX-License-Identifier: GPL-2.0-or-later
"""What is an alert among many figures of a night: primary figures, tested together; cases and counters explain. Values by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from kpatch_ci.model.history import Change, Condition, Limit, Line, Night
from kpatch_ci.stats.changepoint import Found, find_changes
from kpatch_ci.stats.nightpair import step_of
from tests.fakes.nights import line, night, real_time

ONE_WAY = 0.0078125
"""Two-sided p of eight boots that all go one way: 2 / 2^8."""
HACKBENCH = line("deterministic")
UPS = (0.10, 0.11, 0.12, 0.09, 0.08, 0.13, 0.07, 0.14)
"""Eight boots that get slower by a tenth."""
MIXED = (0.05, -0.06, 0.04, -0.03, 0.02, -0.05, 0.06, -0.04)
"""Eight that go both ways, none of them by little."""


def two_nights(effects: Sequence[float], level: float = 1.0) -> list[Night]:
    """From ``level`` in every boot to so much more of it, by another kernel."""
    old = {f"{boot}.1": level for boot in range(1, len(effects) + 1)}
    new = {f"{boot}.1": level * (1 + effect) for boot, effect in enumerate(effects, 1)}
    return [night(0, old, KERNEL="a"), night(1, new, KERNEL="b")]


def other(number: int) -> Line:
    return replace(HACKBENCH, workload=f"w{number}")


def found(lines: Mapping[Line, Sequence[Night]]) -> Found:
    return find_changes(lines, everything=True)


def of(changes: Sequence[Change], wanted: Line) -> Change:
    (one,) = (change for change in changes if change.line == wanted)
    return one


@pytest.mark.parametrize(("others", "alert"), [(0, True), (5, True), (6, False)])
def test_all_primary_figures_of_a_night_are_tested_together(others: int, alert: bool) -> None:
    """Holm's first step: 6 x 0.0078 = 0.047 is below 0.05, 7 x 0.0078 = 0.055 is not."""
    lines = {HACKBENCH: two_nights(UPS), **{other(n): two_nights(MIXED) for n in range(others)}}
    all_changes = found(lines)
    change = of(all_changes.changes, HACKBENCH)
    assert change.alert is alert
    assert change.p_value == pytest.approx(ONE_WAY)
    assert [c.line for c in all_changes.changes if c.alert] == [HACKBENCH] * alert
    if others == 5:
        assert change.reason == "crosses default: 2 %, p = 0.047 after Holm over 6 figures"
    if others == 6:
        said = "crosses default: 2 %, but 8 boots cannot tell whether others would show it with 7 figures: that needs 9 boots or more"
        assert change.reason == said


def test_series_and_architectures_are_of_one_family() -> None:
    where = [replace(HACKBENCH, series=f"s{n}", arch=arch) for n in range(3) for arch in ("arm64", "x86_64")]
    lines = {HACKBENCH: two_nights(UPS), **{one: two_nights(MIXED) for one in where}}
    assert found(lines).reach["n001"].tests == 7
    assert found({**lines, replace(HACKBENCH, tree="another", series="z"): two_nights(MIXED)}).reach["n001"].tests == 7


def test_holm_goes_down_step_by_step() -> None:
    """Three figures that all moved and two that did not: 5, 4 and 3 times 0.0078; the others 0.6 or more."""
    moved, still = [other(n) for n in range(3)], [other(n) for n in range(3, 5)]
    lines = {**{one: two_nights(UPS) for one in moved}, **{one: two_nights(MIXED) for one in still}}
    all_changes = found(lines).changes
    assert [c.line for c in all_changes if c.alert] == moved
    assert {of(all_changes, one).reason for one in moved} == {
        "crosses default: 2 %, p = 0.039 after Holm over 5 figures"
    }


def test_figures_that_no_signs_could_bring_over_their_limit_make_the_others_no_stricter() -> None:
    small = tuple(effect / 10 for effect in MIXED)
    lines = {HACKBENCH: two_nights(UPS), **{other(n): two_nights(small) for n in range(30)}}
    change = of(found(lines).changes, HACKBENCH)
    assert (change.alert, change.reason) == (True, "crosses default: 2 %, p = 0.0078")
    assert of(found(lines).changes, other(1)).reason == "below default: 2 %"


def test_figures_that_do_not_differ_make_the_others_no_stricter() -> None:
    lines = {HACKBENCH: two_nights(UPS), **{other(n): two_nights((0.0,) * 8) for n in range(30)}}
    (change,) = found(lines).changes
    assert change.alert


def test_sizes_alone_say_whether_a_figure_could_cross() -> None:
    limit = Limit("default", percent=2.0)
    for effects, could in ((MIXED, True), ((0.021, -0.021) * 4, True), ((0.019, -0.019) * 4, False)):
        before, after = two_nights(effects)
        forth, back = step_of(HACKBENCH, before, after), step_of(HACKBENCH, after, before)
        assert forth is not None
        assert back is not None
        assert forth.could_cross(limit) is back.could_cross(limit) is could
        assert not forth.crosses(limit)


def test_one_wild_boot_crosses_nothing() -> None:
    effects = (0.001, 0.0011, 0.0012, 0.0009, 0.0008, 0.0013, 0.0007, 0.5)
    (change,) = found({HACKBENCH: two_nights(effects)}).changes
    assert change.after == pytest.approx(1.063, abs=1e-3)
    assert (change.alert, change.reason) == (False, "below default: 2 %")


def test_a_case_or_counter_is_never_an_alert() -> None:
    case, counter = replace(HACKBENCH, case="groups=8"), replace(HACKBENCH, case="groups=8", metric="wakeups")
    lines = {HACKBENCH: two_nights(MIXED), case: two_nights(UPS), counter: two_nights(UPS, 300.0)}
    assert find_changes(lines).changes == []
    reason = of(found(lines).changes, case).reason
    assert (
        reason
        == "crosses default: 2 %, p = 0.016 after Holm over 2 figures of hackbench; it explains, and is no alert itself"
    )


def test_cases_that_surely_moved_stand_below_the_alert_largest_first() -> None:
    def of_case(name: str, metric: str = "time", workload: str = "hackbench") -> Line:
        return replace(HACKBENCH, case=name, metric=metric, workload=workload)

    more = tuple(2 * effect for effect in UPS)
    lines = {
        HACKBENCH: two_nights(UPS),
        of_case("groups=1"): two_nights(MIXED),
        of_case("groups=4"): two_nights(UPS),
        of_case("groups=8"): two_nights(more),
        of_case("groups=8", "wakeups"): two_nights((0.04,) * 8, 300.0),
        of_case("bs=4k", workload="dd"): two_nights(UPS),
        replace(of_case("groups=8"), series="another"): two_nights(UPS),
    }
    (alert,) = find_changes(lines).changes
    assert alert.line == HACKBENCH
    assert [(one.line.case, one.line.metric) for one in alert.shows_in] == [("groups=8", "time"), ("groups=4", "time")]
    assert not any(one.alert for one in alert.shows_in)


def test_what_a_night_could_have_told() -> None:
    few = found({other(n): two_nights(MIXED[:3]) for n in range(24)}).reach["n001"]
    assert (few.boots, few.tests, few.needed, few.percent) == (3, 24, 10, {})
    assert few.words == "3 boots: no test of 24 figures together can tell any change from noise; 10 boots or more can"
    one = found({HACKBENCH: two_nights((0.1,) * 8)}).reach["n001"]
    assert one.words == "8 boots: a change would be told in four of five: hackbench from 2 %", (
        "boots that agree: the limit itself"
    )
    assert found({HACKBENCH: two_nights((0.0,) * 8)}).reach == {}
    assert found({HACKBENCH: two_nights((0.1,))}).reach["n001"].words.startswith("1 boot: no test of one figure can")


def test_a_figure_that_lost_boots_is_named_and_hides_no_other() -> None:
    reach = found({HACKBENCH: two_nights((0.1,) * 8), other(1): two_nights(MIXED[:3])}).reach["n001"]
    assert (reach.boots, reach.tests, reach.needed, reach.too_few) == (8, 2, 7, ("w1",))
    said = "8 boots: a change would be told in four of five: hackbench from 2 %; too few boots for w1"
    assert reach.words == said


def test_what_could_have_been_told_grows_with_the_spread_and_with_the_figures() -> None:
    spread = (0.03, -0.02, 0.05, 0.01, -0.04, 0.02, 0.0, -0.03, 0.04, -0.01, 0.02, -0.02)
    wide = tuple(2 * effect for effect in spread)
    sizes = [
        found({HACKBENCH: two_nights(effects), **{other(n): two_nights(spread) for n in range(count)}})
        .reach["n001"].percent["hackbench"]
        for effects, count in ((spread, 0), (wide, 0), (spread, 20))
    ]  # fmt: skip
    assert 2 < sizes[0] < sizes[2] < sizes[1]


def test_noise_makes_an_alert_in_at_most_one_night_of_twenty() -> None:
    dice = np.random.default_rng(3)
    nights = 150
    false = 0
    for _ in range(nights):
        lines = {other(n): two_nights(np.expm1(dice.normal(0, 0.06, 8)).tolist()) for n in range(6)}
        false += bool(find_changes(lines).changes)
    assert false <= 15, "a binomial of 150 at 0.05 is above 15 once in 700"


def test_a_shift_in_real_time_is_held_against_the_number_of_figures() -> None:
    kvm = line("kvm")
    nights = real_time(2, {100: (Condition.KERNEL, 1.10)})
    others = {replace(kvm, workload=f"w{n}"): nights[:1] for n in range(99)}
    assert "(at most 0.001)" in find_changes({kvm: nights}).changes[0].reason
    (change,) = find_changes({kvm: nights, **others}).changes
    assert "(at most 0.0005)" in change.reason
    assert change.p_value is not None
    assert change.p_value <= 0.0005


def test_a_case_shifts_in_real_time_below_its_workloads_alert_or_not_at_all() -> None:
    kvm = line("kvm")
    case = replace(kvm, case="groups=8")
    nights, quiet = real_time(2, {100: (Condition.KERNEL, 1.10)}), real_time(1002, {})
    assert find_changes({kvm: quiet, case: nights}).changes == []
    assert [c.alert for c in found({kvm: quiet, case: nights}).changes] == [False]
    (alert,) = find_changes({kvm: nights, case: nights}).changes
    assert [one.line for one in alert.shows_in] == [case]
