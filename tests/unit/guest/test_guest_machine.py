# SPDX-License-Identifier: GPL-2.0-or-later
"""Machine files: the project's own load, and every mistake is named with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpatch_ci.guest.cpulist import format_cpus, parse_cpus
from kpatch_ci.guest.machine import load_machine, machine_files
from kpatch_ci.model.errors import UserError
from kpatch_ci.model.machine import Accel, Cluster, TcgThreads

QEMU = Path(__file__).parents[3] / "qemu"

GOOD = """\
name: small
description: for tests
arch: arm64
qemu_machine: virt,gic-version=3
cpu: cortex-a57
memory_mib: 256
clusters:
  - name: little
    cpus: 0-1
    capacity: 400
  - name: big
    cpus: [2]
    capacity: 1024
icount_shift: 0
"""


def written(folder: Path, text: str, name: str = "small") -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(text)
    return path


def test_the_projects_machines_are_listed_by_name() -> None:
    assert machine_files(QEMU) == [
        "arm64-6+2",
        "arm64-6+2-fixed",
        "arm64-6+2-switchcost",
        "x86_64-8",
        "x86_64-8-percpu-dvfs",
        "x86_64-8-switchcost",
    ]


def test_arm64_has_six_little_and_two_big_cpus() -> None:
    machine = load_machine(QEMU / "arm64-6+2.yaml")
    assert machine.cpus == 8
    assert machine.clusters == (
        Cluster("little", (0, 1, 2, 3, 4, 5), 446, (500000, 800000, 1100000, 1400000, 1800000)),
        Cluster("big", (6, 7), 1024, (700000, 1100000, 1500000, 1900000, 2400000)),
    )
    assert (machine.policies, machine.transition_latency_us, machine.capacity_slows) == ("shared", 10, False)


def test_the_project_boots_in_virtual_time_unless_told_otherwise() -> None:
    for name in machine_files(QEMU):
        assert load_machine(QEMU / f"{name}.yaml").accel is Accel.DETERMINISTIC
    machine = load_machine(QEMU / "x86_64-8.yaml", Accel.KVM)
    assert (machine.accel, machine.real_time) == (Accel.KVM, True)


def test_what_only_virtual_time_needs_is_left_out_of_real_time() -> None:
    virtual = load_machine(QEMU / "x86_64-8.yaml")
    assert virtual.cpu == "qemu64,-arat,-rdrand,-rdseed"
    assert virtual.kernel_args == ("noapictimer", "tsc=reliable", "cpu_init_udelay=0", "no_timer_check")
    for accel in (Accel.TCG, Accel.KVM):
        real = load_machine(QEMU / "x86_64-8.yaml", accel)
        assert real.cpu == "qemu64,-rdrand,-rdseed"
        assert real.kernel_args == ("tsc=reliable", "cpu_init_udelay=0", "no_timer_check")
        assert real.properties == {}


ONLY = """\
accel: kvm
kernel_args: [quiet]
properties: {a.b: "1", c.d: "2"}
only:
  kvm: {cpu: host, kernel_args: [x=1], properties: {a.b: "3"}}
  tcg: {kernel_args: [y=2]}
