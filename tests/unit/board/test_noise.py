# SPDX-License-Identifier: GPL-2.0-or-later
"""What else moves a board's figures: read, set, and judged."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kpatch_ci.board.noise import LOOK, disturbed, failures, read_look, set_script, too_hot, unwatched
from kpatch_ci.model.board import Quiet

CPU = "/sys/devices/system/cpu"
SAID = f"""\
governor {CPU}/cpufreq/policy0/scaling_governor schedutil
governor {CPU}/cpufreq/policy4/scaling_governor performance
khz {CPU}/cpufreq/policy0/scaling_cur_freq 600000
boost {CPU}/cpufreq/boost 1
smt {CPU}/smt/control off
millicelsius /sys/class/thermal/thermal_zone0/temp 41500
millicelsius /sys/class/thermal/thermal_zone1/temp 63250
throttled {CPU}/cpu0/thermal_throttle/core_throttle_count 2
throttled {CPU}/cpu1/thermal_throttle/core_throttle_count 3
load /proc/loadavg 0.42 0.10 0.05 1/99 1234
cpu implementer 0x41
cpu part 0xd08
"""


def test_what_a_board_shows() -> None:
    assert read_look(SAID) == {
        "governor": {"policy0": "schedutil", "policy4": "performance"},
        "khz": {"policy0": "600000"},
        "boost": "1",
        "smt": "off",
        "celsius": 63.25,
        "throttled": 5,
        "load": 0.42,
        "cpu": "implementer 0x41 part 0xd08",
    }


def test_intels_switch_is_the_other_way_round() -> None:
    assert read_look(f"no_turbo {CPU}/intel_pstate/no_turbo 1\n") == {"boost": "0"}


def test_what_is_not_there_is_left_away_not_guessed() -> None:
    assert read_look("load /proc/loadavg 0.00 0 0\n") == {"load": 0.0}
    assert read_look("") == {}


def _tree(place: Path) -> Path:
    for path, text in (
        ("cpufreq/policy0/scaling_governor", "schedutil"),
        ("cpufreq/policy4/scaling_governor", "schedutil"),
        ("cpufreq/boost", "1"),
        ("smt/control", "on"),
    ):
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(text + "\n")
    return place


def _sh(script: str, place: Path) -> str:
    done = subprocess.run(
        ["/bin/sh", "-c", script.replace(CPU, str(place))], capture_output=True, text=True, check=True
    )
    return done.stdout


def test_the_scripts_set_and_see_what_was_set(tmp_path: Path) -> None:
    place = _tree(tmp_path)
    assert failures(_sh(set_script(Quiet("performance", boost=False, smt=False)), place)) == ()
    look = read_look(_sh(LOOK, place))
    assert look["governor"] == {"policy0": "performance", "policy4": "performance"}
    assert (look["boost"], look["smt"]) == ("0", "off")
    assert look["cpu"]
    assert look["load"] >= 0


def test_what_cannot_be_set_is_said(tmp_path: Path) -> None:
    said = failures(_sh(set_script(Quiet("performance", boost=True, smt=False)), tmp_path))
    assert said == ("governor performance: no cpufreq", "boost: no switch", "smt off: no switch")


def test_nothing_asked_nothing_set(tmp_path: Path) -> None:
    place = _tree(tmp_path)
    assert failures(_sh(set_script(Quiet()), place)) == ()
    assert (place / "cpufreq/boost").read_text() == "1\n"


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ({"throttled": 1}, {"throttled": 1}, None),
        ({"throttled": 1}, {"throttled": 3, "celsius": 90.0}, "throttled 2 times while it ran (90.0 degrees"),
        ({}, {"celsius": 71.0}, "was at 71 degrees Celsius after it, and 70 is its limit"),
        ({"governor": {"policy0": "performance"}}, {"governor": {"policy0": "powersave"}}, "its governor changed"),
        ({}, {}, None),
    ],
)
def test_a_run_that_was_disturbed_does_not_count(
    before: dict[str, object], after: dict[str, object], why: str | None
) -> None:
    said = disturbed(before, after, Quiet(max_celsius=70))
    assert (why in said) if why and said else said is why


def test_without_a_limit_or_a_sensor_nothing_is_too_hot() -> None:
    assert not too_hot({"celsius": 99.0}, Quiet())
    assert not too_hot({}, Quiet(max_celsius=50))
    assert too_hot({"celsius": 50.1}, Quiet(max_celsius=50))


def test_a_sensor_that_shows_nonsense_is_left_out() -> None:
    values = ("-274000", "2147483647", "255000", "--5", "\u00b2", "warm", "0x20", "48000")
    said = "".join(f"millicelsius /sys/class/thermal/thermal_zone{n}/temp {v}\n" for n, v in enumerate(values))
    said += "throttled x -1\nthrottled /sys/y many\nload /proc/loadavg nan 0 0\ngovernor odd performance\nload\n"
    assert read_look(said) == {"celsius": 48.0, "governor": {"odd": "performance"}}
    assert read_look("load /proc/loadavg \nkhz\n") == {}


def test_a_count_that_was_not_there_before_has_not_risen() -> None:
    assert disturbed({}, {"throttled": 7}, Quiet()) is None


def test_a_limit_that_nobody_can_watch_is_said() -> None:
    assert unwatched({}, Quiet(max_celsius=60)) == (
        "no sensor shows a temperature, and 60 degrees Celsius are the limit",
    )
    assert unwatched({"celsius": 41.0}, Quiet(max_celsius=60)) == unwatched({}, Quiet()) == ()
