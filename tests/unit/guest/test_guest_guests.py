# SPDX-License-Identifier: GPL-2.0-or-later
"""Booting, saving and resuming, with a QEMU that runs no guest."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from kpatch_ci.guest.guests import Guests, RawRun
from kpatch_ci.guest.image import GuestImage
from kpatch_ci.model.boot import BootResult
from kpatch_ci.model.build import BuildResult
from kpatch_ci.model.errors import InfrastructureError, UserError
from kpatch_ci.model.machine import Cluster, Machine
from kpatch_ci.model.status import Status
from kpatch_ci.store.artifacts import ArtifactStore
from tests.fakes.qemu import CRASH, FakeToolRoot

MACHINE = Machine(
    name="two",
    description="d",
    arch="x86_64",
    qemu_machine="q35",
    cpu="qemu64",
    memory_mib=256,
    clusters=(Cluster("p", (0, 1)),),
    icount_shift=0,
)


@dataclass
class Bench:
    """A cache with a build and an image in it."""

    folder: Path
    build: BuildResult
    image: GuestImage

    def guests(self, *, silence: float = 20.0, limit: float = 20.0, **scenario: str) -> Guests:
        tools = FakeToolRoot(self.folder, "trixie", "tools-1", {}, scenario)
        store = ArtifactStore(self.folder / "artifacts")
        return Guests(self.folder, store, tools, boot_timeout=20, replicate_timeout=limit, silence_timeout=silence)

    def boot(self, *, silence: float = 20.0, seed: int = 1, machine: Machine = MACHINE, **scenario: str) -> BootResult:
        guests = self.guests(silence=silence, limit=20.0, **scenario)
        return guests.boot(self.build, self.image, machine, seed, self.folder / "logs")

    def replicate(self, job: str = "seed\t1\n", *, limit: float = 20.0, **scenario: str) -> RawRun:
        boot = self.boot()
        guests = self.guests(silence=0.1 if limit < 20 else 20.0, limit=limit, **scenario)
        return guests.replicate(
            boot, self.build, self.image, MACHINE, job, logs=self.folder / "logs", name="hackbench-1"
        )

    def left(self) -> list[Path]:
        return list((self.folder / "work").iterdir())


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return make_bench(tmp_path)


def make_bench(tmp_path: Path) -> Bench:
    """A build and an image below ``tmp_path``."""
    artifact = tmp_path / "build"
    (artifact / "modules").mkdir(parents=True)
    (artifact / "image").write_bytes(b"kernel")
    (artifact / "modules/null_blk.ko").write_bytes(b"module")
    (artifact / "modules/unused.ko").write_bytes(b"module")
    (artifact / "manifest.json").write_text(json.dumps({"meta": {"modules": ["unused.ko", "null_blk.ko"]}}))
    build = BuildResult(
        status=Status.PASSED,
        arm="baseline",
        arch="x86_64",
        tree_id="t",
        key="k",
        seconds=1,
        objects=1,
        cached=False,
        release="6.1.140",
        image_digest="i",
        artifact=artifact,
    )
    image = tmp_path / "image.cpio"
    image.write_bytes(b"root" * 200)
    return Bench(tmp_path, build, GuestImage("x86_64", image, "image-1", {}, "key", image, "preload-1"))


def events(run: RawRun) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run.text.splitlines()]


def test_a_boot_is_saved_with_its_facts_and_console(bench: Bench) -> None:
    boot = bench.boot()
    assert boot.status is Status.PASSED
    assert boot.facts["cpus"] == 2
    assert boot.snapshot is not None
    assert boot.snapshot.read_bytes().startswith(b"state")
    assert boot.console is not None
    assert "Linux version" in boot.console.read_text()
    assert bench.left() == []


def test_a_second_boot_is_reused(bench: Bench) -> None:
    first = bench.boot()
    second = bench.boot(boot="broken")
    assert (first.cached, second.cached) == (False, True)
    assert replace(second, cached=False) == first


def test_each_seed_is_a_boot_of_its_own(bench: Bench) -> None:
    assert bench.boot(seed=1).key != bench.boot(seed=2).key


def test_the_key_follows_what_a_guest_is_a_function_of(bench: Bench) -> None:
    guests = bench.guests()

    def key(build: BuildResult = bench.build, image: GuestImage = bench.image, machine: Machine = MACHINE) -> str:
        return guests.boot_key(build, image, machine, 1)

    keys = {
        key(),
        key(build=replace(bench.build, image_digest="j")),
        key(image=replace(bench.image, digest="image-2")),
        key(image=replace(bench.image, preload_digest="preload-2")),
        key(machine=replace(MACHINE, memory_mib=512)),
    }
    assert len(keys) == 5
    assert key(machine=replace(MACHINE, description="other words")) == key()
    assert key(build=replace(bench.build, arm="patched", seconds=9)) == key()
    before = key()
    (Path(str(bench.build.artifact)) / "modules/null_blk.ko").write_bytes(b"another")
    assert key() != before


def test_a_panic_fails_the_boot_with_its_console(bench: Bench) -> None:
    boot = bench.boot(boot="panic")
    assert boot.status is Status.FAILED
    assert boot.reason == f"the guest crashed: {CRASH.strip()}"
    assert CRASH.strip() in boot.log_tail
    assert boot.console == bench.folder / "logs/boot-x86_64-baseline-1.console.log"
    assert CRASH in boot.console.read_text()
    assert "-kernel" in boot.reproduce
    assert bench.left() == []


@pytest.mark.parametrize("scenario", ["hang", "deaf"])
def test_a_silent_boot_fails(bench: Bench, scenario: str) -> None:
    boot = bench.boot(boot=scenario, silence=0.3)
    assert boot.status is Status.FAILED
    assert "said nothing for 0.3 s" in boot.reason


def test_what_the_agent_complains_of_is_the_reason(bench: Bench) -> None:
    assert bench.boot(boot="agent").reason == "the guest's agent failed: boot seed: No such device"


def test_a_guest_that_is_not_as_asked_for_fails_the_boot(bench: Bench) -> None:
    boot = bench.boot(boot="other")
    assert boot.status is Status.FAILED
    assert boot.differences == ("CPUs: 1, the machine file says 2",)
    assert boot.reason == "the guest is not what was asked for: CPUs: 1, the machine file says 2"
    assert not list((bench.folder / "artifacts/snapshot").rglob("snapshot"))


def test_a_qemu_that_does_not_run_is_this_machines_fault(bench: Bench) -> None:
    with pytest.raises(InfrastructureError, match="unsupported machine type"):
        bench.boot(boot="broken")
    with pytest.raises(InfrastructureError, match="unsupported machine type"):
        bench.replicate(resume="broken")
    assert bench.left() == []


def test_a_full_disk_is_named(bench: Bench) -> None:
    with pytest.raises(InfrastructureError, match="No space left on device"):
        bench.boot(boot="full")


def test_a_qemu_that_ends_while_it_saves_is_no_long_wait(bench: Bench) -> None:
    with pytest.raises(InfrastructureError, match="exit status 1"):
        bench.boot(boot="vanish")


def test_a_replicate_gets_its_job_and_the_snapshot(bench: Bench) -> None:
    run = bench.replicate("seed\t3\nrun\t/usr/bin/dd\n")
    assert run.status is Status.PASSED
    assert events(run)[0] == {
        "event": "job",
        "text": "seed\t3\nrun\t/usr/bin/dd\n",
        "bytes": 4096,
        "snapshot": "state",
    }
    assert run.console is None
    assert bench.left() == []


def test_a_job_that_failed_fails_the_replicate(bench: Bench) -> None:
    run = bench.replicate(resume="failed")
    assert (run.status, run.reason) == (Status.FAILED, "run /usr/bin/dd: exit status 1")


def test_a_replicate_that_crashes_hangs_or_is_mute_failed(bench: Bench) -> None:
    crashed = bench.replicate(resume="panic")
    assert crashed.status is Status.FAILED
    assert crashed.reason == f"the guest crashed: {CRASH.strip()}"
    assert crashed.console == bench.folder / "logs/hackbench-1.console.log"
    assert crashed.said == crashed.console.read_text()
    hung = bench.replicate(resume="hang", limit=1)
    # Not for its silence: a guest that measures says nothing.
    assert (hung.status, hung.reason) == (Status.FAILED, "the guest was not done after 1 s")
    several = bench.replicate("seed\t1\nrun\t/bin/a\nrun\t/bin/a\n", resume="hang", limit=0.5)
    assert several.reason == "the guest was not done after 1 s"
    mute = bench.replicate(resume="mute")
    assert (mute.status, mute.reason) == (Status.FAILED, "the guest ended without a word")


def test_a_qemu_that_was_killed_is_an_error_not_a_failure(bench: Bench) -> None:
    assert bench.replicate(resume="killed").status is Status.ERROR


def test_a_damaged_snapshot_is_booted_again(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    boot = bench.boot()
    assert boot.snapshot is not None
    with boot.snapshot.open("r+b") as stream:
        stream.write(b"STATE")
    run = bench.replicate()
    assert events(run)[0]["snapshot"] == "state"
    assert "its snapshot has another checksum" in caplog.text


def test_a_boot_that_was_made_elsewhere_is_made_again_and_must_say_the_same(bench: Bench) -> None:
    """Its snapshot is on another machine: this one boots the guest itself, and does not mix what did not run alike."""
    boot = bench.boot(seed=1)
    guests = bench.guests()
    guests.store.drop("snapshot", boot.key)
    logs = bench.folder / "logs"
    run = guests.replicate(boot, bench.build, bench.image, MACHINE, "seed\t1\n", logs=logs, name="r")
    assert run.status is Status.PASSED
    assert guests.find_boot(bench.build, bench.image, MACHINE, 1) is not None
    guests.store.drop("snapshot", boot.key)
    other = replace(boot, said_digest="0" * 64)
    with pytest.raises(InfrastructureError, match="two under boot seed 1 did not boot as it did before"):
        guests.replicate(other, bench.build, bench.image, MACHINE, "seed\t1\n", logs=logs, name="r")


def test_a_job_that_is_too_long_is_refused(bench: Bench) -> None:
    with pytest.raises(UserError, match="at most 4096"):
        bench.replicate("x" * 4097)
