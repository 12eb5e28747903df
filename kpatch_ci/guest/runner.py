# SPDX-License-Identifier: GPL-2.0-or-later
"""One QEMU at a time, in the sandbox, with a working directory of its own that is gone afterwards."""

from __future__ import annotations

import socket
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from kpatch_ci.debian.toolroot import ToolRoot
from kpatch_ci.guest import qemu
from kpatch_ci.guest.files import GuestFiles
from kpatch_ci.guest.kvm import DEVICE
from kpatch_ci.guest.qmp import save_when_paused, uses_kvm
from kpatch_ci.guest.stretch import stretched
from kpatch_ci.guest.terminal import restored_terminal
from kpatch_ci.guest.watch import CRASHED, Watch, attend, until_ready
from kpatch_ci.model.boot import Lost
from kpatch_ci.model.errors import InfrastructureError, UserError
from kpatch_ci.model.machine import Accel, Machine
from kpatch_ci.model.workload import JOB_BYTES
from kpatch_ci.process import Process, tail
from kpatch_ci.store.atomic import disk_errors

QEMU_LOG = "qemu.log"
QUIT_TIMEOUT = 30.0


@dataclass(frozen=True, slots=True)
class Ended:
    """How a guest ended. ``lost``: why it was given up; ``code``: QEMU's exit status; ``seconds``: wall time."""

    lost: str | None
    code: int | None
    seconds: float
    first: Lost | None = None
    """Of the guest before it, where that was lost and this one booted in its place."""


@dataclass(frozen=True, slots=True)
class Runner:
    """Starts guests in directories below ``place``; ``silence`` is how long a guest may say nothing."""

    tools: ToolRoot
    place: Path
    silence: float

    @contextmanager
    def work(self, prefix: str) -> Iterator[Path]:
        """A working directory that is removed at the end."""
        with disk_errors(self.place):
            self.place.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=prefix, dir=self.place, ignore_cleanup_errors=True) as name:
                yield Path(name)

    def sandboxed(
        self,
        argv: Sequence[str],
        mounts: Sequence[tuple[Path, str]],
        work: Path,
        *,
        exact: bool = True,
        devices: Sequence[Path] = (),
    ) -> list[str]:
        """QEMU's command line in the sandbox. ``exact``: nothing in the guest may depend on the host's timing."""
        env = {"LD_PRELOAD": qemu.PRELOAD} if exact else {}
        return self.tools.argv(argv, mounts=mounts, write_mounts=[(work, qemu.WORK)], env=env, devices=devices)

    def _watch(self, work: Path, timeout: float, *, quiet: bool = False) -> Watch:
        """``quiet``: the guest measures and says nothing meanwhile; only its time limit ends it then."""
        console, results = work / qemu.CONSOLE_FILE, work / qemu.RESULT_FILE
        return Watch(console, results, timeout=timeout, silence=timeout if quiet else self.silence)

    def boot(
        self,
        files: GuestFiles,
        machine: Machine,
        seed: int,
        work: Path,
        *,
        timeout: float,
        ready: Callable[[], str | None],
    ) -> Ended:
        """Boot until the guest pauses itself, and save it to the working directory.

        ``ready`` then says why it is not to be saved after all. Raises InfrastructureError where QEMU does not run.
        """
        write_job(work, "")
        ours, theirs = socket.socketpair()
        argv = qemu.boot_argv(machine, seed, dtb=files.dtb is not None, qmp_fd=theirs.fileno())
        command = self.sandboxed(argv, _mounts(files, seed, work), work)
        watch = self._watch(work, timeout)
        uri = f"file:{qemu.WORK}/{qemu.SNAPSHOT_FILE}"
        with (
            ours,
            theirs,
            (work / QEMU_LOG).open("wb") as log,
            Process(command, stdout=log, pass_fds=(theirs.fileno(),)) as process,
        ):
            theirs.close()  # so that our end sees QEMU's end

            def check() -> str | None:
                code = process.poll()
                return watch.check() if code is None else _gone(watch, code, work)

            lost = save_when_paused(ours, uri, check=check, ready=ready)
            if lost:
                process.kill(grace=0)
            elif process.wait(QUIT_TIMEOUT) is None:
                raise InfrastructureError("QEMU did not quit after it had saved the guest")
            return Ended(lost, process.poll(), process.seconds)

    def resume(
        self, files: GuestFiles, machine: Machine, seed: int, snapshot: Path, work: Path, *, job: str, timeout: float
    ) -> Ended:
        """Resume a snapshot with a job, and wait for its end. Raises InfrastructureError where QEMU does not run."""
        write_job(work, job)
        argv = qemu.resume_argv(machine, seed, dtb=files.dtb is not None)
        command = self.sandboxed(argv, [*_mounts(files, seed, work), (snapshot, qemu.SNAPSHOT)], work)
        with (work / QEMU_LOG).open("wb") as log, Process(command, stdout=log) as process:
            lost = attend(process, self._watch(work, timeout, quiet=True))
            ended = Ended(lost, process.poll(), process.seconds)
        if ended.code and not lost and not (work / qemu.CONSOLE_FILE).exists():
            raise InfrastructureError(f"QEMU did not start (exit status {ended.code})", log=tail(work / QEMU_LOG))
        return ended

    def fresh(
        self,
        files: GuestFiles,
        machine: Machine,
        seed: int,
        work: Path,
        *,
        job: str,
        boot_timeout: float,
        timeout: float,
        ready: Callable[[], str | None],
    ) -> Ended:
        """Boot in real time, go straight on to the job, and wait for its end: nothing is saved.

        ``boot_timeout`` counts until the agent is ready, ``timeout`` from then on. ``ready`` then says why the guest is to be
        ended. Raises InfrastructureError where QEMU does not run, or runs on another accelerator than the machine's.
        """
        write_job(work, job)
        ours, theirs = socket.socketpair()
        argv = qemu.fresh_argv(machine, seed, dtb=files.dtb is not None, qmp_fd=theirs.fileno())
        command = self.sandboxed(argv, _mounts(files, seed, work), work, exact=False, devices=devices(machine))
        watch = self._watch(work, boot_timeout)
        with (
            ours,
            theirs,
            (work / QEMU_LOG).open("wb") as log,
            Process(command, stdout=log, pass_fds=(theirs.fileno(),)) as process,
        ):
            theirs.close()

            def check() -> str | None:
                code = process.poll()
                return watch.check() if code is None else _gone(watch, code, work, real_time=True)

            lost = _wrong_accelerator(ours, machine, check) or until_ready(process, check, work / qemu.RESULT_FILE)
            lost = lost or ready() or attend(process, self._watch(work, timeout, quiet=True))
            if lost:
                process.kill(grace=0)
            return Ended(lost, process.poll(), process.seconds)

    def plain(self, files: GuestFiles, machine: Machine, seed: int, work: Path, *, job: str) -> int:
        """Boot with the console on the terminal. Returns QEMU's exit status."""
        write_job(work, job)
        argv = qemu.plain_argv(machine, seed, dtb=files.dtb is not None, real_time=True)
        command = self.sandboxed(argv, _mounts(files, seed, work), work, exact=False, devices=devices(machine))
        with restored_terminal(), Process(command, stdin=sys.stdin.buffer, stdout=sys.stdout.buffer) as process:
            code = process.wait()
        return 1 if code is None else code


