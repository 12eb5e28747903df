# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests: boot once per arm and boot seed, keep the snapshot, resume it for each replicate. In real time: boot each afresh."""

from __future__ import annotations

import shlex
import threading
from dataclasses import dataclass, replace
from pathlib import Path

from kpatch_ci.debian.toolroot import ToolRoot
from kpatch_ci.guest import bootrecord, qemu, secondlook, snapshot
from kpatch_ci.guest.booted import BAD_CLOCK, failed, keep_console, read, readiness, results
from kpatch_ci.guest.events import find_event
from kpatch_ci.guest.files import GuestFiles, guest_modules, machine_slice, make_files
from kpatch_ci.guest.image import GuestImage
from kpatch_ci.guest.runner import QEMU_LOG, Ended, Runner, devices
from kpatch_ci.guest.tsc import told_its_rate
from kpatch_ci.model.boot import BootResult, Lost
from kpatch_ci.model.build import BuildResult
from kpatch_ci.model.digest import digest
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.model.machine import Machine
from kpatch_ci.model.status import Status
from kpatch_ci.process import tail
from kpatch_ci.store.artifacts import ArtifactStore

STAGE_VERSION = 3
CLOCK_TRIES = 3


@dataclass(frozen=True, slots=True)
class RawRun:
    """One replicate, unparsed.

    ``text`` is what came over the result channel after the resume, one JSON object a line. Passed: it ends with an "end"
    event of status ok. Failed: any other end, a crash, a timeout, silence. Error: QEMU itself was ended.
    """

    status: Status
    text: str
    seconds: float
    """Wall time on the host."""
    reason: str = ""
    log_tail: str = ""
    console: Path | None = None
    """The console's copy in the logs, unless passed."""
    said: str = ""
    """What the console said since the resume."""
    first: Lost | None = None
    """Of the guest before this one, where that was lost and the replicate begun anew."""


