# SPDX-License-Identifier: GPL-2.0-or-later
"""QEMU's command line for a machine. Pure: everything in it is a path inside the sandbox, so it names nothing of this host.

By default in virtual time: one thread executes all CPUs in turn (-icount), the clock counts instructions (clock=vm, sleep=off), and
nothing completes on the host's clock: console and result channel are files, and there is no disk and no network. So a
guest is a function of its files and its seed. With ``accel: tcg`` or ``kvm`` its clock is the host's, and it is none.

Boot and resume must agree in every device and in their order, or the snapshot does not fit.
"""

from __future__ import annotations

from kpatch_ci.model.arch import ARCHES
from kpatch_ci.model.machine import Accel, Machine, TcgThreads

ROOT = "/kpci"
KERNEL = f"{ROOT}/kernel"
INITRD = f"{ROOT}/initrd"
DTB = f"{ROOT}/dtb"
SNAPSHOT = f"{ROOT}/snapshot"
"""The snapshot that a guest resumes from, read-only."""
WORK = f"{ROOT}/work"
"""The one directory that a guest writes to."""
JOB_FILE = "job"
CONSOLE_FILE = "console.log"
RESULT_FILE = "result.jsonl"
SNAPSHOT_FILE = "snapshot"
PRELOAD = f"{ROOT}/qemuserial.so"
"""Keeps QEMU's main loop from acting while the vCPU thread executes; it knows that thread by its name (debug-threads)."""
QMP_ID = "qmp"
_THREADS = {TcgThreads.SINGLE: "all CPUs in one thread in turns", TcgThreads.MULTI: "a thread for each CPU"}


def topology_args(machine: Machine, extra: str = "") -> list[str]:
    """Board, CPUs and memory; ``extra`` goes to the board's options."""
    args = ["-machine", machine.qemu_machine + extra, "-cpu", machine.cpu]
    return [*args, "-smp", str(machine.cpus), "-m", str(machine.memory_mib)]


def command_line(machine: Machine, boot_seed: int) -> str:
    """The kernel's command line. ``panic=-1``: a panic reboots at once, which -no-reboot turns into an end.

    In real time RCU does not tell of stalls: a vCPU that a busy host left waiting is no fault of the kernel, and a kernel that
    really hangs meets its time limit.
    """
    arch = ARCHES[machine.arch]
    patient = ["rcupdate.rcu_cpu_stall_suppress=1"] if machine.real_time else []
    own = [*patient, *machine.kernel_args, f"kpci.boot_seed={boot_seed}"]
    return " ".join([f"console={arch.console}", arch.early_console, "panic=-1", *own])


def accelerator_args(machine: Machine) -> list[str]:
    """One accelerator, never a list for QEMU to fall back along: what is not there ends it."""
    if machine.accel is Accel.KVM:
        return ["-accel", "kvm"]
    if machine.accel is Accel.TCG:
        return ["-accel", f"tcg,thread={machine.tcg_threads}"]
    return ["-accel", "tcg", "-icount", f"shift={machine.icount_shift},sleep=off"]


def accelerator(machine: Machine) -> str:
    """The accelerator in words, for a fingerprint."""
    if machine.board:
        return f"hardware, {machine.board.login.address}"
    if machine.accel is Accel.KVM:
        return "kvm, real time"
    if machine.accel is Accel.TCG:
        return f"tcg, {_THREADS[machine.tcg_threads]}, real time"
    return f"tcg, icount shift={machine.icount_shift}, sleep=off"


def base_args(machine: Machine, boot_seed: int, *, console: str) -> list[str]:
    """What a boot and its resumes have in common. ``console`` is the console's chardev, with id=con."""
    args = [ARCHES[machine.arch].qemu, "-name", "kpatch-ci,debug-threads=on", *topology_args(machine)]
    args += [*accelerator_args(machine), "-seed", str(boot_seed)]
    args += ["-rtc", "base=2024-01-01T00:00:00,clock=vm", "-nodefaults", "-display", "none", "-monitor", "none"]
    args += ["-chardev", console, "-serial", "chardev:con"]
    args += ["-chardev", f"file,id=res,path={WORK}/{RESULT_FILE}", "-device", "pci-serial,chardev=res"]
    args += ["-device", "pvpanic-pci", "-device", "i6300esb"]
    args += ["-fw_cfg", f"name=opt/kpatch-ci/job,file={WORK}/{JOB_FILE}", "-no-reboot"]
    args += ["-global", "migration.store-global-state=off"]
    for name, value in sorted(machine.properties.items()):
        args += ["-global", f"{name}={value}"]
    args += ["-kernel", KERNEL, "-initrd", INITRD]
    return [*args, "-append", command_line(machine, boot_seed)]


def _file_console() -> str:
    return f"file,id=con,path={WORK}/{CONSOLE_FILE}"


def _with_dtb(args: list[str], dtb: bool) -> list[str]:
    return [*args, "-dtb", DTB] if dtb else args


def boot_argv(machine: Machine, boot_seed: int, *, dtb: bool, qmp_fd: int) -> list[str]:
    """Boot up to where the agent says that it is ready: QEMU pauses there, for the monitor on ``qmp_fd`` to save it."""
    args = _with_dtb(base_args(machine, boot_seed, console=_file_console()), dtb)
    monitor = ["-chardev", f"socket,id={QMP_ID},fd={qmp_fd}", "-mon", f"chardev={QMP_ID},mode=control"]
    return [*args, "-action", "watchdog=pause", *monitor]


def resume_argv(machine: Machine, boot_seed: int, *, dtb: bool) -> list[str]:
    """Go on from a snapshot, and end by itself when the job is done.

    ``announce-rounds=0``: the self-announcement after a migration runs on the host's clock and would disturb the guest's.
    """
    args = _with_dtb(base_args(machine, boot_seed, console=_file_console()), dtb)
    args += ["-action", "panic=shutdown", "-global", "migration.mapped-ram=on"]
    return [*args, "-global", "migration.announce-rounds=0", "-incoming", f"file:{SNAPSHOT}"]


def fresh_argv(machine: Machine, boot_seed: int, *, dtb: bool, qmp_fd: int) -> list[str]:
    """Boot, do the job and end, in one go and in real time: what the accelerators that keep no snapshot do.

    The monitor is there to be asked which accelerator it is. The agent's watchdog, which stops a guest for its snapshot,
    is let pass.
    """
    args = _with_dtb(base_args(machine, boot_seed, console=_file_console()), dtb)
    monitor = ["-chardev", f"socket,id={QMP_ID},fd={qmp_fd}", "-mon", f"chardev={QMP_ID},mode=control"]
    return [*args, "-action", "panic=shutdown", "-action", "watchdog=none", *monitor]


def plain_argv(machine: Machine, boot_seed: int, *, dtb: bool, real_time: bool = False) -> list[str]:
    """Boot and do the job in one go, with the console on the terminal: for people; Ctrl-A X ends it.

    ``real_time``: idle CPUs wait for the host's clock. Without it hours pass in the guest between two keys.
    """
    console = "stdio,id=con,mux=on,signal=off"
    args = base_args(machine, boot_seed, console=console)
    args[args.index("-monitor") + 1] = "chardev:con"
    if real_time and not machine.real_time:
        args[args.index("-icount") + 1] = f"shift={machine.icount_shift},sleep=on"
    return [*_with_dtb(args, dtb), "-action", "panic=none", "-action", "watchdog=none"]
