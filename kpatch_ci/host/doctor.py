# SPDX-License-Identifier: GPL-2.0-or-later
"""What this machine has and lacks, told within 15 seconds whatever hangs."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from kpatch_ci.debian.apt import host_archives
from kpatch_ci.debian.toolroot import ToolRoot, check_sandbox, find_toolroot
from kpatch_ci.host import finding as judge
from kpatch_ci.host.finding import Finding
from kpatch_ci.host.install import NEEDS, command
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.process import run

DEADLINE = 14.0
"""Seconds for everything; what has not answered by then is said to hang."""
STEP = 6.0
KVM = Path("/dev/kvm")
MEMINFO = Path("/proc/meminfo")
CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
Probe = Callable[[], tuple[bool, str]]
Check = tuple[str, Callable[[], Finding]]


def examine(cache: Path, suite: str, *, probe: Probe | None, deadline: float = DEADLINE) -> list[Finding]:
    """Everything that a run needs. ``probe`` boots a guest under KVM: whether one ran, and in words."""
    root = find_toolroot(cache, suite)
    checks: list[Check] = [
        ("python", lambda: judge.python(platform.python_version())),
        ("git", lambda: judge.program("git", "git", _version("git"))),
        ("bubblewrap", lambda: judge.program("bwrap", "bubblewrap", _version("bwrap"))),
        ("sandbox", lambda: _sandbox(root)),
        ("packages", _packages),
        ("tool root", lambda: _toolroot(root, suite)),
        ("cores", lambda: judge.cores(len(os.sched_getaffinity(0)))),
        ("memory", lambda: judge.memory(_memory())),
        ("disk", lambda: _disk(cache, warm=root is not None)),
        ("archives", _archives),
        ("kvm", lambda: _kvm(probe)),
    ]
    return _side_by_side(checks, deadline)


def _side_by_side(checks: Sequence[Check], deadline: float) -> list[Finding]:
    found: dict[str, Finding] = {}

    def one(name: str, check: Callable[[], Finding]) -> None:
        try:
            found[name] = check()
        except (InfrastructureError, OSError) as error:
            found[name] = Finding(name, False, str(error).splitlines()[0], getattr(error, "hint", None) or "")

    # Daemon threads: a name server that never answers must not keep the program from ending.
    threads = [threading.Thread(target=one, args=check, daemon=True) for check in checks]
    end = time.monotonic() + deadline
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    silent = f"no answer within {deadline:.0f} s"
    return [found.get(name) or Finding(name, None, silent) for name, _ in checks]


def _version(name: str) -> str:
    if shutil.which(name) is None:
        return ""
    done = run([name, "--version"], timeout=STEP)
    return done.output if done.ok else ""


def _packages() -> Finding:
    needs = [need for need in NEEDS if not need.there]
    if not needs:
        return Finding("packages", True, "all there")
    return Finding("packages", False, f"missing: {', '.join(n.package for n in needs)}", command(needs))


def _sandbox(root: ToolRoot | None) -> Finding:
    if root is not None:
        check_sandbox(root, timeout=STEP)
        return Finding("sandbox", True, "enters the tool root")
    if shutil.which("bwrap") is None:
        return Finding("sandbox", None, "not tried: no bwrap")
    done = run(["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--", "/bin/true"], timeout=STEP)
    if done.ok:
        return Finding("sandbox", True, "works (tried on the host's own files)")
    said = done.output.strip().splitlines()[-1:] or [done.explain()]
    return Finding("sandbox", False, said[0], "kernel namespaces are needed: a container wants --privileged")


def _toolroot(root: ToolRoot | None, suite: str) -> Finding:
    if root is None:
        return Finding("tool root", None, f"not made yet: the first run fetches it from {suite}")
    wanted = {"gcc": "gcc", "gcc-aarch64-linux-gnu": "arm64 gcc", "qemu-system-arm": "QEMU", "make": "make"}
    versions = [f"{name} {_upstream(root.versions[p])}" for p, name in wanted.items() if p in root.versions]
    return Finding("tool root", True, f"{root.suite}: {', '.join(versions)}")


def _upstream(version: str) -> str:
    """Debian version -> what its makers call it: ``1:10.0.2+ds-2`` -> ``10.0.2``."""
    return version.partition(":")[2].partition("-")[0].partition("+")[0] or version.partition("-")[0].partition("+")[0]


def _memory() -> int:
    kib = next(int(line.split()[1]) for line in MEMINFO.read_text().splitlines() if line.startswith("MemTotal:"))
    total = kib * 1024
    try:
        limit = CGROUP_LIMIT.read_text().strip()
    except OSError:
        return total
    return min(total, int(limit)) if limit.isdigit() else total


def _disk(cache: Path, *, warm: bool) -> Finding:
    place = cache
    while not place.exists():
        place = place.parent
    return judge.disk(shutil.disk_usage(place).free, str(cache), warm=warm)


def _archives() -> Finding:
    """Only whether names resolve: whether the archives answer is for apt to say."""
    archives = host_archives(timeout=STEP)
    proxy = os.environ.get("http_proxy") or _apt_proxy()
    seen: list[str] = []
    for uri in (archives.main, archives.security):
        if uri is None:
            continue
        parts = urlsplit(uri.removeprefix("mirror+"))
        if parts.scheme in ("file", "copy"):
            if not Path(parts.path).exists():
                return Finding("archives", False, f"{parts.path} does not exist", "mount it, or edit apt's sources")
            seen.append(parts.path)
            continue
        host = (urlsplit(proxy).hostname if proxy else None) or parts.hostname or ""
        try:
            socket.getaddrinfo(host, None)
        except OSError as error:
            return Finding("archives", False, f"{host}: {error.strerror or error}", "is the network there?")
        seen.append(f"{host} (proxy)" if proxy else host)
    return Finding("archives", True, f"{', '.join(dict.fromkeys(seen))} (name looked up, nothing fetched)")


def _apt_proxy() -> str:
    done = run(["apt-config", "--format", "%v%n", "dump", "Acquire::http::Proxy"], timeout=STEP)
    return next((line for line in done.output.split() if "://" in line), "")


def _kvm(probe: Probe | None) -> Finding:
    if not KVM.exists():
        return Finding("kvm", None, "no /dev/kvm: not needed, deterministic mode emulates")
    if not os.access(KVM, os.R_OK | os.W_OK):
        return Finding(
            "kvm", None, "/dev/kvm may not be opened by you", f"sudo usermod -aG kvm {os.environ.get('USER', 'YOU')}"
        )
    if probe is None:
        return Finding(
            "kvm", None, "/dev/kvm is there; whether it runs a guest is tried once the tool root (its QEMU) is"
        )
    ran, words = probe()
    # Not False: what does not work here is not needed by default.
    return Finding("kvm", True if ran else None, words)
