# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest that is lost in real time under TCG is booted once more: the emulator's fault must not pass for the patch's, nor hide it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpatch_ci.model.status import Status
from tests.fakes.qemu import CRASH
from tests.unit.guest.test_guest_fresh import KVM, MULTI, PANIC, TCG, measure
from tests.unit.guest.test_guest_guests import MACHINE, Bench, events, make_bench

SILENT = "the guest said nothing for 8 s (console and result channel)"
"""Long enough for the second one to start on a busy host: it must not fall silent too."""


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return make_bench(tmp_path)


@pytest.mark.parametrize("machine", [TCG, MULTI])
def test_a_replicate_that_crashed_is_begun_anew_and_says_so(bench: Bench, machine) -> None:  # type: ignore[no-untyped-def]
    run = measure(bench, bench.boot(machine=machine), machine=machine, fresh="once-panic")
    assert (run.status, run.reason) == (Status.PASSED, "")
    assert run.first is not None
    assert run.first.reason == PANIC
    assert run.first.log_tail.endswith(CRASH.strip())
    assert [e["event"] for e in events(run)] == ["facts", "ready", "job", "output", "run", "counters", "end"]
    kept = bench.folder / "logs/dd-1.first.console.log"
    assert CRASH in kept.read_text()
    assert CRASH not in run.said
    assert bench.left() == []


def test_one_that_crashes_again_failed(bench: Bench) -> None:
    run = measure(bench, bench.boot(machine=TCG), fresh="panic")
    assert (run.status, run.reason) == (Status.FAILED, PANIC)
    assert run.first is not None
    assert run.first.reason == PANIC
    logs = {path.name for path in (bench.folder / "logs").iterdir()}
    assert {"dd-1.console.log", "dd-1.first.console.log"} <= logs


@pytest.mark.parametrize(
    ("scenario", "reason"), [("killed", "QEMU ended with exit status -9"), ("mute", "the guest ended without a word")]
)
def test_a_guest_that_vanishes_is_lost_too(bench: Bench, scenario: str, reason: str) -> None:
    run = measure(bench, bench.boot(machine=TCG), fresh=f"once-{scenario}")
    assert run.status is Status.PASSED
    assert run.first is not None
    assert run.first.reason == reason


def test_a_boot_that_fell_silent_is_booted_again(bench: Bench) -> None:
    boot = bench.boot(machine=TCG, silence=8.0, fresh="once-boot-hang")
    assert (boot.status, boot.reason) == (Status.PASSED, "")
    assert boot.first is not None
    assert boot.first.reason == SILENT


def test_a_boot_that_crashes_twice_failed_and_tells_both(bench: Bench) -> None:
    boot = bench.boot(machine=TCG, fresh="boot-panic")
    assert boot.status is Status.FAILED
    assert boot.reason == f"{PANIC}; booted again after the first guest was lost: {PANIC}"


def test_a_guest_that_tells_its_own_end_or_is_another_is_not_lost(bench: Bench) -> None:
    boot = bench.boot(machine=TCG)
    assert boot.first is None
    for scenario in ("well", "failed", "boot-other", "agent"):
        assert measure(bench, boot, fresh=scenario).first is None
    assert not list((bench.folder / "logs").glob("*.first.*"))


@pytest.mark.parametrize("machine", [KVM, MACHINE])
def test_no_other_accelerator_gets_a_second_look(bench: Bench, machine) -> None:  # type: ignore[no-untyped-def]
    boot = bench.boot(machine=machine)
    run = measure(bench, boot, machine=machine, fresh="once-panic", resume="panic")
    assert (run.status, run.reason, run.first) == (Status.FAILED, PANIC, None)
