# SPDX-License-Identifier: GPL-2.0-or-later
"""Nodes at other places: who takes what, and what happens when a place is lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from kpatch_ci import process
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.pipeline.engine import Engine, Node, Values
from kpatch_ci.pipeline.places import GUEST_KINDS, HERE, Doubted, Place, PlaceLost
from kpatch_ci.pipeline.ready import Ready
from kpatch_ci.pipeline.slots import Slots
from tests.unit.pipeline.test_engine import Watcher


@pytest.fixture(autouse=True)
def forget_that_we_stopped() -> Iterator[None]:
    yield
    process._stopping.clear()


@dataclass
class There:
    """A place that counts what it does, and is lost after ``lives`` stages."""

    name: str
    slots: int = 1
    kinds: frozenset[str] = GUEST_KINDS
    lost: str = ""
    moved: tuple[int, int] = (0, 0)
    stopped: bool = False
    lives: int = 1000
    done: list[str] = field(default_factory=list)
    at_once: int = 0
    most: int = 0
    lock: Any = field(default_factory=threading.Lock)

    def close(self) -> None:
        self.lost = "closed"

    def stop(self) -> None:
        self.stopped = True

    def take(self, name: str) -> str:
        with self.lock:
            self.at_once += 1
            self.most = max(self.most, self.at_once)
            lost = len(self.done) >= self.lives
            if not lost:
                self.done.append(name)
        threading.Event().wait(0.002)
        with self.lock:
            self.at_once -= 1
        if lost:
            raise PlaceLost("the connection broke")
        return self.name


def node(name: str, kind: str = "run", affinity: str = "", needs: tuple[str, ...] = ()) -> Node:
    def at(_: Values, place: Place) -> str:
        return cast("There", place).take(name)

    return Node(name, kind, lambda _: HERE, needs, elsewhere=at, affinity=affinity)


def run(
    nodes: Sequence[Node], places: Sequence[There], *, slots: int = 1, spare_here: bool = False
) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    watcher = Watcher()
    with Slots(slots) as pool:
        engine = Engine(pool, watcher, cast("Sequence[Place]", places), spare_here=spare_here)
        return engine.run(nodes), watcher.log


def test_work_is_spread_by_slots_and_no_place_gets_more_at_once_than_it_has() -> None:
    a, b = There("a", slots=2), There("b", slots=3)
    values, _ = run([node(str(i)) for i in range(60)], [a, b], spare_here=True)
    assert set(values.values()) == {"a", "b"}
    assert (a.most, b.most) == (2, 3)
    assert len(a.done) + len(b.done) == 60


def test_this_machine_works_too_unless_it_is_to_be_spared() -> None:
    values, _ = run([node(str(i)) for i in range(40)], [There("a")])
    assert set(values.values()) == {"a", HERE}


def test_a_place_gets_only_the_kinds_that_it_does_and_the_rest_runs_here() -> None:
    a = There("a", kinds=frozenset({"build"}))
    values, _ = run([node("b", kind="build"), node("r", kind="run")], [a], spare_here=True)
    assert values == {"b": "a", "r": HERE}


def test_what_is_for_one_place_alone_goes_there_though_others_are_as_good_and_found_nothing() -> None:
    places = [There(name) for name in "abc"]
    nodes = [replace(node(f"{name} {i}"), only=name) for name in "cab" for i in range(5)]
    values, _ = run(nodes, places)
    assert values == {f"{name} {i}": name for name in "abc" for i in range(5)}


def test_what_is_for_a_place_that_is_lost_is_done_here() -> None:
    values, _ = run([replace(node(str(i)), only="b") for i in range(4)], [There("a"), There("b", lives=2)])
    assert sorted(values.values()) == ["b", "b", HERE, HERE]


def test_a_node_that_cannot_travel_runs_here_even_where_this_machine_is_spared() -> None:
    values, _ = run([Node("image", "boot", lambda _: "made")], [There("a")], spare_here=True)
    assert values == {"image": "made"}


def test_what_a_lost_place_was_at_is_done_elsewhere_and_it_is_named_once() -> None:
    a, b = There("a", slots=2, lives=3), There("b")
    values, log = run([node(str(i)) for i in range(30)], [a, b], spare_here=True)
    assert len(values) == 30
    assert list(values.values()).count("a") == 3
    assert list(values.values()).count("b") == 27
    assert [text for kind, text in log if kind == "note"] == [
        "a is lost: the connection broke; its work goes to the other places"
    ]
    assert sum(kind == "finished" for kind, _ in log) == 30


def test_a_failure_that_a_place_reports_is_tried_here_though_this_machine_is_spared() -> None:
    tried: list[str] = []

    def at(_: Values, place: Place) -> str:
        tried.append(place.name)
        raise Doubted("the guest panicked")

    a = There("a")
    nodes = [Node("x", "run", lambda _: HERE, elsewhere=at), node("y"), node("z", needs=("x",))]
    values, log = run(nodes, [a], spare_here=True)
    assert values == {"x": HERE, "y": "a", "z": "a"}, "the place goes on to be used"
    assert tried == ["a"]
    assert ("note", "x failed on a (the guest panicked): tried here before that is believed") in log


def test_a_node_of_one_place_goes_there_alone_and_does_its_own_work_where_that_is_lost() -> None:
    a, b = There("a", lives=2), There("b")
    nodes = [replace(node(str(i)), only="a") for i in range(4)]
    values, _ = run(nodes, [a, b], spare_here=True)
    assert list(values.values()) == ["a", "a", HERE, HERE]
    assert b.done == []


def test_when_all_places_are_lost_this_machine_goes_on_though_it_was_to_be_spared() -> None:
    values, log = run([node(str(i)) for i in range(5)], [There("a", lives=1)], spare_here=True)
    assert sorted(values.values()) == ["a", HERE, HERE, HERE, HERE]
    assert ("note", "a is lost: the connection broke; its work goes to this machine") in log


def test_a_failure_of_a_place_that_is_there_ends_the_run() -> None:
    def at(_: Values, place: Place) -> str:
        raise InfrastructureError("no space there")

    with pytest.raises(InfrastructureError, match="no space there"):
        run([Node("x", "run", lambda _: HERE, elsewhere=at)], [There("a")], spare_here=True)


def test_the_replicates_of_one_guest_go_where_it_was_booted() -> None:
    a, b = There("a"), There("b")
    nodes = [node(f"boot {s}", "boot", affinity=f"boot {s}") for s in range(6)]
    nodes += [node(f"run {s} {i}", affinity=f"boot {s}", needs=(f"boot {s}",)) for s in range(6) for i in range(10)]
    values, _ = run(nodes, [a, b], spare_here=True)
    moved = sum(values[f"run {s} {i}"] != values[f"boot {s}"] for s in range(6) for i in range(10))
    assert moved <= 10  # only at the end, when one place has nothing left of its own


def test_ready_gives_own_then_new_then_others_work_and_priority_comes_first() -> None:
    ready = Ready()
    for position, (affinity, priority) in enumerate([("mine", 4), ("theirs", 4), ("", 4), ("theirs", 3)]):
        ready.push(
            (("run", True, frozenset()), affinity + str(priority)), (priority, position, f"{affinity}{priority}")
        )
    ready.claim("mine4", "a")
    ready.claim("theirs4", "b")
    ready.claim("theirs3", "b")
    order = [ready.pop("a", lambda _: True) for _ in range(5)]
    assert order == ["theirs3", "mine4", "4", "theirs4", None]


def test_ready_forgets_a_lost_place() -> None:
    ready = Ready()
    ready.push((("run", True, frozenset()), "x"), (4, 0, "x"))
    ready.push((("run", True, frozenset()), "y"), (4, 1, "y"))
    ready.claim("x", "b")
    assert ready.pop("a", lambda _: True) == "y"
    ready.push((("run", True, frozenset()), "y"), (4, 1, "y"))
    ready.forget("b")
    assert ready.pop("a", lambda _: True) == "x"


def test_a_place_that_joins_in_the_middle_gets_work() -> None:
    first, second = There("first"), There("second")
    waiting: list[There] = []

    def newcomers() -> Sequence[Place]:
        found = [waiting.pop()] if waiting else []
        return cast("Sequence[Place]", found)

    def at(_: Values, place: Place) -> str:
        there = cast("There", place)
        if there is first and len(first.done) == 5:
            waiting.append(second)
        return there.take("x")

    nodes = [Node(str(i), "run", lambda _: HERE, elsewhere=at) for i in range(40)]
    with Slots(1) as pool:
        engine = Engine(pool, Watcher(), cast("Sequence[Place]", [first]), newcomers=newcomers, spare_here=True)
        values = engine.run(nodes)
    assert set(values.values()) == {"first", "second"}


def test_a_place_that_was_lost_and_comes_back_by_its_name_gets_work_again() -> None:
    old, new = There("a", slots=2, lives=0), There("a")
    came = [new]
    lost = threading.Event()

    def newcomers() -> Sequence[Place]:
        return cast("Sequence[Place]", [came.pop()] if lost.is_set() and came else [])

    class Saw(Watcher):
        def note(self, text: str) -> None:
            super().note(text)
            lost.set()

    with Slots(1) as pool:
        engine = Engine(pool, Saw(), cast("Sequence[Place]", [old]), newcomers=newcomers, spare_here=True)
        nodes = [node(str(i)) for i in range(30)]
        values = engine.run(nodes)
    assert list(values.values()).count("a") == len(new.done) > 0
    assert new.most == 1, "what the old one held is not counted against the new one"


def test_a_stage_with_which_three_places_were_lost_is_done_here() -> None:
    places = [There(name, lives=0) for name in "abcd"]
    values, log = run([node("poison")], places, spare_here=True)
    assert values == {"poison": HERE}
    assert sum(kind == "note" for kind, _ in log) == 3


def at_home(name: str, *homes: str) -> Node:
    return replace(node(name, "build"), homes=lambda: homes)


BUILDER = frozenset({"build"})


def test_builds_are_spread_before_a_place_takes_a_second_one() -> None:
    a, b = There("a", 4, BUILDER), There("b", 4, BUILDER)
    values, log = run([node(name, "build") for name in ("one", "two")], [a, b], spare_here=True)
    assert values == {"one": "a", "two": "b"}
    assert [text for kind, text in log if kind == "note"] == ["one is built on a", "two is built on b"]
    values, _ = run([node(name, "build") for name in ("one", "two")], [There("a", 4, BUILDER)], slots=2)
    assert values == {"one": "a", "two": HERE}


def test_a_build_goes_where_its_objects_are() -> None:
    a, b = There("a", 4, BUILDER), There("b", 4, BUILDER)
    nodes = [at_home("p", "b"), at_home("q", HERE), at_home("r", "b", "away"), at_home("s", "a", HERE)]
    values, _ = run(nodes, [a, b])
    assert (values["p"], values["q"], values["r"]) == ("b", HERE, "b")
    assert values["s"] in ("a", HERE)


def test_objects_of_a_machine_that_is_spared_and_of_a_place_that_does_not_build_do_not_count() -> None:
    a, b = There("a", 1, BUILDER), There("b")
    values, _ = run([at_home("p", HERE), at_home("q", "b")], [a, b], spare_here=True)
    assert values == {"p": "a", "q": "a"}


def test_where_the_objects_are_is_asked_when_the_baseline_is_built() -> None:
    a, b = There("a", 2, BUILDER), There("b", 2, BUILDER)
    places = [a, b]
    homes = lambda: [one.name for one in places if "base" in one.done]  # noqa: E731
    nodes = [node("base", "build"), *(replace(at_home(n), homes=homes, needs=("base",)) for n in "pqrs")]
    values, _ = run(nodes, places)
    assert set(values.values()) == {"a"}


def test_what_waits_for_a_place_that_is_lost_is_free_again() -> None:
    a, b = There("a", 1, BUILDER, lives=1), There("b", 1, BUILDER)
    values, _ = run([at_home(n, "a") for n in "pqrs"], [a, b], spare_here=True)
    assert sorted(values.values()) == ["a", "b", "b", "b"]


def test_ready_takes_out_what_waits_for_a_place_and_takes_it_again() -> None:
    ready = Ready()
    for position, only in enumerate(("", "a", "ab", "b")):
        ready.push((("build", True, frozenset(only)), ""), (1, position, only))
    assert ready.release("a") == ["a", "ab"]
    assert not ready.waits_for("a")
    assert ready.waits_for("b")
    ready.push((("build", True, frozenset("b")), ""), (1, 1, "a"))
    assert [ready.pop("b", lambda _: True) for _ in range(4)] == ["", "a", "b", None]
    assert not ready.waits_for("b")
