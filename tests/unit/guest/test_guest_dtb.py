# SPDX-License-Identifier: GPL-2.0-or-later
"""Device trees: a dump of QEMU's virt machine with eight CPUs, edited."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import fdt
import pytest

from kpatch_ci.guest.dtb import edit_dtb
from kpatch_ci.guest.machine import load_machine
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.model.machine import Cluster

ROOT = Path(__file__).parents[3]
DUMP = gzip.decompress((ROOT / "tests/data/dtb/virt-8.dtb.gz").read_bytes())
MACHINE = load_machine(ROOT / "qemu/arm64-6+2.yaml")


def cluster_of_each_cpu(tree: fdt.FDT) -> dict[int, str]:
    by_phandle = {
        node.get_property("phandle").value: node.get_property("reg").value
        for node in tree.get_node("/cpus").nodes
        if node.name.startswith("cpu@")
    }
    return {
        by_phandle[core.get_property("cpu").value]: cluster.name
        for cluster in tree.get_node("/cpus/cpu-map").nodes
        for core in cluster.nodes
    }


def test_the_cpu_map_has_the_machines_clusters() -> None:
    tree = fdt.parse_dtb(edit_dtb(DUMP, MACHINE))
    assert cluster_of_each_cpu(tree) == {**dict.fromkeys(range(6), "cluster0"), 6: "cluster1", 7: "cluster1"}
    assert [n.name for n in tree.get_node("/cpus/cpu-map/cluster1").nodes] == ["core0", "core1"]


def test_qemus_own_sockets_are_gone() -> None:
    assert fdt.parse_dtb(DUMP).exist_node("/cpus/cpu-map/socket0")
    assert not fdt.parse_dtb(edit_dtb(DUMP, MACHINE)).exist_node("/cpus/cpu-map/socket0")


def test_each_cpu_has_its_clusters_capacity() -> None:
    tree = fdt.parse_dtb(edit_dtb(DUMP, MACHINE))
    capacities = [tree.get_property("capacity-dmips-mhz", f"/cpus/cpu@{n}").value for n in range(8)]
    # Times the highest frequencies (1800 and 2400 MHz), as Linux does with a frequency driver: 446 to 1024.
    assert capacities == [446 * 4] * 6 + [1024 * 3] * 2


def test_without_frequencies_capacities_are_written_as_they_are() -> None:
    machine = replace(MACHINE, clusters=tuple(replace(c, frequencies=()) for c in MACHINE.clusters))
    tree = fdt.parse_dtb(edit_dtb(DUMP, machine))
    capacities = [tree.get_property("capacity-dmips-mhz", f"/cpus/cpu@{n}").value for n in range(8)]
    assert capacities == [446] * 6 + [1024] * 2


def test_without_capacities_none_are_written() -> None:
    machine = replace(MACHINE, clusters=(Cluster("all", tuple(range(8))),))
    tree = fdt.parse_dtb(edit_dtb(DUMP, machine))
    assert not tree.exist_property("capacity-dmips-mhz", "/cpus/cpu@0")


def test_cpus_without_phandles_get_unused_ones() -> None:
    tree = fdt.parse_dtb(DUMP)
    tree.remove_node("cpu-map", "/cpus")
    for number in range(8):
        tree.remove_property("phandle", f"/cpus/cpu@{number}")
    tree = fdt.parse_dtb(edit_dtb(tree.to_dtb(version=17), MACHINE))
    assert len(cluster_of_each_cpu(tree)) == 8
    handles = [item.value for item in tree.search("phandle", itype=fdt.ItemType.PROP_WORDS)]
    assert len(handles) == len(set(handles))


def test_the_rest_of_the_tree_stays() -> None:
    before, after = fdt.parse_dtb(DUMP), fdt.parse_dtb(edit_dtb(DUMP, MACHINE))
    for tree in (before, after):
        tree.remove_node("cpus")
    assert before.to_dts() == after.to_dts()


def test_the_same_input_gives_the_same_bytes() -> None:
    assert edit_dtb(DUMP, MACHINE) == edit_dtb(DUMP, MACHINE)


def test_another_number_of_cpus_is_refused() -> None:
    with pytest.raises(InfrastructureError, match="8 CPUs, arm64-6\\+2 has 6"):
        edit_dtb(DUMP, replace(MACHINE, clusters=MACHINE.clusters[:1]))