def _mounts(files: GuestFiles, seed: int, work: Path) -> list[tuple[Path, str]]:
    """The guest's files, its initramfs as long as the boot seed has it."""
    return replace(files, initrd=stretched(files.initrd, seed, work)).mounts()


def devices(machine: Machine) -> list[Path]:
    """Devices of this host that QEMU needs for the machine."""
    return [DEVICE] if machine.accel is Accel.KVM else []


def _wrong_accelerator(channel: socket.socket, machine: Machine, check: Callable[[], str | None]) -> str | None:
    """Ask QEMU what it runs on: None when that is the machine's own accelerator, else why the guest is lost.

    Raises InfrastructureError where it is another one: its figures would go under a wrong name.
    """
    found = uses_kvm(channel, check=check)
    if isinstance(found, str):
        return found
    if found is not (machine.accel is Accel.KVM):
        raise InfrastructureError(
            f"QEMU runs {machine.name} {'on' if found else 'without'} KVM, it was told {machine.accel}"
        )
    return None


def _gone(watch: Watch, code: int, work: Path, *, real_time: bool = False) -> str:
    """Why QEMU has ended by itself. Raises InfrastructureError when it never started."""
    crash = watch.crash()
    if crash:
        return f"{CRASHED}{crash}"
    if code:
        console = work / qemu.CONSOLE_FILE
        # With KVM it may find out late that it cannot start: without a word of the guest, that is it.
        if not console.exists() or (real_time and not console.stat().st_size):
            raise InfrastructureError(f"QEMU did not start (exit status {code})", log=tail(work / QEMU_LOG))
        return f"QEMU ended with exit status {code}: {tail(work / QEMU_LOG, lines=3)}"  # a kernel can make it do so
    return "the guest ended before it was ready"


def write_job(work: Path, job: str) -> None:
    """Write a job as QEMU hands it on. Raises UserError when it is too long."""
    data = job.encode()
    if len(data) > JOB_BYTES:
        raise UserError(f"job of {len(data)} bytes", expected=f"at most {JOB_BYTES}")
    (work / qemu.JOB_FILE).write_bytes(data.ljust(JOB_BYTES, b"\0"))
