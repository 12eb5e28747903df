# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests in real time: each is booted afresh, checked, goes straight on to its job, and nothing of it is kept."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from kpatch_ci.guest.files import machine_slice
from kpatch_ci.guest.guests import RawRun
from kpatch_ci.guest.qemu import accelerator, command_line, fresh_argv, plain_argv
from kpatch_ci.guest.runner import devices
from kpatch_ci.guest.tsc import host_tsc_khz, keeps_time, told_its_rate
from kpatch_ci.model.boot import BootResult
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.model.machine import Accel, Machine, TcgThreads
from kpatch_ci.model.status import Status
from tests.fakes.qemu import CRASH
from tests.unit.guest.test_guest_guests import MACHINE, Bench, events, make_bench

TCG = replace(MACHINE, accel=Accel.TCG)
KVM = replace(MACHINE, accel=Accel.KVM)
MULTI = replace(TCG, tcg_threads=TcgThreads.MULTI)
TCG_KINDS = [(TCG, "tcg,thread=single"), (MULTI, "tcg,thread=multi"), (KVM, "kvm")]
PANIC = f"the guest crashed: {CRASH.strip()}"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return make_bench(tmp_path)


def measure(
    bench: Bench,
    boot: BootResult,
    *,
    limit: float = 20.0,
    silence: float = 20.0,
    machine: Machine = TCG,
    **scenario: str,
) -> RawRun:
    guests = bench.guests(limit=limit, silence=silence, **scenario)
    logs = bench.folder / "logs"
    return guests.replicate(boot, bench.build, bench.image, machine, "seed\t3\n", logs=logs, name="dd-1")


@pytest.mark.parametrize(("machine", "words"), [(m, ["-accel", words]) for m, words in TCG_KINDS])
def test_one_accelerator_is_named_and_no_virtual_time(machine, words) -> None:  # type: ignore[no-untyped-def]
    argv = fresh_argv(machine, 1, dtb=False, qmp_fd=5)
    assert argv[argv.index("-accel") : argv.index("-accel") + 2] == words
    assert argv.count("-accel") == 1
    assert "-icount" not in argv
    assert "-incoming" not in argv
    joined = " ".join(argv)
    assert "-action panic=shutdown -action watchdog=none -chardev socket,id=qmp,fd=5" in joined
    assert "-icount" not in plain_argv(machine, 1, dtb=False, real_time=True)


def test_a_busy_hosts_stalls_are_not_the_kernels() -> None:
    assert command_line(TCG, 1).endswith("panic=-1 rcupdate.rcu_cpu_stall_suppress=1 kpci.boot_seed=1")
    assert "stall" not in command_line(MACHINE, 1)


def test_only_kvm_needs_a_device_of_the_host() -> None:
    assert [devices(m) for m in (MACHINE, TCG, KVM)] == [[], [], [Path("/dev/kvm")]]


def test_the_accelerator_in_words() -> None:
    told = [accelerator(m) for m in (MACHINE, TCG, MULTI, KVM)]
    assert told == [
        "tcg, icount shift=0, sleep=off",
        "tcg, all CPUs in one thread in turns, real time",
        "tcg, a thread for each CPU, real time",
        "kvm, real time",
    ]


@pytest.mark.parametrize("machine", [TCG, KVM])
def test_a_boot_is_checked_and_not_kept(bench: Bench, machine) -> None:  # type: ignore[no-untyped-def]
    boot = bench.boot(machine=machine)
    assert boot.status is Status.PASSED
    assert boot.facts["cpus"] == 2
    assert (boot.snapshot, boot.cached) == (None, False)
    assert boot.console == bench.folder / "logs/boot-x86_64-baseline-1.console.log"
    assert "Linux version" in boot.console.read_text()
    assert bench.guests().find_boot(bench.build, bench.image, machine, 1) is None
    assert not (bench.folder / "artifacts/snapshot").exists()
    assert bench.left() == []


def test_accelerators_do_not_share_a_key(bench: Bench) -> None:
    guests = bench.guests()
    assert len({guests.boot_key(bench.build, bench.image, m, 1) for m in (MACHINE, TCG, MULTI, KVM)}) == 4


def test_tcgs_threads_are_no_part_of_a_key_elsewhere(bench: Bench) -> None:
    guests = bench.guests()
    for machine in (MACHINE, KVM):
        other = replace(machine, tcg_threads=TcgThreads.MULTI)
        assert guests.boot_key(bench.build, bench.image, machine, 1) == guests.boot_key(
            bench.build, bench.image, other, 1
        )
        assert machine_slice(machine) == machine_slice(other)


