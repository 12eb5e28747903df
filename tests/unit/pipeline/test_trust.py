# SPDX-License-Identifier: GPL-2.0-or-later
"""Pools of known noise and known slow-downs, judged: which targets are met, and what the tables rest on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kpatch_ci.config.load import Config, Selection, load_config
from kpatch_ci.model.status import Verdict
from kpatch_ci.pipeline.trust import Trust, judge
from kpatch_ci.stats.calibration import PRIMARY
from tests.fakes.pools import PLAN, pools

PROJECT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def config() -> Config:
    found = load_config(PROJECT / "pipeline.yaml", Selection(workloads=("hackbench",), arches=("x86_64",), seeds=1))
    return replace(found, workloads=(PLAN,))


def met(trust: Trust) -> list[bool]:
    return [target.met for target in trust.targets]


def test_a_quiet_machine_meets_all_three_targets(config: Config) -> None:
    trust = judge(pools(400), config, 10, 100)
    assert met(trust) == [True, True, True]
    assert [target.what.split(":")[0] for target in trust.targets] == ["A/A'", "A/A", "hackbench"]
    assert trust.whole[0].verdict is Verdict.NO_CHANGE
    assert [(level.level_percent, level.steps) for level in trust.levels] == [(0.5, 50), (1, 100), (2, 200), (5, 500)]
    assert [one.seeds for one in trust.levels[1].power] == [5, 10, 12, 20]
    shares = [level.power[1].significant.share for level in trust.levels]
    assert shares == sorted(shares)
    assert shares[0] < 0.9
    assert shares[-1] == 1.0


def test_a_noisy_machine_does_not_find_one_percent(config: Config) -> None:
    trust = judge(pools(100, spread=3), config, 10, 50)
    assert met(trust)[-1] is False
    assert trust.levels[1].power[1].expected < 0.3


def test_an_effect_of_layout_is_a_false_positive(config: Config) -> None:
    trust = judge(pools(100, layout=3), config, 10, 50)
    assert met(trust)[:2] == [False, True]
    assert trust.targets[0].reached == "50 of 50: 100.00 %"
    assert trust.whole[0].change_percent == pytest.approx(-3, abs=0.3)


def test_a_slow_down_that_is_less_than_its_level_is_told_as_it_is(config: Config) -> None:
    trust = judge(pools(100, scale=0.5), config, 10, 20)
    assert trust.levels[2].whole.change_percent == pytest.approx(-1, abs=0.2)


def test_a_pool_without_two_halves_has_no_second_estimate(config: Config) -> None:
    trust = judge(pools(12), config, 10, 20)
    assert trust.split == ()
    assert len(trust.targets) == 2
    assert {one.seeds for level in trust.levels for one in level.power} == {5, 10, 12}


def test_false_positives_are_counted_for_figures_cases_and_counters(config: Config) -> None:
    trust = judge(pools(30), config, 10, 20)
    assert {(row.kind, row.alpha) for row in trust.layout} == {
        (kind, alpha) for kind in (PRIMARY, "cases", "counters") for alpha in (0.05, 0.01)
    }
    by_kind = {row.kind: row.significant.trials for row in trust.layout}
    # One primary figure; two cases; one counter that every replicate has.
    assert by_kind == {PRIMARY: 20, "cases": 40, "counters": 40}
