# SPDX-License-Identifier: GPL-2.0-or-later
"""Device trees: QEMU's own, with the clusters and capacities of the machine file put in.

QEMU fills in memory, command line and initramfs itself when it boots with the result, and draws rng-seed and kaslr-seed
anew from -seed at each reset: one tree serves every boot seed.
"""

from __future__ import annotations

from pathlib import Path

import fdt

from kpatch_ci.debian.toolroot import ToolRoot
from kpatch_ci.guest.cpufreq import dmips_mhz
from kpatch_ci.guest.qemu import topology_args
from kpatch_ci.model.arch import ARCHES
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.model.machine import Machine
from kpatch_ci.process import run

ARCH_WITH_DTB = frozenset({"arm64"})
DUMP_TIMEOUT = 60.0
_WORK = "/kpci/dtb"


def dump_dtb(tools: ToolRoot, machine: Machine, work: Path) -> bytes:
    """The device tree that QEMU makes for this machine, as it is. Raises InfrastructureError."""
    qemu = ARCHES[machine.arch].qemu
    argv = [qemu, *topology_args(machine, extra=f",dumpdtb={_WORK}/dump.dtb"), "-nodefaults", "-display", "none"]
    done = run(tools.argv([*argv, "-seed", "1"], write_mounts=[(work, _WORK)]), timeout=DUMP_TIMEOUT)
    dump = work / "dump.dtb"
    if not done.ok or not dump.exists():
        raise InfrastructureError(f"no device tree for machine {machine.name}: {done.explain()}", log=done.output)
    return dump.read_bytes()


def edit_dtb(dump: bytes, machine: Machine) -> bytes:
    """QEMU's tree with /cpus/cpu-map and the capacities of ``machine``. The same bytes for the same input.

    Raises InfrastructureError when the tree has not the CPUs that the machine has.
    """
    tree = fdt.parse_dtb(dump)
    cpus = tree.get_node("/cpus")
    nodes = {node.get_property("reg")[-1]: node for node in cpus.nodes if node.name.startswith("cpu@")}
    # On QEMU's virt machine the affinity in reg is 16 CPUs a cluster of the GIC: 0-15, then 0x100-0x10f.
    ordered = [nodes[reg] for reg in sorted(nodes)]
    if len(ordered) != machine.cpus:
        raise InfrastructureError(f"QEMU's device tree has {len(ordered)} CPUs, {machine.name} has {machine.cpus}")
    phandles = _phandles(tree, ordered)
    if cpus.exist_subnode("cpu-map"):
        cpus.remove_subnode("cpu-map")
    cpu_map = fdt.Node("cpu-map")
    for number, cluster in enumerate(machine.clusters):
        capacity = dmips_mhz(machine, cluster)
        group = fdt.Node(f"cluster{number}")
        for position, cpu in enumerate(cluster.cpus):
            core = fdt.Node(f"core{position}")
            core.append(fdt.PropWords("cpu", phandles[cpu]))
            group.append(core)
            if capacity is not None:
                ordered[cpu].set_property("capacity-dmips-mhz", capacity)
        cpu_map.append(group)
    cpus.append(cpu_map)
    return bytes(tree.to_dtb(version=17, last_comp_version=16, boot_cpuid_phys=tree.header.boot_cpuid_phys))


def _phandles(tree: fdt.FDT, nodes: list[fdt.Node]) -> list[int]:
    """The CPU nodes' phandles, given to those that have none: above all that are taken."""
    taken = [item.value for item in tree.search("phandle", itype=fdt.ItemType.PROP_WORDS)]
    following = max(taken, default=0) + 1
    handles = []
    for node in nodes:
        if not node.exist_property("phandle"):
            node.set_property("phandle", following)
            following += 1
        handles.append(int(node.get_property("phandle").value))
    return handles


def machine_dtb(tools: ToolRoot, machine: Machine, work: Path) -> bytes | None:
    """The device tree to boot ``machine`` with; None where the architecture has none. Raises InfrastructureError."""
    if machine.arch not in ARCH_WITH_DTB:
        return None
    return edit_dtb(dump_dtb(tools, machine, work), machine)
