# SPDX-License-Identifier: GPL-2.0-or-later
"""QEMU's command lines, word by word: determinism hangs on them."""

from __future__ import annotations

import shlex

from kpatch_ci.guest.qemu import base_args, boot_argv, plain_argv, resume_argv
from kpatch_ci.model.machine import Cluster, Machine

ARM = Machine(
    name="m",
    description="d",
    arch="arm64",
    qemu_machine="virt,gic-version=3",
    cpu="cortex-a57",
    memory_mib=512,
    clusters=(Cluster("a", (0, 1), 446), Cluster("b", (2,), 1024)),
    icount_shift=0,
)
X86 = Machine(
    name="x",
    description="d",
    arch="x86_64",
    qemu_machine="q35",
    cpu="qemu64,-rdrand,-rdseed",
    memory_mib=256,
    clusters=(Cluster("p", (0, 1)),),
    icount_shift=2,
    kernel_args=("noapictimer", "tsc=reliable"),
    properties={"hpet.timers": "10", "hpet.msi": "on"},
)
ARM_BASE = shlex.split(
    "qemu-system-aarch64 -name kpatch-ci,debug-threads=on -machine virt,gic-version=3 -cpu cortex-a57 -smp 3 "
    "-m 512 -accel tcg -icount shift=0,sleep=off "
    "-seed 7 -rtc base=2024-01-01T00:00:00,clock=vm -nodefaults -display none -monitor none "
    "-chardev file,id=con,path=/kpci/work/console.log -serial chardev:con "
    "-chardev file,id=res,path=/kpci/work/result.jsonl -device pci-serial,chardev=res -device pvpanic-pci "
    "-device i6300esb -fw_cfg name=opt/kpatch-ci/job,file=/kpci/work/job -no-reboot "
    "-global migration.store-global-state=off -kernel /kpci/kernel -initrd /kpci/initrd -append"
)
ARM_COMMAND_LINE = "console=ttyAMA0 earlycon panic=-1 kpci.boot_seed=7"


def test_a_boot_pauses_itself_for_the_monitor() -> None:
    assert boot_argv(ARM, 7, dtb=True, qmp_fd=5) == [
        *ARM_BASE,
        ARM_COMMAND_LINE,
        *shlex.split("-dtb /kpci/dtb -action watchdog=pause"),
        *shlex.split("-chardev socket,id=qmp,fd=5 -mon chardev=qmp,mode=control"),
    ]


def test_a_resume_differs_from_its_boot_in_the_end_only() -> None:
    argv = resume_argv(ARM, 7, dtb=True)
    assert argv == [
        *ARM_BASE,
        ARM_COMMAND_LINE,
        *shlex.split("-dtb /kpci/dtb -action panic=shutdown -global migration.mapped-ram=on"),
        *shlex.split("-global migration.announce-rounds=0 -incoming file:/kpci/snapshot"),
    ]
    assert argv[: len(ARM_BASE) + 3] == boot_argv(ARM, 7, dtb=True, qmp_fd=5)[: len(ARM_BASE) + 3]


def test_x86_64_has_its_kernel_arguments_and_properties_and_no_device_tree() -> None:
    argv = boot_argv(X86, 1, dtb=False, qmp_fd=5)
    assert argv[0] == "qemu-system-x86_64"
    assert (
        argv[argv.index("-append") + 1]
        == "console=ttyS0 earlycon=uart8250,io,0x3f8 panic=-1 noapictimer tsc=reliable kpci.boot_seed=1"
    )
    assert argv[argv.index("-icount") + 1] == "shift=2,sleep=off"
    joined = " ".join(argv)
    assert "-global hpet.msi=on -global hpet.timers=10" in joined
    assert "-dtb" not in argv


def test_the_boot_seed_reaches_qemu_and_the_agent() -> None:
    one, two = (base_args(ARM, seed, console="file,id=con,path=/c") for seed in (1, 2))
    assert [(a, b) for a, b in zip(one, two, strict=True) if a != b] == [
        ("1", "2"),
        ("console=ttyAMA0 earlycon panic=-1 kpci.boot_seed=1", "console=ttyAMA0 earlycon panic=-1 kpci.boot_seed=2"),
    ]


def test_a_guest_for_people_has_its_console_on_the_terminal() -> None:
    argv = plain_argv(ARM, 1, dtb=True)
    assert "stdio,id=con,mux=on,signal=off" in argv
    assert "panic=none" in argv
    assert "watchdog=none" in argv
    assert "-incoming" not in argv
    assert "shift=0,sleep=off" in argv
    assert "shift=0,sleep=on" in plain_argv(ARM, 1, dtb=True, real_time=True)
