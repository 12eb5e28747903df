# SPDX-License-Identifier: GPL-2.0-or-later
"""Frequency domains of a machine, and the driver's parameters."""

from __future__ import annotations

from dataclasses import replace

from kpatch_ci.guest.cpufreq import dmips_mhz, domains, parameters
from kpatch_ci.guest.files import loaded, machine_slice
from kpatch_ci.model.machine import Cluster, Machine

LITTLE = Cluster("little", (0, 1, 2), 446, (500000, 1800000))
BIG = Cluster("big", (3,), 1024, (2400000,))
MACHINE = Machine("m", "d", "arm64", "virt", "cortex-a57", 256, (LITTLE, BIG), 0, transition_latency_us=50)
PLAIN = replace(MACHINE, clusters=tuple(replace(c, frequencies=()) for c in MACHINE.clusters))


def test_a_cluster_shares_its_frequency_unless_each_cpu_has_its_own() -> None:
    assert [d.cpus for d in domains(MACHINE)] == [(0, 1, 2), (3,)]
    assert [d.cpus for d in domains(replace(MACHINE, policies="per-cpu"))] == [(0,), (1,), (2,), (3,)]
    assert domains(PLAIN) == ()


def test_the_driver_is_told_masks_frequencies_and_latency() -> None:
    assert parameters(MACHINE) == "policy=7:500000/1800000,8:2400000 latency_us=50"


def test_the_driver_is_told_speeds_only_where_capacity_slows() -> None:
    assert "7:500000/1800000@446,8:2400000 " in parameters(replace(MACHINE, capacity_slows=True))


def test_capacities_come_out_exact_after_linux_has_multiplied_them_by_the_highest_frequency() -> None:
    raw = [(dmips_mhz(MACHINE, c) or 0) * (c.frequencies[-1] // 1000) for c in MACHINE.clusters]
    assert [(value << 10) // max(raw) for value in raw] == [446, 1024]
    assert dmips_mhz(PLAIN, PLAIN.clusters[0]) == 446


def test_off_means_off() -> None:
    assert list(loaded(PLAIN)) == ["null_blk.ko"]
    assert list(loaded(MACHINE)) == ["null_blk.ko", "kpci_cpufreq.ko"]
    assert machine_slice(PLAIN) == machine_slice(replace(PLAIN, policies="per-cpu", transition_latency_us=1))
    assert "frequencies" not in machine_slice(PLAIN)["clusters"][0]


def test_a_guest_is_a_function_of_its_frequencies() -> None:
    other = replace(MACHINE, transition_latency_us=51)
    assert machine_slice(MACHINE) != machine_slice(other)
    assert machine_slice(MACHINE) != machine_slice(PLAIN)
