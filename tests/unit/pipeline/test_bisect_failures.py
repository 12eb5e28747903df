# SPDX-License-Identifier: GPL-2.0-or-later
"""Bisections for what is seen or not: builds, boots, crashes, failing workloads, symbols, words on the console."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kpatch_ci.model.bisect import Ending, Find, How
from kpatch_ci.pipeline.bisect.bench import Question
from tests.fakes.kernels import World, line
from tests.unit.pipeline.test_bisect import MACHINE, PLAN, QUESTION, Lab, found

HISTORY = line(9)


def since(number: int, name: str) -> bool:
    return int(name[1:]) >= number


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path, HISTORY)


def test_the_commit_that_breaks_the_build_is_found_without_a_boot(lab: Lab) -> None:
    world = World(broken=lambda n: since(6, n))
    result = lab.run(world, "c0", "c9", question=Question(Find.BUILD, MACHINE))
    assert found(result) == "c6"
    assert not [call for call in world.calls if call.startswith("run")]
    assert result.error is None


def test_a_build_that_breaks_is_told_with_the_first_of_the_compiler_s_errors(lab: Lab) -> None:
    said = "lib/a.c:3:1: warning: old\n/src/lib/sort.c:60:9: error: implicit declaration of function 'f'\nmake: *** Error 1\n"
    world = World(broken=lambda n: since(6, n), log_tail=said)
    result = lab.run(world, "c0", "c9", question=Question(Find.BUILD, MACHINE))
    told = "make failed with exit status 2: lib/sort.c:60: implicit declaration of function 'f'"
    assert result.ends
    assert result.ends.why == f"bad does not build: {told}"
    assert {step.why for step in result.steps} == {"builds", told}
    world = World(broken=lambda n: n == "c9", log_tail='ERROR: modpost: "f" [a.ko] undefined!\n')
    result = lab.run(world, "c0", "c9", question=Question(Find.BOOT, MACHINE), state="b")
    assert result.why == 'bad does not build: make failed with exit status 2: modpost: "f" [a.ko] undefined!'


def test_the_commit_that_does_not_boot_is_found_past_one_that_does_not_build(lab: Lab) -> None:
    world = World(broken=lambda n: n == "c5", unbootable=lambda n: since(7, n))
    result = lab.run(world, "c0", "c9", question=Question(Find.BOOT, MACHINE))
    assert found(result) == "c7"
    assert {s.how for s in result.steps} <= {How.TRIED, How.NOT_BUILT}


def test_a_crash_that_shows_in_a_third_of_the_boots_is_found(lab: Lab) -> None:
    """A step takes so many boots that it is hardly missed."""
    world = World(
        failing=lambda n, boot: "the guest crashed: BUG: at x" if since(4, n) and (boot * 7919) % 3 == 1 else ""
    )
    result = lab.run(world, "c0", "c9", question=replace(QUESTION, find=Find.CRASH))
    assert found(result) == "c4"
    assert result.ends
    assert result.ends.boots == 15, "(1 - 3/8) to the 15th is below 0.001"
    assert result.ends.tally
    assert (result.ends.tally.seen, result.ends.tally.of) == (2, 6)


def test_a_run_that_fails_otherwise_is_no_crash(lab: Lab) -> None:
    world = World(failing=lambda n, _: "hackbench: exit status 1" if since(2, n) and not since(9, n) else "")
    ends = World(failing=lambda n, b: "the guest crashed: Oops" if since(9, n) else world.failing(n, b))
    result = lab.run(ends, "c0", "c9", question=replace(QUESTION, find=Find.CRASH))
    assert result.ending is Ending.SKIPPED
    assert len(result.candidates) == 8
    assert {step.how for step in result.steps} == {How.NOT_RUN, How.TRIED}


def test_a_workload_s_failure_is_found(lab: Lab) -> None:
    world = World(failing=lambda n, _: "hackbench: exit status 1" if since(5, n) else "")
    result = lab.run(world, "c0", "c9", question=replace(QUESTION, find=Find.WORKLOAD))
    assert found(result) == "c5"
    assert "exit status 1" in result.steps[-1].why or "not seen" in result.steps[-1].why


def test_a_symbol_is_found_and_each_kernel_is_looked_at_once(lab: Lab) -> None:
    world = World(symbols=lambda n: "new_thing" if since(8, n) else "old_thing", place=lab.place / "kernels")
    result = lab.run(world, "c0", "c9", question=Question(Find.SYMBOL, MACHINE, symbol="new_thing"))
    assert found(result) == "c8"
    assert not [call for call in world.calls if call.startswith("run")]


def test_words_on_the_console_are_found(lab: Lab) -> None:
    world = World(symbols=lambda n: "WARNING: CPU: 1 at x" if since(3, n) else "fine")
    result = lab.run(world, "c0", "c9", question=Question(Find.LOG, MACHINE, pattern=r"WARNING: CPU: \d"))
    assert found(result) == "c3"


def test_a_kernel_that_cannot_be_configured_is_no_broken_build(lab: Lab) -> None:
    """A symbol that the configuration asks for came only with c5."""
    world = World(broken=lambda n: since(7, n), unconfigurable=lambda n: not since(5, n) and n != "c0")
    result = lab.run(world, "c0", "c9", question=Question(Find.BUILD, MACHINE))
    assert found(result) == "c7"
    missing = World(broken=lambda n: since(7, n), unconfigurable=lambda n: n == "c9")
    result = lab.run(missing, "c0", "c9", question=Question(Find.BUILD, MACHINE), state="b")
    assert result.ending is Ending.UNUSABLE
    assert "bad cannot be configured" in result.why


def test_a_failure_that_good_has_too_or_bad_has_not_is_said(lab: Lab) -> None:
    always = World(unbootable=lambda _: True)
    result = lab.run(always, "c0", "c9", question=Question(Find.BOOT, MACHINE))
    assert result.ending is Ending.UNUSABLE
    assert "good shows it too" in result.why
    result = lab.run(World(), "c0", "c9", question=Question(Find.BOOT, MACHINE))
    assert (result.ending, result.why) == (Ending.NO_DIFFERENCE, "bad does not show it in 48 tries")
    result = lab.run(World(), "c0", "c9", question=Question(Find.BUILD, MACHINE), state="b")
    assert (result.ending, result.why) == (Ending.NO_DIFFERENCE, "bad builds")
    broken = World(broken=lambda _: True)
    result = lab.run(broken, "c0", "c9", question=Question(Find.BUILD, MACHINE), state="c")
    assert result.ending is Ending.UNUSABLE


def test_where_figures_are_looked_for_a_run_that_fails_is_skipped(lab: Lab) -> None:
    world = World(lambda n: 0.3 * since(7, n), failing=lambda n, b: "it hung" if n == "c5" and b == 3 else "")
    result = lab.run(world, "c0", "c9", question=replace(QUESTION, plan=PLAN))
    assert found(result) == "c7"
    assert [s.how for s in result.steps if s.commit.subject == "c5"] in ([], [How.NOT_RUN])
