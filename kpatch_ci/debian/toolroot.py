# SPDX-License-Identifier: GPL-2.0-or-later
"""The tool root: compilers, Kbuild's tools and QEMU of one pinned Debian suite, the same on every host.

It is a directory of unpacked packages, entered with bubblewrap: what runs in it sees the tools read-only, the
directories that it was given, an empty /tmp, and no network. So a Debian 12 laptop and a Debian 13 runner compile with
the same compiler and boot with the same QEMU, and a patch's build can write nowhere but into its own output.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kpatch_ci.debian.apt import AptRoot, Archives, extract, suites_of
from kpatch_ci.model.digest import digest
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.process import run
from kpatch_ci.store.atomic import write_text
from kpatch_ci.store.cache import locked

BASE = (
    "base-files", "bash", "coreutils", "dash", "diffutils", "findutils", "grep", "gzip", "hostname", "libc-bin", "mawk",
    "perl", "python3-minimal", "sed", "tar", "util-linux",
)  # fmt: skip
KBUILD = (
    "bc", "bison", "cpio", "flex", "gcc", "gcc-aarch64-linux-gnu", "git", "kmod", "libc6-dev", "libc6-dev-arm64-cross",
    "libelf-dev", "libssl-dev", "make", "patch", "xz-utils", "zstd",
)  # fmt: skip
EMULATORS = ("qemu-system-arm", "qemu-system-x86")
PACKAGES = BASE + KBUILD + EMULATORS

LAYOUT = 1
"""Raise it when what is done to the unpacked packages changes."""
_LINKS = {"usr/bin/awk": "mawk", "usr/bin/sh": "dash"}
PROBE_TIMEOUT = 30.0
PROC_SYS = Path("/proc/sys")
USERNS = (
    ("user.max_user_namespaces", "0", "10000"),
    ("kernel.unprivileged_userns_clone", "0", "1"),
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
)
"""Settings that keep people who are not root from making a sandbox: name, the value that does, one that does not."""
TMP_BYTES = 1 << 30
"""What /tmp in the sandbox may hold: it is memory."""


@dataclass(frozen=True, slots=True)
class ToolRoot:
    """An unpacked tool root. ``fingerprint`` is a digest of every package's name and version."""

    path: Path
    suite: str
    fingerprint: str
    versions: Mapping[str, str]
    """Package name -> version."""

    def argv(
        self,
        command: Sequence[str | Path],
        *,
        read: Sequence[Path] = (),
        write: Sequence[Path] = (),
        mounts: Sequence[tuple[Path, str]] = (),
        write_mounts: Sequence[tuple[Path, str]] = (),
        devices: Sequence[Path] = (),
        cwd: Path | str | None = None,
        env: Mapping[str, str] | None = None,
        bwrap: str = "bwrap",
    ) -> list[str]:
        """Command line that runs ``command`` in the tool root.

        ``read`` and ``write`` are visible at their own paths; ``mounts`` (read-only) and ``write_mounts`` are
        (host path, path inside). There is no network and nothing else of the host; of its devices only ``devices``.
        """
        # Without --cap-drop root keeps its capabilities in there, and could remount what is bound read-only.
        args = [bwrap, "--unshare-all", "--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL"]
        args += ["--ro-bind", str(self.path / "usr"), "/usr", "--ro-bind", str(self.path / "etc"), "/etc"]
        for name in ("bin", "sbin", "lib", "lib64"):
            args += ["--symlink", f"usr/{name}", f"/{name}"]
        args += ["--dev", "/dev", "--proc", "/proc", "--size", str(TMP_BYTES), "--tmpfs", "/tmp"]  # noqa: S108 (inside the sandbox)
        for path in read:
            args += ["--ro-bind", str(path), str(path)]
        for outside, inside in mounts:
            args += ["--ro-bind", str(outside), inside]
        for outside, inside in write_mounts:
            args += ["--bind", str(outside), inside]
        for path in write:
            args += ["--bind", str(path), str(path)]
        for path in devices:
            args += ["--dev-bind", str(path), str(path)]
        if cwd is not None:
            args += ["--chdir", str(cwd)]
        settings = {"PATH": "/usr/bin:/usr/sbin", "HOME": "/tmp", "LC_ALL": "C.UTF-8", "TZ": "UTC", **(env or {})}  # noqa: S108
        for key, value in sorted(settings.items()):
            args += ["--setenv", key, value]
        return [*args, "--", *(str(c) for c in command)]


def toolroot_place(cache: Path, suite: str, packages: Sequence[str] = PACKAGES) -> Path:
    """Where the tool root of a suite, with these packages, is or would be."""
    return cache / "tools" / f"{suite}-{digest([LAYOUT, suite, packages, _LINKS])[:12]}"


def find_toolroot(cache: Path, suite: str, packages: Sequence[str] = PACKAGES) -> ToolRoot | None:
    """The tool root, when it is there and whole."""
    place = toolroot_place(cache, suite, packages)
    try:
        versions = json.loads((place / "packages.json").read_text())
    except (OSError, ValueError):
        return None
    return ToolRoot(place, suite, digest(versions), versions)


def make_toolroot(cache: Path, suite: str, archives: Archives, packages: Sequence[str] = PACKAGES) -> ToolRoot:
    """The tool root of ``suite``, made when it is not there: ``packages`` (BASE is to be among them) and what they need.

    Raises InfrastructureError.
    """
    place = toolroot_place(cache, suite, packages)
    with locked(place):
        found = find_toolroot(cache, suite, packages)
        if found:
            return found
        shutil.rmtree(place, ignore_errors=True)
        apt = AptRoot(
            place.with_name(place.name + ".apt"),
            arch="amd64",
            suites=suites_of(suite),
            archives=archives,
        )
        apt.forget()  # what a killed run downloaded may be of another day
        try:
            apt.update()
            fetched = apt.download(packages)
            extract(fetched, place)
        finally:
            apt.forget()
        for name, target in _LINKS.items():
            link = place / name
            link.unlink(missing_ok=True)
            link.symlink_to(target)
        write_text(place / "packages.json", json.dumps({p.name: p.version for p in fetched}, indent=1))
    made = find_toolroot(cache, suite, packages)
    if made is None:
        raise InfrastructureError(f"{place} vanished while it was made")
    return made


def check_sandbox(root: ToolRoot, *, timeout: float = PROBE_TIMEOUT) -> None:
    """Run `true` in the tool root. Raises InfrastructureError that says why this machine cannot.

    There is no way around it: a patch's Makefile is somebody else's code, and is not run without the sandbox.
    """
    done = run(root.argv(["true"]), timeout=timeout)
    if done.ok:
        return
    what = "cannot enter the build sandbox with bubblewrap, and a patch's build is not run without it"
    raise InfrastructureError(what, log=done.output, hint=_sandbox_hint(PROC_SYS))


def _sandbox_hint(settings: Path) -> str:
    """What to do: the kernel's setting that forbids it where there is one, else what a container wants."""
    for name, forbids, allowed in USERNS:
        place = settings / name.replace(".", "/")
        if os.geteuid() != 0 and place.is_file() and place.read_text().strip() == forbids:
            return f"user namespaces are switched off here: sudo sysctl -w {name}={allowed}"
    if any(Path(mark).exists() for mark in ("/.dockerenv", "/run/.containerenv")):
        return "this container has no namespaces: start it with --privileged, or with --security-opt seccomp=unconfined"
    return "kernel namespaces are needed: outside a container they are there by default"
