# SPDX-License-Identifier: GPL-2.0-or-later
"""The cost of a context switch: from the machine file to the module, and back through the guest's facts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kpatch_ci.guest.files import loaded, machine_slice
from kpatch_ci.guest.machine import load_machine
from kpatch_ci.guest.switchcost import switch_cost_differences
from kpatch_ci.kernel.external import read_external
from kpatch_ci.model.errors import UserError

ROOT = Path(__file__).parents[3]
PLAIN = load_machine(ROOT / "qemu/x86_64-8.yaml")
COSTLY = load_machine(ROOT / "qemu/x86_64-8-switchcost.yaml")
TOLD = {"cost_ns": 2000, "event_ns": 127, "interrupt_ns": 304, "loop_ps": 1000}


def test_nothing_is_added_unless_a_machine_file_asks_for_it() -> None:
    default = [p for p in (ROOT / "qemu").glob("*.yaml") if load_machine(p).context_switch_cost_ns is not None]
    assert sorted(p.stem for p in default) == ["arm64-6+2-switchcost", "x86_64-8-switchcost"]
    assert PLAIN.modules == ()
    assert list(loaded(PLAIN)) == ["null_blk.ko"]
    assert "context_switch_cost_ns" not in machine_slice(PLAIN)


@pytest.mark.parametrize(("name", "without"), [("arm64-6+2", "arm64-6+2-fixed"), ("x86_64-8", "x86_64-8")])
def test_the_machines_with_a_cost_differ_from_those_without_in_nothing_else(name: str, without: str) -> None:
    costly, plain = load_machine(ROOT / f"qemu/{name}-switchcost.yaml"), load_machine(ROOT / f"qemu/{without}.yaml")
    same = replace(costly, name=plain.name, description=plain.description, context_switch_cost_ns=None)
    assert same == plain
    assert costly.context_switch_cost_ns == 2000


def test_the_module_is_built_and_told_the_cost() -> None:
    assert COSTLY.modules == ("switchcost",)
    assert [name for name, _ in read_external(ROOT / "qemu/switchcost").files] == ["Kbuild", "kpci_switchcost.c"]
    assert loaded(COSTLY)["kpci_switchcost.ko"] == "cost_ns=2000"


def test_a_machine_may_have_frequencies_and_a_cost() -> None:
    both = replace(load_machine(ROOT / "qemu/arm64-6+2.yaml"), context_switch_cost_ns=1500)
    assert both.modules == ("switchcost", "cpufreq")
    assert sorted(loaded(both)) == ["kpci_cpufreq.ko", "kpci_switchcost.ko", "null_blk.ko"]


def test_a_guest_is_a_function_of_the_cost() -> None:
    slices = [machine_slice(replace(COSTLY, name="m", context_switch_cost_ns=ns)) for ns in (None, 2000, 2001)]
    assert slices[0] != slices[1] != slices[2]


@pytest.mark.parametrize("value", ["0", "-5", "1000001", "1.5", "'2000'"])
def test_a_cost_that_is_no_time_is_named_with_its_line(tmp_path: Path, value: str) -> None:
    text = (ROOT / "qemu/x86_64-8-switchcost.yaml").read_text().replace("cost_ns: 2000", f"cost_ns: {value}")
    path = tmp_path / "x86_64-8-switchcost.yaml"
    path.write_text(text)
    line = text[: text.index("\ncontext_switch_cost_ns")].count("\n") + 2
    with pytest.raises(UserError) as caught:
        load_machine(path)
    assert f".yaml:{line}: " in str(caught.value)
    assert "context_switch_cost_ns" in str(caught.value)


def test_a_guest_that_was_told_what_the_machine_file_says_is_right() -> None:
    assert switch_cost_differences({"switch_cost": TOLD}, COSTLY) == []
    assert switch_cost_differences({}, PLAIN) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cost_ns": 1999}, "1999 ns, the machine file says 2000"),
        ({"cost_ns": None}, "None ns, the machine file says 2000"),
        ({"interrupt_ns": 2500}, "its mechanism takes 2627 ns"),
        ({"event_ns": 0, "interrupt_ns": 0}, "its mechanism takes 0 ns"),
    ],
)
def test_a_guest_that_was_told_something_else_is_refused(change: dict[str, int], words: str) -> None:
    (found,) = switch_cost_differences({"switch_cost": {**TOLD, **change}}, COSTLY)
    assert words in found


def test_a_missing_and_a_surplus_module_are_named() -> None:
    assert switch_cost_differences({}, COSTLY) == ["cost of a context switch: none, the machine file says 2000 ns"]
    assert switch_cost_differences({"switch_cost": TOLD}, PLAIN) == [
        "cost of a context switch: 2000 ns, the machine file has none"
    ]