class Guests:
    """Guests below one cache directory with one tool root. Safe for concurrent threads. Times are wall seconds."""

    def __init__(
        self,
        cache: Path,
        store: ArtifactStore,
        tools: ToolRoot,
        *,
        boot_timeout: float,
        replicate_timeout: float,
        silence_timeout: float,
    ) -> None:
        self.store, self.tools = store, tools
        self.boot_timeout, self.replicate_timeout = boot_timeout, replicate_timeout
        self._runner = Runner(tools, cache / "work", silence_timeout)
        self._verified: set[str] = set()
        self._lock = threading.Lock()

    def boot_key(self, build: BuildResult, image: GuestImage, machine: Machine, boot_seed: int) -> str:
        """Digest of everything that a snapshot is a function of."""
        modules = [[m.name, m.parameters, m.digest] for m in guest_modules(build, machine)]
        has_dtb = machine.arch == "arm64"
        argv = [_boot_argv(machine, boot_seed, dtb=has_dtb)]
        if not machine.real_time:
            argv.append(qemu.resume_argv(machine, boot_seed, dtb=has_dtb))
        emulator = [self.tools.fingerprint, image.preload_digest, argv]
        inputs = [build.image_digest, modules, image.digest, machine_slice(machine), emulator, boot_seed]
        return digest([snapshot.KIND, STAGE_VERSION, *inputs])

    def replicate_key(self, boot: BootResult, job: str) -> str:
        """Digest of everything that a replicate's text is a function of.

        What the boot said over both channels, time stamps included, is in it: were a boot of one seed ever to stop at
        another instant, its replicates would not be mixed with those of the first.
        """
        return digest(["replicate", STAGE_VERSION, boot.key, boot.said_digest, job])

    def find_boot(self, build: BuildResult, image: GuestImage, machine: Machine, boot_seed: int) -> BootResult | None:
        """The boot, when it was made before, here or elsewhere: never in real time. Does not hash the snapshot: its first use does."""
        here = self._kept(build, image, machine, boot_seed)
        if here or machine.real_time:
            return here
        return bootrecord.find(self.store, self.boot_key(build, image, machine, boot_seed), build.arm)

    def _kept(self, build: BuildResult, image: GuestImage, machine: Machine, boot_seed: int) -> BootResult | None:
        """The boot whose snapshot is here."""
        if machine.real_time:
            return None
        key = self.boot_key(build, image, machine, boot_seed)
        artifact = snapshot.find(self.store, key)
        return snapshot.boot_result(artifact, build.arm, cached=True) if artifact else None

    def remember(self, boot: BootResult, machine: Machine) -> BootResult:
        """Keep what is known of a boot that another machine made, so that it need not be made again to look its replicates up."""
        if boot.snapshot or boot.status is not Status.PASSED or machine.real_time:
            return boot
        return bootrecord.keep(self.store, boot)

    def boot(self, build: BuildResult, image: GuestImage, machine: Machine, boot_seed: int, logs: Path) -> BootResult:
        """Boot, check and save a guest, or reuse one. A kernel that does not boot is a result.

        In real time nothing is saved or reused: the guest has nothing to do, and ends. Its console goes to ``logs``.
        Raises InfrastructureError where this machine fails.
        """
        found = self._kept(build, image, machine, boot_seed)
        if found:
            return found
        machine = told_its_rate(machine)
        key = self.boot_key(build, image, machine, boot_seed)
        files = self._files(build, image, machine)
        attempt = BootResult(
            status=Status.FAILED,
            arm=build.arm,
            arch=machine.arch,
            machine=machine.name,
            boot_seed=boot_seed,
            key=key,
            seconds=0.0,
            cached=False,
            qemu_argv=tuple(_boot_argv(machine, boot_seed, dtb=files.dtb is not None)),
            reproduce=self._reproduce(files, machine, boot_seed),
        )
        log = logs / f"boot-{machine.arch}-{build.arm}-{boot_seed}.console.log"
        with self._runner.work("boot-") as work:
            if machine.real_time:
                ended = self._fresh(files, build, machine, boot_seed, work, job="", log=log)
            else:
                ready = readiness(work, machine, build)
                ended = self._runner.boot(files, machine, boot_seed, work, timeout=self.boot_timeout, ready=ready)
            facts = find_event(results(work), "facts") or {}
            attempt = replace(attempt, seconds=round(ended.seconds, 2), facts=facts, first=ended.first)
            if ended.lost:
                return failed(attempt, ended.lost, build, machine, work=work, log=log)
            if machine.real_time:
                return _unsaved(attempt, _raw_run(work, ended, log), work=work, log=log)
            artifact = snapshot.keep(self.store, attempt, work)
        with self._lock:
            self._verified.add(key)
        return snapshot.boot_result(artifact, build.arm, cached=False)

    def replicate(
        self,
        boot: BootResult,
        build: BuildResult,
        image: GuestImage,
        machine: Machine,
        job: str,
        *,
        logs: Path,
        name: str,
    ) -> RawRun:
        """Resume a boot's snapshot with a job. How the guest ended is a result; ``name`` is its log's.

        In real time the guest is booted, and checked, anew. A snapshot that was damaged since is booted again.
        Raises InfrastructureError where this machine fails.
        """
        if machine.real_time:
            machine = told_its_rate(machine)
            files = self._files(build, image, machine)
            with self._runner.work("run-") as work:
                log = logs / f"{name}.console.log"
                ended = self._fresh(files, build, machine, boot.boot_seed, work, job=job, log=log)
                return replace(_raw_run(work, ended, log), said=read(work / qemu.CONSOLE_FILE), first=ended.first)
        saved = self._snapshot(boot, build, image, machine, logs)
        if saved is None:
            return RawRun(Status.ERROR, "", 0.0, "the snapshot was damaged, and the guest did not boot again")
        files = self._files(build, image, machine)
        with self._runner.work("run-") as work:
            ended = self._runner.resume(files, machine, boot.boot_seed, saved, work, job=job, timeout=self._limit(job))
            raw = _raw_run(work, ended, logs / f"{name}.console.log")
            return replace(raw, said=read(work / qemu.CONSOLE_FILE))

    def boot_plain(
        self, build: BuildResult, image: GuestImage, machine: Machine, boot_seed: int, *, job: str = "shell\n"
    ) -> int:
        """Boot with the console on the terminal, for people: not deterministic. Returns QEMU's exit status."""
        files, machine = self._files(build, image, machine), told_its_rate(machine)
        with self._runner.work("plain-") as work:
            return self._runner.plain(files, machine, boot_seed, work, job=job)

    def _limit(self, job: str) -> float:
        """Wall seconds that a job may take: ``replicate_timeout`` for each command that it measures."""
        return self.replicate_timeout * max(1, measured(job))

    def _fresh(
        self,
        files: GuestFiles,
        build: BuildResult,
        machine: Machine,
        boot_seed: int,
        work: Path,
        *,
        job: str,
        log: Path,
    ) -> Ended:
        """Boot and do the job; where the emulator may have lost the guest, once more (secondlook). ``log``: its console's copy.

        Raises InfrastructureError.
        """
        ended = self._believed(files, build, machine, boot_seed, work, job=job)
        first = secondlook.lost(machine, ended, work)
        if first is None:
            return ended
        secondlook.keep_first(work, log)
        return replace(self._believed(files, build, machine, boot_seed, work, job=job), first=first)

    def _believed(
        self, files: GuestFiles, build: BuildResult, machine: Machine, boot_seed: int, work: Path, *, job: str
    ) -> Ended:
        """Boot until its clock can be believed. Raises InfrastructureError where it never can, or QEMU does not run."""
        limits = {"boot_timeout": self.boot_timeout, "timeout": self._limit(job)}
        ready = readiness(work, machine, build)
        for _ in range(CLOCK_TRIES):
            for name in (qemu.CONSOLE_FILE, qemu.RESULT_FILE):
                (work / name).unlink(missing_ok=True)
            ended = self._runner.fresh(files, machine, boot_seed, work, job=job, ready=ready, **limits)
            if ended.lost != BAD_CLOCK:
                return ended
        what = f"{machine.name}: {BAD_CLOCK}, in {CLOCK_TRIES} boots"
        raise InfrastructureError(what, hint="measure in real time when this host has less to do")

    def _files(self, build: BuildResult, image: GuestImage, machine: Machine) -> GuestFiles:
        return make_files(build, image, machine, self.store, self.tools)

    def _snapshot(
        self, boot: BootResult, build: BuildResult, image: GuestImage, machine: Machine, logs: Path
    ) -> Path | None:
        """The snapshot, hashed once in this object's life, and booted again when it is damaged or gone."""
        with self._lock:
            known = boot.key in self._verified
            artifact = snapshot.find(self.store, boot.key, verify=not known)
            self._verified.add(boot.key)
        if artifact:
            again = snapshot.boot_result(artifact, build.arm, cached=True)
        else:
            again = self.boot(build, image, machine, boot.boot_seed, logs)
        if again.snapshot and again.said_digest != boot.said_digest:
            raise InfrastructureError(
                f"{machine.name} under boot seed {boot.boot_seed} did not boot as it did before: its replicates would not be alike",
                hint="`kpatch-ci verify-determinism` says what differs",
            )
        return again.snapshot

    def _reproduce(self, files: GuestFiles, machine: Machine, boot_seed: int) -> str:
        """A command that boots the same kernel and image by hand, its console on the terminal, but not the seed's length of initramfs."""
        argv = qemu.plain_argv(machine, boot_seed, dtb=files.dtb is not None)
        mounts = [*files.mounts(), (files.job, f"{qemu.WORK}/{qemu.JOB_FILE}")]
        return shlex.join(self.tools.argv(argv, mounts=mounts, devices=devices(machine)))


