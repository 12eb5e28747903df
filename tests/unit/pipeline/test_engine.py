# SPDX-License-Identifier: GPL-2.0-or-later
"""The engine: order, slots, known values, errors."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from kpatch_ci import process
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.pipeline.engine import Engine, Node
from kpatch_ci.pipeline.slots import Slots


class Watcher:
    def __init__(self) -> None:
        self.log: list[tuple[str, str]] = []

    def planned(self, nodes: Sequence[Node]) -> None:
        self.log.append(("planned", str(len(nodes))))

    def started(self, node: Node) -> None:
        self.log.append(("started", node.name))

    def finished(self, node: Node, value: Any, seconds: float, known: bool) -> None:
        self.log.append(("known" if known else "finished", node.name))

    def tick(self) -> None:
        pass

    def note(self, text: str) -> None:
        self.log.append(("note", text))


@pytest.fixture(autouse=True)
def forget_that_we_stopped() -> Iterator[None]:
    yield
    process._stopping.clear()


def run(nodes: Sequence[Node], slots: int = 2) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    watcher = Watcher()
    with Slots(slots) as pool:
        return Engine(pool, watcher).run(nodes), watcher.log


def test_a_node_sees_the_values_of_what_it_needs_and_nothing_else() -> None:
    values, _ = run(
        [
            Node("c", "k", lambda v: sorted(v.items()), needs=("a", "b")),
            Node("a", "k", lambda _: 1),
            Node("b", "k", lambda _: 2),
            Node("d", "k", dict),
        ]
    )
    assert values == {"a": 1, "b": 2, "c": [("a", 1), ("b", 2)], "d": {}}


def test_no_more_nodes_work_at_once_than_there_are_slots() -> None:
    at_work, most, lock = 0, 0, threading.Lock()

    def work(_: Any) -> None:
        nonlocal at_work, most
        with lock:
            at_work += 1
            most = max(most, at_work)
        time.sleep(0.02)
        with lock:
            at_work -= 1

    run([Node(str(i), "k", work) for i in range(8)], slots=2)
    assert most == 2


def test_among_ready_nodes_the_lowest_priority_number_goes_first() -> None:
    _, log = run([Node(n, "k", lambda _: None, priority=p) for n, p in (("x", 3), ("y", 1), ("z", 2))], slots=1)
    assert [name for what, name in log if what == "started"] == ["y", "z", "x"]


def test_a_known_value_costs_neither_slot_nor_start() -> None:
    values, log = run(
        [
            Node("a", "k", lambda _: pytest.fail("ran"), lookup=lambda _: "kept"),
            Node("b", "k", lambda v: v["a"], needs=("a",)),
        ]
    )
    assert values["b"] == "kept"
    assert ("known", "a") in log
    assert ("started", "a") not in log


def test_a_second_call_knows_what_the_first_one_gave_and_does_not_ask_for_it_again() -> None:
    watcher = Watcher()
    with Slots(2) as pool:
        engine = Engine(pool, watcher)
        engine.run([Node("a", "k", lambda _: 1), Node("nothing", "k", lambda _: None)])
        values = engine.run([Node("b", "k", lambda v: (v["a"], v["nothing"]), needs=("a", "nothing"))])
    assert values == {"a": 1, "nothing": None, "b": (1, None)}
    assert [name for what, name in watcher.log if what == "started"] == ["a", "nothing", "b"]
    assert [count for what, count in watcher.log if what == "planned"] == ["2", "1"]


def test_a_lookup_that_finds_nothing_lets_the_node_run() -> None:
    values, _ = run([Node("a", "k", lambda _: "made", lookup=lambda _: None)])
    assert values == {"a": "made"}


def test_what_a_node_raises_ends_the_run() -> None:
    def fail(_: Any) -> None:
        raise InfrastructureError("no space left")

    after: list[str] = []
    with pytest.raises(InfrastructureError, match="no space left"):
        run([Node("a", "k", fail), Node("b", "k", lambda _: after.append("ran"), needs=("a",))])
    assert after == []


def test_nodes_without_a_slot_run_while_all_slots_are_taken() -> None:
    freed = threading.Event()
    values, _ = run(
        [
            Node("slow", "k", lambda _: freed.wait(5)),
            Node("light", "k", lambda _: freed.set(), slot=False, priority=-1),
        ],
        slots=1,
    )
    assert values["slow"] is True


def test_what_waits_for_a_slot_is_looked_up_once() -> None:
    looked: list[str] = []

    def node(name: str) -> Node:
        return Node(name, "k", lambda _: time.sleep(0.05), lookup=lambda _: looked.append(name))

    run([node(str(n)) for n in range(6)], slots=1)
    assert sorted(looked) == [str(n) for n in range(6)]


def lane(name: str, work: Any, on: str = "board", **more: Any) -> Node:
    return Node(name, "boot", work, slot=False, lane=on, **more)


def test_a_lane_does_one_stage_at_a_time_beside_others_and_takes_no_slot() -> None:
    """Two boards are at work at once, with the one slot of this machine taken; on each it is one stage after the other."""
    at_work: list[str] = []
    most: list[int] = []
    both, done = threading.Barrier(2), threading.Event()

    def work(board: str) -> Any:
        def on_it(_: Any) -> None:
            at_work.append(board)
            most.append(at_work.count(board))
            both.wait(5)
            at_work.remove(board)

        return on_it

    def last(_: Any) -> None:
        done.set()

    boots = [lane(f"{board}{n}", work(board), on=board) for n in range(3) for board in ("a", "b")]
    end = lane("end", last, on="a", needs=tuple(node.name for node in boots))
    values, _ = run([Node("build", "build", lambda _: done.wait(10), priority=-1), *boots, end], slots=1)
    assert values["build"] is True
    assert set(most) == {1}


def test_what_waits_for_a_slot_does_not_keep_a_board_waiting() -> None:
    """Builds come first, and there is no slot for all of them: what needs none goes on."""
    freed = threading.Event()
    builds = [Node(f"build {n}", "build", lambda _: freed.wait(5)) for n in range(3)]
    values, _ = run([*builds, lane("boot", lambda _: freed.set(), priority=1)], slots=1)
    assert [values[node.name] for node in builds] == [True] * 3


def test_what_is_known_by_the_time_that_a_lane_is_free_is_not_done() -> None:
    """A kernel that was seen to boot on a board is not booted there again for other seeds."""
    made: list[str] = []

    def boot(_: Any) -> str:
        made.append("booted")
        return "booted"

    nodes = [lane(str(n), boot, lookup=lambda _: "known" if made else None) for n in range(4)]
    values, _ = run(nodes)
    assert sorted(values.values()) == ["booted", "known", "known", "known"]


def test_a_lane_whose_stage_raises_ends_the_run() -> None:
    def fail(_: Any) -> None:
        raise InfrastructureError("board lab: gone")

    with pytest.raises(InfrastructureError, match="board lab"):
        run([lane("a", fail), lane("b", lambda _: None)])
