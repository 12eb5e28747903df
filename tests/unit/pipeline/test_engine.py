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
