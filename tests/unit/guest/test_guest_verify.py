# SPDX-License-Identifier: GPL-2.0-or-later
"""What the guest says, held against the machine file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kpatch_ci.guest.machine import load_machine
from kpatch_ci.guest.verify import differences

QEMU = Path(__file__).parents[3] / "qemu"
ARM = load_machine(QEMU / "arm64-6+2.yaml")
X86 = load_machine(QEMU / "x86_64-8.yaml")


def domain(policy: int, cpus: str, frequencies: str) -> dict[str, Any]:
    return {
        "policy": policy,
        "related_cpus": cpus,
        "frequencies": frequencies.split(),
        "driver": "kpci_cpufreq",
        "governor": "schedutil",
    }


def arm_facts() -> dict[str, Any]:
    return {
        "release": "6.1.140",
        "cpus": 8,
        "cpu": [
            {"cpu": n, "capacity": 446 if n < 6 else 1024, "cluster_cpus": "0-5" if n < 6 else "6-7"} for n in range(8)
        ],
        "clocksource": "arch_sys_counter",
        "timer_resolution_ns": 1,
        "mem_kb": 507300,
        "modules": ["null_blk"],
        "cpufreq": [
            domain(0, "0 1 2 3 4 5", "500000 800000 1100000 1400000 1800000"),
            domain(6, "6 7", "700000 1100000 1500000 1900000 2400000"),
        ],
    }


def x86_facts() -> dict[str, Any]:
    cpu = [{"cpu": n, "capacity": None, "cluster_cpus": None} for n in range(8)]
    return {**arm_facts(), "cpu": cpu, "clocksource": "tsc", "cpufreq": []}


def test_a_guest_as_asked_for_has_no_differences() -> None:
    assert differences(arm_facts(), ARM, "6.1.140", ["null_blk"]) == ()
    assert differences(x86_facts(), X86, "6.1.140", []) == ()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"release": "6.1.0"}, "kernel release: 6.1.0, the build is 6.1.140"),
        ({"cpus": 4}, "CPUs: 4, the machine file says 8"),
        ({"clocksource": "jiffies"}, "clock source: jiffies, it should be arch_sys_counter"),
        ({"timer_resolution_ns": 4000000}, "timer resolution: 4000000 ns, high-resolution timers have 1"),
        ({"modules": []}, "module null_blk: not loaded"),
        ({"mem_kb": 100_000}, "memory: 97 MiB, the machine file says 512"),
    ],
)
def test_each_difference_names_both_sides(change: dict[str, Any], words: str) -> None:
    assert differences({**arm_facts(), **change}, ARM, "6.1.140", ["null_blk"]) == (words,)


def test_a_wrong_cluster_is_named_for_each_cpu() -> None:
    facts = arm_facts()
    facts["cpu"][3]["cluster_cpus"] = "0-7"
    facts["cpu"][6]["capacity"] = 1000
    assert differences(facts, ARM, "6.1.140", []) == (
        "cluster of CPU 3: 0-7, the machine file says 0-5",
        "capacity of CPU 6: 1000, the machine file says 1024",
    )


def test_kernels_before_5_16_say_nothing_of_clusters_and_are_held_to_the_rest() -> None:
    facts = {**arm_facts(), "release": "5.10.262"}
    facts["cpu"] = [{"cpu": n, "capacity": 446 if n < 6 else 1000} for n in range(8)]
    found = differences(facts, ARM, "5.10.262", [])
    assert found == tuple(f"capacity of CPU {n}: 1000, the machine file says 1024" for n in (6, 7))
    assert "cluster of CPU 0: None" in differences({**facts, "release": "5.16.1"}, ARM, "5.16.1", [])[0]


def test_a_cpu_that_is_not_there_is_named() -> None:
    facts = arm_facts()
    del facts["cpu"][7]
    assert differences(facts, ARM, "6.1.140", []) == ("CPU 7: not there",)


def test_no_facts_differ_in_everything() -> None:
    assert len(differences({}, X86, "6.1.140", ["null_blk"])) == 6


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"related_cpus": "0 1 2 3 4 5 6 7"}, "frequency domain of CPU 0-5: CPUs 0-7, should be 0-5"),
        ({"frequencies": ["500000"]}, "kHz 500000, should be 500000 800000 1100000 1400000 1800000"),
        ({"governor": "performance"}, "governor performance, should be schedutil"),
        ({"driver": "acpi-cpufreq"}, "driver acpi-cpufreq, should be kpci_cpufreq"),
    ],
)
def test_a_frequency_domain_that_differs_is_named(change: dict[str, Any], words: str) -> None:
    facts = arm_facts()
    facts["cpufreq"][0].update(change)
    (found,) = differences(facts, ARM, "6.1.140", [])
    assert words in found


def test_the_cost_of_a_context_switch_is_among_what_is_checked() -> None:
    surplus = {**x86_facts(), "switch_cost": {"cost_ns": 2000, "event_ns": 127, "interrupt_ns": 304}}
    assert differences(surplus, X86, "6.1.140", []) == ("cost of a context switch: 2000 ns, the machine file has none",)


def test_a_missing_and_a_surplus_frequency_domain_are_named() -> None:
    assert differences({**arm_facts(), "cpufreq": []}, ARM, "6.1.140", []) == (
        "frequency domain of CPU 0-5: not there",
        "frequency domain of CPU 6-7: not there",
    )
    surplus = {**x86_facts(), "cpufreq": [domain(3, "3", "1000000")]}
    assert differences(surplus, X86, "6.1.140", []) == ("frequency domain 3: the machine file has none such",)