"""


def test_a_file_says_what_holds_with_one_accelerator_only(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD + ONLY)
    kvm, tcg = load_machine(path), load_machine(path, Accel.TCG)
    assert (kvm.accel, kvm.cpu, kvm.kernel_args) == (Accel.KVM, "host", ("x=1", "quiet"))
    assert kvm.properties == {"a.b": "3", "c.d": "2"}
    assert (tcg.accel, tcg.cpu, tcg.kernel_args) == (Accel.TCG, "cortex-a57", ("y=2", "quiet"))
    assert tcg.properties == {"a.b": "1", "c.d": "2"}


def test_tcg_has_one_thread_unless_the_file_says_otherwise(tmp_path: Path) -> None:
    assert load_machine(written(tmp_path, GOOD + ONLY), Accel.TCG).tcg_threads is TcgThreads.SINGLE
    many = ONLY.replace("kernel_args: [y=2]", "threads: multi")
    assert load_machine(written(tmp_path, GOOD + many), Accel.TCG).tcg_threads is TcgThreads.MULTI
    with pytest.raises(UserError, match=r"small\.yaml:20: .*threads.*'single' or 'multi'"):
        load_machine(written(tmp_path, GOOD + many.replace("multi", "eight")))
    with pytest.raises(UserError, match="threads"):
        load_machine(written(tmp_path, GOOD + ONLY.replace("cpu: host", "threads: multi")))


def test_x86_64_never_has_a_thread_for_each_cpu() -> None:
    """QEMU patches code under the feet of a CPU that is executing it: docs/accelerators.md."""
    for path in QEMU.glob("x86_64*.yaml"):
        assert load_machine(path, Accel.TCG).tcg_threads is TcgThreads.SINGLE
    assert load_machine(QEMU / "arm64-6+2-fixed.yaml", Accel.TCG).tcg_threads is TcgThreads.MULTI
    assert load_machine(QEMU / "arm64-6+2-fixed.yaml").tcg_threads is TcgThreads.SINGLE, "elsewhere it says nothing"


def test_an_unknown_accelerator_is_named_with_the_choices(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"small\.yaml:15: .*accel.*'deterministic', 'tcg' or 'kvm'"):
        load_machine(written(tmp_path, GOOD + "accel: xen\n"))
    with pytest.raises(UserError, match=r"small\.yaml:16: .*hvf"):
        load_machine(written(tmp_path, GOOD + "only:\n  hvf: {cpu: host}\n"))


def test_emulated_frequencies_want_virtual_time(tmp_path: Path) -> None:
    scaled = GOOD.replace("    capacity: 400", "    capacity: 400\n    frequencies: [500000, 800000]")
    scaled = scaled.replace("    capacity: 1024", "    capacity: 1024\n    frequencies: [500000, 800000]")
    with pytest.raises(UserError, match=r"small\.yaml:17: small has frequencies, and accel is kvm"):
        load_machine(written(tmp_path, scaled + "accel: kvm\n"))


def test_x86_64_has_eight_equal_cpus_and_no_host_randomness() -> None:
    machine = load_machine(QEMU / "x86_64-8.yaml")
    assert machine.clusters == (Cluster("package", tuple(range(8))),)
    assert "-rdrand" in machine.cpu
    assert "-rdseed" in machine.cpu
    assert machine.properties == {"hpet.msi": "on", "hpet.timers": "10"}


def test_x86_64_with_frequencies_has_a_constant_tsc() -> None:
    machine = load_machine(QEMU / "x86_64-8-percpu-dvfs.yaml")
    assert machine.policies == "per-cpu"
    assert machine.clusters[0].frequencies == (800000, 1600000, 2400000, 3200000)
    assert "vendor=GenuineIntel,family=6" in machine.cpu
    plain = load_machine(QEMU / "x86_64-8.yaml")
    assert (machine.kernel_args, machine.properties) == (plain.kernel_args, plain.properties)


def test_cpus_are_a_list_or_text(tmp_path: Path) -> None:
    machine = load_machine(written(tmp_path, GOOD))
    assert [c.cpus for c in machine.clusters] == [(0, 1), (2,)]


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("cpus: 0-1", "cpus: 0-2", 12, "CPU 2 is in 'little' already"),
        ("cpus: [2]", "cpus: [3]", 7, "CPU 2 is in no cluster"),
        ("cpus: 0-1", "cpus: 1-0", 9, "0,2-3"),
        ("cpus: 0-1", "cpus: []", 9, "cpus"),
        ("capacity: 1024", "capacity: 900", 10, "1024 somewhere"),
        ("capacity: 1024", "capacity: 2000", 13, "1024"),
        ("    capacity: 1024\n", "", 11, "'big' has no capacity"),
        ("icount_shift: 0", "icount_shift: 11", 14, "10"),
        ("arch: arm64", "arch: riscv", 3, "arm64, x86_64"),
        ("arch: arm64", "arch: x86_64", 10, "x86_64 has no CPU capacities"),
        ("memory_mib: 256", "memory_mib: '256'", 6, "memory_mib"),
        ("name: small", "name: large", 1, "small"),
        ("icount_shift: 0", "icount_shift: 0\nicount_shfit: 0", 15, "did you mean 'icount_shift'"),
        ("icount_shift: 0", "icount_shift: 0\nkernel_args: ['a b']", 15, "kernel_args"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, old: str, new: str, line: int, words: str) -> None:
    assert old in GOOD
    with pytest.raises(UserError) as caught:
        load_machine(written(tmp_path, GOOD.replace(old, new, 1)))
    assert f"small.yaml:{line}: " in str(caught.value)
    assert words in str(caught.value)


SCALING = GOOD.replace("400\n", "400\n    frequencies: [500000, 1000000]\n").replace(
    "1024\n", "1024\n    frequencies: [2000000]\npolicies: per-cpu\n"
)


def test_frequencies_and_policies_are_read(tmp_path: Path) -> None:
    machine = load_machine(written(tmp_path, SCALING))
    assert [c.frequencies for c in machine.clusters] == [(500000, 1000000), (2000000,)]
    assert machine.policies == "per-cpu"
    assert machine.scales_frequency
    assert not load_machine(written(tmp_path, GOOD)).scales_frequency


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("[500000, 1000000]", "[1000000, 500000]", 11, "frequencies rise"),
        ("[500000, 1000000]", "[500000, 500000]", 11, "frequencies rise"),
        ("[500000, 1000000]", "[500000, 1000001]", 11, "whole number of MHz"),
        ("[500000, 1000000]", "[]", 11, "frequencies"),
        ("    frequencies: [2000000]\n", "", 12, "cluster 'big' has no frequencies, 'little' has"),
        ("per-cpu", "per-cluster", 16, "'shared' or 'per-cpu'"),
        ("per-cpu", "shared\ntransition_latency_us: 0", 17, "transition_latency_us"),
    ],
)
def test_a_mistake_in_frequencies_is_named(tmp_path: Path, old: str, new: str, line: int, words: str) -> None:
    assert old in SCALING
    with pytest.raises(UserError) as caught:
        load_machine(written(tmp_path, SCALING.replace(old, new, 1)))
    assert f"small.yaml:{line}: " in str(caught.value)
    assert words in str(caught.value)


@pytest.mark.parametrize("key", ["policies: shared", "transition_latency_us: 10", "capacity_slows: false"])
def test_what_needs_frequencies_is_refused_without(tmp_path: Path, key: str) -> None:
    with pytest.raises(UserError, match="without frequencies"):
        load_machine(written(tmp_path, f"{GOOD}{key}\n"))


def test_all_mistakes_come_at_once(tmp_path: Path) -> None:
    text = GOOD.replace("cpus: [2]", "cpus: [1, 3]").replace("1024", "1000")
    with pytest.raises(UserError) as caught:
        load_machine(written(tmp_path, text))
    assert len(str(caught.value).splitlines()) == 3


def test_cpu_lists_are_written_as_the_kernel_writes_them() -> None:
    assert format_cpus((3, 0, 2, 6, 7)) == "0,2-3,6-7"
    assert parse_cpus("0,2-3,6-7") == (0, 2, 3, 6, 7)
