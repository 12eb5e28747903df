# SPDX-License-Identifier: GPL-2.0-or-later
"""Bisections of real git histories, the kernels of which are numbers (tests/fakes/kernels.py)."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import git
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kpatch_ci.guest.machine import load_machine
from kpatch_ci.kernel.gitbisect import GitBisect, read_range
from kpatch_ci.model.bisect import Bisection, Class, Ending, Find, How
from kpatch_ci.model.workload import Case, Metric, WorkloadPlan
from kpatch_ci.pipeline.bisect.bench import Question
from kpatch_ci.pipeline.bisect.drive import Job, bisect
from kpatch_ci.pipeline.bisect.memory import Memory
from tests.fakes.kernels import FakeBench, History, Killed, World, line, make_repo

MACHINE = load_machine(Path(__file__).resolve().parents[3] / "qemu" / "x86_64-8.yaml")
PLAN = WorkloadPlan("hackbench", "hackbench", (Case((("groups", 8),)),), 1.0)
QUESTION = Question(Find.METRIC, MACHINE, PLAN, "groups=8", Metric("time", "s", "lower"))
MERGED: History = {
    "base": [],
    "main1": ["base"],
    "side1": ["base"],
    "side2": ["side1"],
    "main2": ["main1"],
    "merge": ["main2", "side2"],
    "after": ["merge"],
}


def has(history: History, name: str) -> set[str]:
    """A commit and all that it comes from."""
    found, todo = set(), [name]
    while todo:
        one = todo.pop()
        if one not in found:
            found.add(one)
            todo += history[one]
    return found


def worse_from(history: History, planted: str, by: float = 0.2) -> Callable[[str], float]:
    """Kernels that have the commit are that much worse."""
    return lambda name: by if planted in has(history, name) else 0.0


class Lab:
    """One history in a repository; bisections of it."""

    def __init__(self, place: Path, history: History) -> None:
        self.place, self.history = place, history
        self.hashes = make_repo(place / "linux.git", history)

    def run(
        self,
        world: World,
        good: str,
        bad: str,
        *,
        question: Question = QUESTION,
        options: tuple[str, ...] = (),
        state: str = "state",
        told: dict[str, Class] | None = None,
    ) -> Bisection:
        ends = read_range(self.place / "linux.git", self.hashes[good], self.hashes[bad], options)
        memory = Memory(self.place / state)
        searcher = GitBisect(memory.place, self.place / "linux.git", options)
        job = Job(
            question,
            searcher.commit(ends.good),
            searcher.commit(ends.bad),
            ends.count,
            "linux",
            told=told or {},
            first_parent="--first-parent" in options,
        )
        return bisect(job, searcher, FakeBench(question, world), memory, lambda _: None)


def found(result: Bisection) -> str:
    assert result.ending is Ending.FOUND, result.why
    assert result.first_bad
    return result.first_bad.subject


def test_every_planted_commit_of_a_line_is_found(tmp_path: Path) -> None:
    history = line(6)
    lab = Lab(tmp_path, history)
    for planted in list(history)[1:]:
        result = lab.run(World(worse_from(history, planted)), "c0", "c6", state=planted)
        assert found(result) == planted
        assert result.files == (f"{planted}.c",)
        assert len(result.steps) <= 4
        assert {step.how for step in result.steps} == {How.MEASURED}
        (proof,) = result.proofs
        assert proof.cls is Class.GOOD
        assert proof.share_percent == pytest.approx(100, abs=10)


def test_one_commit_between_the_ends_takes_no_step(tmp_path: Path) -> None:
    result = Lab(tmp_path, line(1)).run(World(worse_from(line(1), "c1")), "c0", "c1")
    assert found(result) == "c1"
    assert result.steps == ()
    assert result.proofs[0].why == "the good end"


def test_every_planted_commit_of_a_merge_is_found(tmp_path: Path) -> None:
    lab = Lab(tmp_path, MERGED)
    for planted in list(MERGED)[1:]:
        result = lab.run(World(worse_from(MERGED, planted)), "base", "after", state=planted)
        assert found(result) == planted
        assert len(result.proofs) == len(MERGED[planted]), "every parent is judged for itself"
        assert {proof.cls for proof in result.proofs} == {Class.GOOD}


def test_first_parent_takes_a_merge_as_one_step(tmp_path: Path) -> None:
    lab = Lab(tmp_path, MERGED)
    world = World(worse_from(MERGED, "side1"))
    assert found(lab.run(world, "base", "after", options=("--first-parent",))) == "merge"
    assert not {"build side1", "build main1"} <= set(world.calls)


def test_only_commits_of_a_path_are_tried(tmp_path: Path) -> None:
    history = line(9)
    lab = Lab(tmp_path, history)
    result = lab.run(World(worse_from(history, "c4")), "c0", "c9", options=("--", "c2.c", "c4.c", "c6.c"))
    assert result.commits == 3
    assert found(result) == "c4"


@st.composite
def histories(draw: st.DrawFn) -> tuple[History, str, str]:
    """A history with merges, its last commit, and a commit in it that is not the first."""
    count = draw(st.integers(2, 12))
    history: dict[str, list[str]] = {"c0": []}
    for number in range(1, count + 1):
        earlier = draw(st.sets(st.integers(max(0, number - 4), number - 1), min_size=1, max_size=3))
        history[f"c{number}"] = [f"c{n}" for n in sorted(earlier, reverse=True)]
    bad = f"c{count}"
    planted = draw(st.sampled_from(sorted(has(history, bad) - {"c0"})))
    return history, bad, planted


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(histories())
def test_the_commit_is_right_in_any_history(made: tuple[History, str, str]) -> None:
    history, bad, planted = made
    with tempfile.TemporaryDirectory() as place:
        lab = Lab(Path(place), history)
        assert found(lab.run(World(worse_from(history, planted)), "c0", bad)) == planted


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(histories(), st.sets(st.integers(1, 12), max_size=4))
def test_skipped_commits_never_make_the_answer_wrong(made: tuple[History, str, str], broken: set[int]) -> None:
    history, bad, planted = made
    names = {f"c{n}" for n in broken} - {bad}
    with tempfile.TemporaryDirectory() as place:
        lab = Lab(Path(place), history)
        world = World(worse_from(history, planted), broken=lambda name: name in names)
        result = lab.run(world, "c0", bad)
        if result.ending is Ending.FOUND:
            assert found(result) == planted
        else:
            assert result.ending is Ending.SKIPPED
            assert planted in {commit.subject for commit in result.candidates}


def test_commits_around_the_first_bad_one_that_do_not_build_leave_a_set(tmp_path: Path) -> None:
    history = line(9)
    lab = Lab(tmp_path, history)
    world = World(worse_from(history, "c5"), broken=lambda n: n in ("c4", "c5"), unbootable=lambda n: n == "c6")
    result = lab.run(world, "c0", "c9")
    assert result.ending is Ending.SKIPPED
    assert {commit.subject for commit in result.candidates} == {"c4", "c5", "c6", "c7"}
    assert {s.how for s in result.steps if s.cls is Class.SKIP} == {How.NOT_BUILT, How.NOT_BOOTED}
    assert "one of 4" in result.why
    assert "# possible first bad commit" in result.log


def test_commits_elsewhere_that_do_not_build_cost_nothing_but_a_step(tmp_path: Path) -> None:
    history = line(16)
    lab = Lab(tmp_path, history)
    world = World(worse_from(history, "c13"), broken=lambda n: n in ("c8", "c9"))
    result = lab.run(world, "c0", "c16")
    assert found(result) == "c13"
    assert any(s.how is How.NOT_BUILT for s in result.steps)


def test_a_commit_with_half_of_the_effect_is_undecided_and_skipped(tmp_path: Path) -> None:
    history = line(8)
    lab = Lab(tmp_path, history)
    levels = {f"c{n}": 0.0 if n < 4 else 0.1 if n < 6 else 0.2 for n in range(9)}
    world = World(levels.__getitem__, noise=0.03)
    result = lab.run(world, "c0", "c8")
    undecided = [s for s in result.steps if s.how is How.UNDECIDED]
    assert undecided
    assert all(levels[s.commit.subject] == 0.1 for s in undecided)
    assert all(s.change and s.change.boots > (result.ends.boots if result.ends else 0) for s in undecided)
    assert result.ending is Ending.SKIPPED
    assert {"c4", "c6"} <= {commit.subject for commit in result.candidates}


def test_of_two_culprits_the_share_of_the_first_is_told(tmp_path: Path) -> None:
    history = line(8)
    lab = Lab(tmp_path, history)
    levels = {f"c{n}": 0.0 if n < 3 else 0.15 if n < 6 else 0.2 for n in range(9)}
    result = lab.run(World(levels.__getitem__), "c0", "c8")
    assert found(result) == "c3"
    assert result.proofs[0].share_percent == pytest.approx(75, abs=6)


def test_ends_that_do_not_differ_stop_it_before_any_step(tmp_path: Path) -> None:
    lab = Lab(tmp_path, line(8))
    world = World()
    result = lab.run(world, "c0", "c8")
    assert result.ending is Ending.NO_DIFFERENCE
    assert "do not differ" in result.why
    assert "would have been found in four of five" in result.why
    assert result.ends
    assert result.ends.mde_percent
    assert result.steps == ()
    assert {call.split()[1] for call in world.calls} == {"c0", "c8"}
    assert world.calls[-1].endswith(" 48"), "as many boots as there may be"


def test_an_improvement_is_found_as_well(tmp_path: Path) -> None:
    history = line(8)
    result = Lab(tmp_path, history).run(World(worse_from(history, "c6", -0.2)), "c0", "c8")
    assert found(result) == "c6"
    assert result.ends
    assert "better" in result.ends.why
    assert result.ends.half_percent == pytest.approx(9.5, abs=1)


def test_the_boots_of_a_step_follow_from_the_effect(tmp_path: Path) -> None:
    history = line(4)
    lab = Lab(tmp_path, history)
    boots = []
    for number, effect in enumerate((0.5, 0.1, 0.05)):
        result = lab.run(World(worse_from(history, "c2", effect), noise=0.02), "c0", "c4", state=f"s{number}")
        assert found(result) == "c2"
        assert result.ends
        boots.append(result.ends.boots)
    assert boots[0] <= 5 < boots[1] < boots[2] <= 48


def test_a_metric_that_is_zero_cannot_be_halved(tmp_path: Path) -> None:
    history = line(4)
    from dataclasses import replace  # noqa: PLC0415

    from kpatch_ci.model.workload import MIGRATIONS  # noqa: PLC0415

    result = Lab(tmp_path, history).run(
        World(worse_from(history, "c2")), "c0", "c4", question=replace(QUESTION, metric=MIGRATIONS)
    )
    assert result.ending is Ending.UNUSABLE
    assert "migrations is 0" in result.why


def test_a_commit_with_a_known_kernel_is_not_measured(tmp_path: Path) -> None:
    """c1..c5 change nothing that is compiled, c6 is planted, c7..c9 change nothing again."""
    history = line(9)
    lab = Lab(tmp_path, history)
    world = World(worse_from(history, "c6"), kernel=lambda name: "old" if int(name[1:]) < 6 else "new")
    result = lab.run(world, "c0", "c9")
    assert found(result) == "c6"
    assert {s.how for s in result.steps} == {How.SAME_KERNEL}
    assert {s.like for s in result.steps} <= {lab.hashes["c0"], lab.hashes["c9"]}
    measured = {call.split()[1] for call in world.calls if call.startswith("run")}
    assert measured <= {"c0", "c9", "c5", "c6"}, "the ends, and the two that are compared at the end"


def test_ends_of_one_kernel_are_not_even_booted(tmp_path: Path) -> None:
    world = World(kernel=lambda _: "same")
    result = Lab(tmp_path, line(5)).run(world, "c0", "c5")
    assert result.ending is Ending.NO_DIFFERENCE
    assert "byte for byte" in result.why
    assert world.calls == ["build c0", "build c5"]


def test_an_end_that_does_not_build_is_said(tmp_path: Path) -> None:
    history = line(5)
    lab = Lab(tmp_path, history)
    result = lab.run(World(broken=lambda n: n == "c0"), "c0", "c5")
    assert (result.ending, result.why) == (Ending.UNUSABLE, "good does not build: make failed with exit status 2")
    result = lab.run(World(worse_from(history, "c2"), unbootable=lambda n: n == "c5"), "c0", "c5")
    assert result.ending is Ending.UNUSABLE
    assert "does not boot" in result.why


def test_the_same_command_goes_on_after_a_kill_at_every_call(tmp_path: Path) -> None:
    history = line(7)
    lab = Lab(tmp_path, history)
    whole = World(worse_from(history, "c5"))
    expected = lab.run(whole, "c0", "c7", state="whole")
    for at in range(1, len(whole.calls) + 1):
        world = World(worse_from(history, "c5"), kill_at=at)
        with pytest.raises(Killed):
            lab.run(world, "c0", "c7", state=f"s{at}")
        again = World(worse_from(history, "c5"))
        result = lab.run(again, "c0", "c7", state=f"s{at}")
        assert found(result) == "c5"
        assert [(s.commit, s.cls, s.why) for s in result.steps] == [(s.commit, s.cls, s.why) for s in expected.steps]
        assert result.log == expected.log
        assert result.proofs == expected.proofs
        done = result.spent.resumed
        tried = {call.split()[1] for call in again.calls}
        assert not tried & {s.commit.subject for s in result.steps[:done]} - {"c4", "c5"}, "no step is done twice"


def test_killed_at_every_call_one_after_the_other(tmp_path: Path) -> None:
    """Each process gets one call further than a step needs at least."""
    history = line(12)
    lab = Lab(tmp_path, history)
    for _ in range(40):
        try:
            result = lab.run(World(worse_from(history, "c9"), kill_at=6), "c0", "c12")
        except Killed:
            continue
        assert found(result) == "c9"
        return
    pytest.fail("it never ended")


def test_damaged_notes_are_begun_anew(tmp_path: Path) -> None:
    history = line(5)
    lab = Lab(tmp_path, history)
    lab.run(World(worse_from(history, "c2")), "c0", "c5")
    (tmp_path / "state" / "state.json").write_text('{"version": 1, "steps": [{"cls"')
    result = lab.run(World(worse_from(history, "c2")), "c0", "c5")
    assert found(result) == "c2"
    assert result.spent.resumed == 0


def test_good_beside_bad_tests_what_both_come_from(tmp_path: Path) -> None:
    lab = Lab(tmp_path, MERGED)
    world = World(worse_from(MERGED, "main1"))
    result = lab.run(world, "side2", "main2")
    assert result.steps[0].commit.subject == "base"
    assert found(result) == "main1"


def test_a_merge_base_that_is_bad_is_said_in_git_s_words(tmp_path: Path) -> None:
    """It was bad all along, and mended on the side branch."""
    lab = Lab(tmp_path, MERGED)
    world = World(lambda name: 0.0 if name in ("side1", "side2") else 0.2)
    result = lab.run(world, "side2", "main2")
    assert result.ending is Ending.MERGE_BASE_BAD
    assert "This means the bug has been fixed between" in result.why


def test_a_log_s_classes_are_believed(tmp_path: Path) -> None:
    history = line(9)
    lab = Lab(tmp_path, history)
    first = lab.run(World(worse_from(history, "c3")), "c0", "c9")
    told = {s.commit.hash: s.cls for s in first.steps[:2]}
    world = World(worse_from(history, "c3"))
    result = lab.run(world, "c0", "c9", state="again", told=told)
    assert found(result) == "c3"
    assert [s.how for s in result.steps[:2]] == [How.TOLD, How.TOLD]
    assert result.log == first.log


def test_git_itself_replays_the_log(tmp_path: Path) -> None:
    history = line(9)
    lab = Lab(tmp_path, history)
    result = lab.run(World(worse_from(history, "c7"), broken=lambda n: n == "c5"), "c0", "c9")
    clone = git.Repo.clone_from(str(tmp_path / "linux.git"), tmp_path / "clone")
    (tmp_path / "bisect.log").write_text(result.log)
    code, out, _ = clone.git.execute(
        ["git", "bisect", "replay", str(tmp_path / "bisect.log")], with_extended_output=True, with_exceptions=False
    )
    assert f"{lab.hashes['c7']} is the first bad commit" in out, (code, out)


def test_the_repository_is_left_as_it_was(tmp_path: Path) -> None:
    history = line(9)
    lab = Lab(tmp_path, history)
    place = tmp_path / "linux.git"

    def state() -> dict[str, bytes]:
        return {str(p.relative_to(place)): p.read_bytes() for p in sorted(place.rglob("*")) if p.is_file()}

    before = state()
    lab.run(World(worse_from(history, "c7")), "c0", "c9")
    assert state() == before
