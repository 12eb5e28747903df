# SPDX-License-Identifier: GPL-2.0-or-later
"""Architectures: one constant each and one explicit table. A new one is one more constant and one more line."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Arch:
    """What differs between architectures when building for and booting them."""

    name: str
    kernel_arch: str
    """Kbuild's ARCH=."""
    cross_compile: str
    """Kbuild's CROSS_COMPILE=; empty where the tool root's own compiler is the right one."""
    make_targets: tuple[str, ...]
    image: str
    """Bootable image, below the build's output directory."""
    debian_arch: str
    gnu_triplet: str
    qemu: str
    console: str
    """The kernel's console= device."""
    early_console: str
    """Kernel argument that makes a console before any driver is there: a kernel that dies early must be heard."""


ARM64 = Arch(
    name="arm64",
    kernel_arch="arm64",
    cross_compile="aarch64-linux-gnu-",
    make_targets=("Image", "modules"),
    image="arch/arm64/boot/Image",
    debian_arch="arm64",
    gnu_triplet="aarch64-linux-gnu",
    qemu="qemu-system-aarch64",
    console="ttyAMA0",
    early_console="earlycon",
)

X86_64 = Arch(
    name="x86_64",
    kernel_arch="x86_64",
    cross_compile="",
    make_targets=("vmlinux", "modules"),
    image="vmlinux",  # booted through its PVH entry: nothing to decompress, neither when building nor when booting
    debian_arch="amd64",
    gnu_triplet="x86_64-linux-gnu",
    qemu="qemu-system-x86_64",
    console="ttyS0",
    early_console="earlycon=uart8250,io,0x3f8",
)

ARCHES: dict[str, Arch] = {arch.name: arch for arch in (ARM64, X86_64)}
