# SPDX-License-Identifier: GPL-2.0-or-later
"""Comparing repeats: what counts as alike, and what is named when they are not."""

from __future__ import annotations

import json
from typing import Any

from kpatch_ci.model.status import Mode, Status
from kpatch_ci.pipeline.determinism import ABSENT, Difference, Observation, compare, differences, fields


def said(*, switches: int = 7, output: str = "hi\nTime: 0.4\n", console: str = "", **more: Any) -> Observation:
    events = [
        {"event": "job", "seed": 1},
        {"event": "output", "text": output},
        {"event": "run", "exit": 0, "elapsed_ns": 5},
        {"event": "counters", "delta": {"context_switches": switches, "idle_ns": 9 * switches}, "schedstat_sum": "ab"},
    ]
    samples = {"time": 0.4, "context_switches": float(switches)}
    text = "".join(json.dumps(e) + "\n" for e in events)
    return Observation(**{"status": Status.PASSED, "text": text, "console": console, "samples": samples, **more})


def test_repeats_that_said_the_same_are_identical_and_deterministic() -> None:
    found = compare([said()] * 3)
    assert (found.alike, found.repeats, found.identical, found.odd, found.first) == (3, 3, True, (), "")
    assert found.mode is Mode.DETERMINISTIC


def test_host_seconds_and_the_boot_of_origin_are_no_part_of_what_was_said() -> None:
    assert compare([said(seconds=1.0, source="a"), said(seconds=2.0, source="b")]).identical


def test_the_first_odd_repeat_is_named_with_field_and_both_values() -> None:
    found = compare([said(), said(switches=8, source="fresh boot"), said(), said(switches=9)])
    assert (found.alike, found.identical, found.mode) == (2, False, Mode.VIRTUAL_TIME)
    assert [o.repeat for o in found.odd] == [2, 4]
    assert found.odd[0].differences == (
        Difference("sample context_switches", "7.0", "8.0"),
        Difference("counters.delta.context_switches", "7", "8"),
        Difference("counters.delta.idle_ns", "63", "72"),
    )
    first = "repeat 2 (fresh boot): sample context_switches: 8.0, usually 7.0 (and 2 more fields)"
    assert found.first == first


def test_most_decide_what_is_usual_even_when_the_first_repeat_is_the_odd_one() -> None:
    found = compare([said(switches=8), said(), said()])
    assert [o.repeat for o in found.odd] == [1]


def test_a_line_of_an_output_or_of_the_console_has_a_name() -> None:
    found = differences(said(), said(output="ho\nTime: 0.4\n", console="[ 1.0] XFS\n"))
    assert found == (Difference("output.text line 1", "hi", "ho"), Difference("console line 1", ABSENT, "[ 1.0] XFS"))


def test_a_second_event_of_one_name_is_told_from_the_first() -> None:
    one = Observation(Status.PASSED, '{"event":"prep","exit":0}\n{"event":"prep","exit":1,"argv":["a"]}\nrubbish\n')
    assert fields(one) == {
        "status": "passed",
        "prep.exit": "0",
        "prep[2].exit": "1",
        "prep[2].argv[0]": "a",
        "result channel line 3": "rubbish",
    }


def test_a_difference_without_a_name_is_a_difference() -> None:
    (found,) = differences(said(console="a\n"), said(console="a\r\n"))
    assert (found.field, found.usual) == ("console", repr("\n"))


def test_a_long_value_is_cut_for_people_only() -> None:
    (found,) = differences(said(console="a" * 500), said(console="b" * 500))
    assert len(str(found)) < 200
    assert found.value == "b" * 500


def test_a_repeat_that_failed_is_the_first_thing_to_say() -> None:
    found = compare([said(), said(switches=8), said(status=Status.FAILED, reason="the guest crashed: oops")])
    assert not found.identical
    assert found.first == "repeat 3 failed: the guest crashed: oops"
    assert found.mode is Mode.VIRTUAL_TIME


def test_a_repeat_that_failed_says_nothing_about_the_mode() -> None:
    found = compare([said(), said(), said(status=Status.FAILED, reason="the guest was not done after 180 s")])
    assert (found.identical, [o.repeat for o in found.odd], found.mode) == (False, [3], None)


def test_failing_alike_is_no_success_and_proves_no_mode() -> None:
    lost = Observation(Status.FAILED, reason="hackbench ended with exit status 1")
    skipped = Observation(Status.SKIPPED, reason="2 other repeats failed")
    found = compare([lost, lost, skipped])
    assert (found.alike, found.odd, found.identical, found.mode) == (2, (), False, None)
    assert found.first == "repeat 1 failed: hackbench ended with exit status 1"
    assert compare([skipped]).first == "repeat 1 skipped: 2 other repeats failed"