def measured(job: str) -> int:
    """How many commands of a job are measured: each has ``replicate_timeout`` for itself."""
    return sum(line.startswith("run\t") for line in job.splitlines())


def _boot_argv(machine: Machine, boot_seed: int, *, dtb: bool) -> list[str]:
    argv = qemu.fresh_argv if machine.real_time else qemu.boot_argv
    return argv(machine, boot_seed, dtb=dtb, qmp_fd=3)


def _unsaved(attempt: BootResult, run: RawRun, *, work: Path, log: Path) -> BootResult:
    """A boot in real time, whose guest went on to its end: the reason where it did not end well."""
    console = keep_console(work / qemu.CONSOLE_FILE, log)
    if run.status is Status.PASSED:
        return replace(attempt, status=Status.PASSED, console=console)
    reason = secondlook.twice(run.reason, attempt.first)
    return replace(attempt, status=run.status, console=console, reason=reason, log_tail=run.log_tail)


def _raw_run(work: Path, ended: Ended, log: Path) -> RawRun:
    text = results(work)
    end = find_event(text, "end")
    seconds = round(ended.seconds, 3)
    console = work / qemu.CONSOLE_FILE
    if ended.lost is None and end and end.get("status") == "ok":
        return RawRun(Status.PASSED, text, seconds)
    if ended.lost is None and ended.code:
        reason = f"QEMU ended with exit status {ended.code}"
        return RawRun(Status.ERROR, text, seconds, reason, tail(work / QEMU_LOG), keep_console(console, log))
    reason = ended.lost or (str(end.get("reason")) if end else "the guest ended without a word")
    return RawRun(Status.FAILED, text, seconds, reason, tail(console), keep_console(console, log))
