# SPDX-License-Identifier: GPL-2.0-or-later
"""QEMU guests that stand in for boards: Debian's own kernel, an SSH server and kexec in an initramfs, a network card, a power switch.

What a board has and a stand-in has not: firmware that takes its time, a disk, sensors, frequencies.
Run as a program it is the power switch: ``python standin.py SOCKET`` resets the guest behind QEMU's monitor.
"""

from __future__ import annotations

import json
import lzma
import shutil
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from kpatch_ci.debian.apt import AptRoot, Archives, extract, suites_of
from kpatch_ci.debian.toolroot import ToolRoot
from kpatch_ci.guest.cpio import pack
from kpatch_ci.model.arch import Arch
from kpatch_ci.process import Process

INIT = """\
#!/bin/sh
export PATH=/usr/sbin:/usr/bin
b=/usr/bin/busybox
$b mount -t proc proc /proc
$b mount -t sysfs sysfs /sys
$b mount -t devtmpfs dev /dev
exec </dev/console >/dev/console 2>&1
$b mkdir -p /dev/pts
$b mount -t devpts devpts /dev/pts
for m in failover net_failover virtio_net; do $b insmod /modules/$m.ko; done
$b ip link set lo up
$b ip link set eth0 up
$b ip addr add 10.0.2.15/24 dev eth0
$b ip route add default via 10.0.2.2
dropbearconvert openssh dropbear /etc/ssh/ssh_host_ed25519_key /run/hostkey
echo "stand-in: up"
dropbear -F -E -s -r /run/hostkey
echo "stand-in: no SSH server"
while :; do $b sleep 1000; done
"""
PACKAGES = ("busybox-static", "dropbear-bin", "kexec-tools")
PROGRAMS = ("usr/bin/busybox", "usr/sbin/dropbear", "usr/bin/dropbearconvert", "usr/sbin/kexec")
APPLETS = (
    "awk", "cat", "cut", "grep", "gzip", "head", "id", "ip", "kill", "ls", "mkdir", "mount", "mv", "nohup", "reboot", "rm", "sed",
    "setsid", "sh", "sha256sum", "sleep", "sync", "tail", "timeout", "touch", "uname",
)  # fmt: skip
LOADERS = {"arm64": "usr/lib/ld-linux-aarch64.so.1", "x86_64": "usr/lib64/ld-linux-x86-64.so.2"}
MODULES = ("net/core/failover", "drivers/net/net_failover", "drivers/net/virtio_net")
MACHINES = {"arm64": ("virt,gic-version=3", "cortex-a57", "ttyAMA0"), "x86_64": ("q35", "qemu64", "ttyS0")}
"""Board, CPU and console."""
MEMORY_MIB = 1024
START = 90.0


@dataclass(frozen=True, slots=True)
class Disk:
    """What a stand-in boots: fetched once a session."""

    kernel: Path
    root: Path
    """What becomes its initramfs."""


def fetch_disk(arch: Arch, place: Path, archives: Archives, suite: str) -> Disk:
    """Debian's cloud kernel and the few programs of a board's own system."""
    apt = AptRoot(place / "apt", arch=arch.debian_arch, suites=suites_of(suite), archives=archives)
    apt.update()
    meta = f"linux-image-cloud-{arch.debian_arch}"
    kernels = apt.versions(rf"linux-image-[0-9].*-cloud-{arch.debian_arch}|{meta}")
    name = next(n for n, version in sorted(kernels.items()) if n != meta and version == kernels[meta])
    # apt-get download does not follow dependencies: a kernel's would bring an init system
    unpacked = place / "packages"
    extract([apt.download_only(name)], place / "kernel")
    extract([p for p in apt.download(PACKAGES) if p.name in PACKAGES or p.name.startswith(("lib", "zlib"))], unpacked)
    root = place / "root"
    for folder in (
        "dev",
        "proc",
        "sys",
        "tmp",
        "run",
        "etc/ssh",
        "root/.ssh",
        "modules",
        "usr/bin",
        "usr/sbin",
        "usr/lib64",
    ):
        (root / folder).mkdir(parents=True)
    for program in PROGRAMS:
        shutil.copy(unpacked / program, root / program)
    libraries = root / "usr/lib" / arch.gnu_triplet
    libraries.mkdir(parents=True)
    for library in (unpacked / "usr/lib" / arch.gnu_triplet).glob("*.so*"):
        if library.is_file() and not library.is_symlink():
            shutil.copy(library, libraries / library.name)
    for link in (unpacked / "usr/lib" / arch.gnu_triplet).glob("*.so*"):
        if link.is_symlink():
            (libraries / link.name).symlink_to(link.readlink().name)
    for link_name, target in {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"}.items():
        (root / link_name).symlink_to(target)
    loader = root / LOADERS[arch.name]
    loader.unlink(missing_ok=True)
    loader.symlink_to(f"/usr/lib/{arch.gnu_triplet}/{loader.name}")
    for applet in APPLETS:
        (root / "usr/bin" / applet).symlink_to("busybox")
    (modules,) = (place / "kernel/usr/lib/modules").iterdir()
    for module in MODULES:
        packed = modules / "kernel" / f"{module}.ko.xz"
        (root / "modules" / f"{Path(module).name}.ko").write_bytes(lzma.decompress(packed.read_bytes()))
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (root / "init").write_text(INIT)
    (root / "init").chmod(0o755)
    (root / "root").chmod(0o700)
    (kernel,) = (place / "kernel/boot").glob("vmlinuz-*")
    return Disk(kernel, root)


def key_pair(place: Path, name: str) -> tuple[Path, str]:
    """A new key: its private file (OpenSSH's format) and its public line."""
    key = Ed25519PrivateKey.generate()
    private = place / name
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption())
    )
    private.chmod(0o600)
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return private, public.decode()