def test_a_replicate_boots_anew_and_gets_its_job(bench: Bench) -> None:
    run = measure(bench, bench.boot(machine=TCG))
    assert run.status is Status.PASSED
    assert [e["event"] for e in events(run)] == ["facts", "ready", "job", "end"]
    assert events(run)[2]["text"] == "seed\t3\n"


def test_a_guest_on_another_accelerator_is_this_machines_fault(bench: Bench) -> None:
    with pytest.raises(InfrastructureError, match="runs two without KVM, it was told kvm"):
        bench.boot(machine=KVM, fresh="impostor")
    with pytest.raises(InfrastructureError, match="runs two on KVM, it was told tcg"):
        measure(bench, bench.boot(machine=TCG), fresh="impostor")


def test_a_qemu_that_does_not_start_is_this_machines_fault(bench: Bench) -> None:
    with pytest.raises(InfrastructureError, match="unsupported machine type"):
        bench.boot(machine=KVM, fresh="broken")
    assert bench.left() == []


@pytest.mark.parametrize("scenario", ["deaf", "boot-hang"])
def test_a_guest_that_hangs_in_its_boot_is_given_up(bench: Bench, scenario: str) -> None:
    boot = bench.boot(machine=KVM, fresh=scenario, silence=0.3)
    assert (boot.status, boot.reason) == (
        Status.FAILED,
        "the guest said nothing for 0.3 s (console and result channel)",
    )


def test_a_guest_that_hangs_in_its_job_is_given_up_only_by_the_jobs_limit(bench: Bench) -> None:
    boot, began = bench.boot(machine=KVM), time.monotonic()
    run = measure(bench, boot, machine=KVM, limit=7.0, silence=6.0, fresh="hang-job")
    assert (run.status, run.reason) == (Status.FAILED, "the guest was not done after 7 s")
    assert time.monotonic() - began >= 7


def test_each_guest_is_what_was_asked_for(bench: Bench) -> None:
    wrong = "the guest is not what was asked for: CPUs: 1, the machine file says 2"
    boot = bench.boot(machine=TCG, fresh="boot-other")
    assert (boot.status, boot.reason) == (Status.FAILED, wrong)
    assert boot.differences == ("CPUs: 1, the machine file says 2",)
    run = measure(bench, bench.boot(machine=TCG), fresh="boot-other")
    assert (run.status, run.reason) == (Status.FAILED, wrong)


def test_a_panic_and_an_agents_complaint_are_reasons(bench: Bench) -> None:
    panic = bench.boot(machine=KVM, fresh="boot-panic")
    assert (panic.status, panic.reason) == (Status.FAILED, PANIC)
    assert bench.boot(machine=TCG, fresh="agent").reason == "the guest's agent failed: boot seed: No such device"


def test_a_boot_whose_guest_does_not_end_well_failed(bench: Bench) -> None:
    boot = bench.boot(machine=KVM, fresh="mute")
    assert (boot.status, boot.reason) == (Status.FAILED, "the guest ended without a word")
    assert measure(bench, bench.boot(machine=TCG), fresh="killed").status is Status.ERROR


def test_a_guest_that_cannot_measure_its_clock_is_no_result_but_this_hosts_fault(bench: Bench) -> None:
    for machine in (TCG, KVM):
        with pytest.raises(InfrastructureError, match="two: the guest could not measure its clock's rate, in 3 boots"):
            bench.boot(machine=machine, fresh="boot-busy")
    with pytest.raises(InfrastructureError, match="has less to do"):
        measure(bench, bench.boot(machine=TCG), fresh="boot-busy")
    assert bench.left() == []


def test_the_guest_is_told_the_rate_of_the_hosts_counter(bench: Bench) -> None:
    argv = bench.boot(machine=TCG).qemu_argv
    assert f"tsc_early_khz={host_tsc_khz()}" in argv[argv.index("-append") + 1]
    assert told_its_rate(MACHINE) is MACHINE
    arm = replace(TCG, arch="arm64")
    assert told_its_rate(arm) is arm


def test_only_a_rate_that_linux_refined_is_believed() -> None:
    refined = "[    2.565027] tsc: Refined TSC clocksource calibration: 2596.121 MHz\n"
    assert keeps_time(TCG, refined)
    assert not keeps_time(TCG, "[    0.044000] tsc: Detected 181.279 MHz processor\n")
    assert keeps_time(MACHINE, "")
    assert keeps_time(replace(TCG, arch="arm64"), "")


def test_the_hosts_counter_is_measured_alike_each_time() -> None:
    rates = []
    for _ in range(2):
        host_tsc_khz.cache_clear()
        rates.append(host_tsc_khz())
    assert 100_000 < rates[0] < 20_000_000
    assert rates[1] == pytest.approx(rates[0], rel=1e-3)
