# SPDX-License-Identifier: GPL-2.0-or-later
"""The guest image: an initramfs of real Debian packages and our agent, the same bytes whenever it is made.

Only the files that workloads run go in, with the libraries that they need. Which versions those are is asked of the
network once: the answer is kept beside the cache, by a digest of everything else that the image depends on.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kpatch_ci.debian.apt import AptRoot, Archives, Package, extract, suites_of
from kpatch_ci.debian.toolroot import ToolRoot
from kpatch_ci.guest.cpio import pack
from kpatch_ci.guest.loadfile import LINES, without_fillers
from kpatch_ci.model.arch import Arch
from kpatch_ci.model.digest import digest, file_digest
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.process import check_stopping, run
from kpatch_ci.store.artifacts import Artifact, ArtifactStore
from kpatch_ci.store.atomic import disk_errors, write_text
from kpatch_ci.store.cache import locked

KIND = "guest-image"
LAYOUT = 2
"""Raise it when what is done with the packages changes."""
IMAGE = "image.cpio"
TOOL_TIMEOUT = 300.0

PROGRAMS: Mapping[str, tuple[str, ...]] = {
    "busybox-static": ("usr/bin/busybox",),
    "coreutils": ("usr/bin/dd",),
    "dbench": ("usr/bin/dbench",),
    "e2fsprogs": ("usr/sbin/mke2fs",),
    "rt-tests": ("usr/bin/hackbench",),
    "xfsprogs": ("usr/sbin/mkfs.xfs",),
}
"""Package -> programs taken from it."""
APPLETS = (
    "cat", "df", "dmesg", "find", "free", "grep", "head", "ls", "mount", "ps", "sh", "sleep", "tail", "top", "umount", "uptime", "vi",
)  # fmt: skip
"""Busybox's, for people in `boot --shell`; workloads call real programs by their paths."""
LOADFILE = "usr/share/dbench/client.txt"
SHORT_LOADFILE = "usr/share/dbench/nofill.txt"
LENS = "usr/lib/kpci/clocklens.so"
LENS_FLAGS = ("-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-s")
SERIALISER = "qemuserial.so"
"""Beside the image, not in it: the host's QEMU preloads it (see qemu/guest/host)."""
CFLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-s")
_INTERPRETERS = {"arm64": "usr/lib/ld-linux-aarch64.so.1", "x86_64": "usr/lib64/ld-linux-x86-64.so.2"}
"""Where programs look for the dynamic loader (through the links of _LINKS)."""
_LINKS = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"}
_FOLDERS = (
    "dev", "etc", "proc", "sys", "tmp", "usr", "usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "usr/lib/kpci", "usr/share",
    "usr/share/dbench",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class GuestImage:
    """An initramfs. ``packages``: name -> version of every package that a file in it comes from."""

    arch: str
    path: Path
    digest: str
    packages: Mapping[str, str]
    key: str
    preload: Path
    """Library that the host's QEMU preloads."""
    preload_digest: str


def _agent_files(agent_sources: Path) -> list[Path]:
    found = sorted(p for p in agent_sources.iterdir() if p.suffix in (".c", ".h"))
    if not any(p.suffix == ".c" for p in found):
        raise InfrastructureError(f"{agent_sources} holds no sources of the guest's agent")
    return found


def _lens_files(agent_sources: Path) -> list[Path]:
    return sorted((agent_sources / "preload").glob("*.c"))


def _serialiser_files(agent_sources: Path) -> list[Path]:
    return sorted((agent_sources / "host").glob("*.c"))


def _spec(arch: Arch, tools: ToolRoot, agent_sources: Path) -> str:
    """Digest of what an image depends on, but for the packages' versions."""
    sources = [*_agent_files(agent_sources), *_lens_files(agent_sources), *_serialiser_files(agent_sources)]
    agent = {str(p.relative_to(agent_sources)): file_digest(p) for p in sources}
    layout = [LAYOUT, PROGRAMS, APPLETS, LOADFILE, SHORT_LOADFILE, LINES, CFLAGS, LENS, LENS_FLAGS, _LINKS, _FOLDERS]
    return digest([KIND, layout, arch.name, suites_of(tools.suite), tools.fingerprint, agent])


def _index(cache: Path, arch: Arch, spec: str) -> Path:
    return cache / "guest" / f"{arch.name}-{spec[:16]}.json"


def _image(arch: Arch, artifact: Artifact) -> GuestImage:
    return GuestImage(
        arch=arch.name,
        path=artifact.path / IMAGE,
        digest=artifact.digests[IMAGE],
        packages=artifact.meta["packages"],
        key=artifact.key,
        preload=artifact.path / SERIALISER,
        preload_digest=artifact.digests[SERIALISER],
    )


def find_image(
    arch: Arch, cache: Path, store: ArtifactStore, tools: ToolRoot, agent_sources: Path
) -> GuestImage | None:
    """The image, when it was made before from these sources and tools. Asks no network."""
    try:
        key = json.loads(_index(cache, arch, _spec(arch, tools, agent_sources)).read_text())["key"]
    except (OSError, ValueError, KeyError):
        return None
    artifact = store.get(KIND, key)
    return _image(arch, artifact) if artifact else None


def make_image(
    arch: Arch, cache: Path, store: ArtifactStore, tools: ToolRoot, *, archives: Archives, agent_sources: Path
) -> GuestImage:
    """The image, made when it is not there. Raises InfrastructureError."""
    spec = _spec(arch, tools, agent_sources)
    index = _index(cache, arch, spec)
    with locked(index, check_stopping), disk_errors(cache):
        found = find_image(arch, cache, store, tools, agent_sources)
        if found:
            return found
        with tempfile.TemporaryDirectory(prefix=f".{arch.name}-", dir=index.parent) as scratch:
            artifact = _make(Kitchen(arch, tools, Path(scratch)), spec, store, archives, agent_sources)
        write_text(index, json.dumps({"key": artifact.key, "packages": artifact.meta["packages"]}, indent=1))
    return _image(arch, artifact)


@dataclass(frozen=True, slots=True)
class Kitchen:
    """Where an image is made."""

    arch: Arch
    tools: ToolRoot
    work: Path

    @property
    def unpacked(self) -> Path:
        """One folder a package."""
        return self.work / "packages"

    @property
    def root(self) -> Path:
        """What becomes the image."""
        return self.work / "root"


def _make(kitchen: Kitchen, spec: str, store: ArtifactStore, archives: Archives, agent_sources: Path) -> Artifact:
    suites = suites_of(kitchen.tools.suite)
    apt = AptRoot(kitchen.work / "apt", arch=kitchen.arch.debian_arch, suites=suites, archives=archives)
    apt.update()
    packages = {p.name: p for p in apt.download(PROGRAMS) if p.name in PROGRAMS or p.name.startswith("lib")}
    for package in packages.values():
        extract([package], kitchen.unpacked / package.name)
    files = _files(kitchen, packages)
    used = {origin: packages[origin] for origin, _ in files.values()}
    key = digest([spec, {name: [p.version, p.sha256] for name, p in used.items()}])

    def fill(place: Path) -> Mapping[str, Any]:
        _lay_out(kitchen, files)
        _compile_agent(kitchen, agent_sources)
        compile_sources(
            kitchen, agent_sources, _serialiser_files(agent_sources), place / SERIALISER, LENS_FLAGS, compiler="gcc"
        )
        pack(kitchen.tools, kitchen.root, place / IMAGE)
        return {"arch": kitchen.arch.name, "packages": {name: p.version for name, p in sorted(used.items())}}

    return store.get(KIND, key) or store.put(KIND, key, fill)


def _files(kitchen: Kitchen, packages: Mapping[str, Package]) -> dict[str, tuple[str, Path]]:
    """Path in the image -> package and file, of all programs and what they are linked with."""
    files = {path: (name, kitchen.unpacked / name / path) for name, paths in PROGRAMS.items() for path in paths}
    files[LOADFILE] = ("dbench", kitchen.unpacked / "dbench" / LOADFILE)
    for path, (name, source) in files.items():
        if not source.is_file():
            raise InfrastructureError(f"package {name} {packages[name].version} has no /{path}")
    following = [source for path, (_, source) in files.items() if path != LOADFILE]
    while following:
        wanted = [f"usr/lib/{kitchen.arch.gnu_triplet}/{name}" for name in needed(kitchen, following)]
        found = {path: find_library(kitchen, packages, path) for path in wanted if path not in files}
        files.update(found)
        following = [source for _, source in found.values()]
    return files


def needed(kitchen: Kitchen, programs: Iterable[Path]) -> list[str]:
    """Names of the libraries that ELF files ask for."""
    inside = [f"/kpci/{p.relative_to(kitchen.unpacked)}" for p in programs]
    argv = kitchen.tools.argv(["readelf", "--dynamic", "--wide", *inside], mounts=[(kitchen.unpacked, "/kpci")])
    done = run(argv, timeout=TOOL_TIMEOUT)
    if not done.ok:
        raise InfrastructureError(f"cannot read what the guest's programs need: {done.explain()}", log=done.output)
    return sorted(set(re.findall(r"\(NEEDED\)\s+Shared library: \[([^\]]+)\]", done.output)))


def find_library(kitchen: Kitchen, packages: Iterable[str], path: str) -> tuple[str, Path]:
    """The package that has a library, and the file. Raises InfrastructureError."""
    for name in sorted(packages):
        source = kitchen.unpacked / name / path
        if source.is_file():
            return name, source.resolve()
    raise InfrastructureError(f"no package of the guest has the library {path}")


def _lay_out(kitchen: Kitchen, files: Mapping[str, tuple[str, Path]]) -> None:
    root = kitchen.root
    for name in ("", *_FOLDERS, f"usr/lib/{kitchen.arch.gnu_triplet}"):
        (root / name).mkdir()
        (root / name).chmod(0o755)
    for path, (_, source) in files.items():
        shutil.copyfile(source, root / path)
        (root / path).chmod(0o755)
    _shorten(root / LOADFILE, root / SHORT_LOADFILE)
    for link, target in {**_LINKS, **{f"usr/bin/{applet}": "busybox" for applet in APPLETS}}.items():
        (root / link).symlink_to(target)
    loader = _INTERPRETERS[kitchen.arch.name]
    (root / loader).symlink_to(f"/usr/lib/{kitchen.arch.gnu_triplet}/{Path(loader).name}")


def _shorten(loadfile: Path, short: Path) -> None:
    """Cut the loadfile to its first lines; beside it the one without filler files."""
    with loadfile.open("rb") as stream:
        short.write_bytes(b"".join(without_fillers(stream)))
        stream.seek(0)
        kept = b"".join(line for _, line in zip(range(LINES), stream, strict=False))
    loadfile.write_bytes(kept)
    for path in (loadfile, short):
        path.chmod(0o644)


def _compile_agent(kitchen: Kitchen, agent_sources: Path) -> None:
    compile_sources(
        kitchen,
        agent_sources,
        [p for p in _agent_files(agent_sources) if p.suffix == ".c"],
        kitchen.root / "init",
        CFLAGS,
    )
    lens = _lens_files(agent_sources)
    if lens:
        compile_sources(kitchen, agent_sources, lens, kitchen.root / LENS, LENS_FLAGS)


def compile_sources(
    kitchen: Kitchen,
    folder: Path,
    sources: Sequence[Path],
    target: Path,
    flags: Sequence[str],
    *,
    compiler: str | None = None,
) -> None:
    """Compile C files of ``folder`` in the sandbox, for the guest's architecture unless ``compiler`` says otherwise."""
    name = target.name
    out = kitchen.work / f"compiled-{name}"
    out.mkdir()
    inside = [str(p.relative_to(folder)) for p in sources]
    argv = kitchen.tools.argv(
        [compiler or f"{kitchen.arch.cross_compile}gcc", *flags, "-o", f"/kpci/out/{name}", *inside],
        mounts=[(folder, "/kpci/src")],
        write_mounts=[(out, "/kpci/out")],
        cwd="/kpci/src",
    )
    done = run(argv, timeout=TOOL_TIMEOUT)
    if not done.ok:
        raise InfrastructureError(f"the guest's {name} does not compile: {done.explain()}", log=done.output)
    shutil.copyfile(out / name, target)
    target.chmod(0o755)