@dataclass(frozen=True, slots=True)
class StandIn:
    """A running stand-in, and all that a machine file wants to know of it."""

    port: int
    key: Path
    known_hosts: Path
    console: Path
    monitor: Path
    process: Process

    @property
    def power_cycle(self) -> str:
        """The command that resets it."""
        return f"{sys.executable} {__file__} {self.monitor}"


@contextmanager
def stand_in(arch: Arch, disk: Disk, place: Path, tools: ToolRoot, *, cpus: int = 2) -> Iterator[StandIn]:
    """A stand-in from its power-on to its end."""
    place.mkdir(parents=True, exist_ok=True)
    key, public = key_pair(place, "id")
    host_key, host_public = key_pair(place, "hostkey")
    root = place / "root"
    shutil.copytree(disk.root, root, symlinks=True)
    shutil.copy(host_key, root / "etc/ssh/ssh_host_ed25519_key")
    (root / "root/.ssh/authorized_keys").write_text(public + "\n")
    (root / "root/.ssh").chmod(0o700)
    pack(tools, root, place / "initrd")
    shutil.rmtree(root)
    port = _free_port()
    known = place / "known_hosts"
    known.write_text(f"[127.0.0.1]:{port} {host_public}\n")
    machine, cpu, console = MACHINES[arch.name]
    argv = [arch.qemu, "-accel", "tcg,thread=multi", "-machine", machine, "-cpu", cpu, "-smp", str(cpus)]
    argv += ["-m", str(MEMORY_MIB), "-nodefaults", "-display", "none", "-monitor", "none"]
    argv += ["-chardev", "file,id=con,path=/kpci/work/console.log,append=on", "-serial", "chardev:con"]
    argv += ["-qmp", "unix:/kpci/work/monitor,server=on,wait=off"]
    argv += [
        "-netdev",
        f"user,id=net,hostfwd=tcp:127.0.0.1:{port}-:22",
        "-device",
        "virtio-net-pci,netdev=net,romfile=",
    ]
    argv += ["-kernel", "/kpci/kernel", "-initrd", "/kpci/work/initrd"]
    argv += ["-append", f"console={console} quiet panic=5 rcupdate.rcu_cpu_stall_suppress=1 mitigations=off"]
    inside = tools.argv(argv, mounts=[(disk.kernel, "/kpci/kernel")], write_mounts=[(place, "/kpci/work")])
    inside.insert(
        inside.index("--unshare-all") + 1, "--share-net"
    )  # a test's own: guests of the product have no network
    with (place / "qemu.log").open("wb") as log, Process(inside, stdout=log) as process:
        made = StandIn(port, key, known, place / "console.log", place / "monitor", process)
        _wait_for(made, "stand-in: up", place / "qemu.log")
        yield made


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(made: StandIn, words: str, log: Path) -> None:
    end = time.monotonic() + START
    while time.monotonic() < end and made.process.poll() is None:
        if made.console.exists() and words in made.console.read_text(errors="replace"):
            return
        time.sleep(0.2)
    said = made.console.read_text(errors="replace") if made.console.exists() else ""
    raise AssertionError(f"the stand-in is not up\n{log.read_text(errors='replace')}\n{said[-3000:]}")


def reset(monitor: Path) -> None:
    """Reset the guest, whatever state it is in."""
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(10)
        link.connect(str(monitor))
        stream = link.makefile("rw")
        for command in ("qmp_capabilities", "system_reset"):
            stream.write(json.dumps({"execute": command}) + "\n")
            stream.flush()
            while "return" not in (answer := json.loads(stream.readline())):
                if "error" in answer:
                    sys.exit(str(answer))


if __name__ == "__main__":
    reset(Path(sys.argv[1]))
