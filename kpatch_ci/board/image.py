# SPDX-License-Identifier: GPL-2.0-or-later
"""What a board's initramfs has beyond a guest's: an SSH server, the agent that is started over it, and another init.

Made like the guest image: Debian's files, whose versions are asked of the network once.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kpatch_ci.debian.apt import AptRoot, Archives, Package, extract, suites_of
from kpatch_ci.debian.toolroot import ToolRoot
from kpatch_ci.guest.cpio import pack
from kpatch_ci.guest.image import CFLAGS, Kitchen, compile_sources, find_library, needed
from kpatch_ci.model.arch import Arch
from kpatch_ci.model.digest import digest, file_digest
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.process import check_stopping
from kpatch_ci.store.artifacts import Artifact, ArtifactStore
from kpatch_ci.store.atomic import disk_errors, write_text
from kpatch_ci.store.cache import locked

KIND = "board-image"
LAYOUT = 1
"""Raise it when what is done with the packages changes."""
IMAGE, BUSYBOX = "board.cpio", "busybox"
PROGRAMS: Mapping[str, tuple[str, ...]] = {"dropbear-bin": ("usr/sbin/dropbear", "usr/bin/dropbearconvert")}
HELPER = "busybox-static"
"""Also copied to the board for itself."""
SHARED = ("counters", "facts", "frequency", "run", "schedstat", "seed", "util")
"""The guest agent's files that are the same on a board; json.c and job.c are included by ours."""
FLAGS = (*CFLAGS, "-I", "guest", "-Wl,--wrap=kill")
AGENT = "usr/bin/kpci-agent"
_APPLETS = ("timeout", "setsid", "sync", "reboot", "sha256sum", "sed", "ip", "uname", "od")


@dataclass(frozen=True, slots=True)
class BoardImage:
    """The archive that goes behind the guest image, and a static busybox for the board's own system."""

    path: Path
    busybox: Path
    digest: str
    packages: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Sources:
    """Folders of the agents: the guest's, and the board's."""

    guest: Path
    board: Path

    def files(self) -> list[Path]:
        """All that a board's part is made from."""
        mine = [p for p in self.board.iterdir() if p.suffix in (".c", ".h") or p.name == "init"]
        return sorted([p for p in self.guest.iterdir() if p.suffix in (".c", ".h")] + mine)


def _spec(arch: Arch, tools: ToolRoot, sources: Sources) -> str:
    agent = {f"{p.parent.name}/{p.name}": file_digest(p) for p in sources.files()}
    layout = [LAYOUT, PROGRAMS, HELPER, SHARED, FLAGS, AGENT, _APPLETS]
    return digest([KIND, layout, arch.name, suites_of(tools.suite), tools.fingerprint, agent])


def _image(artifact: Artifact) -> BoardImage:
    return BoardImage(
        artifact.path / IMAGE, artifact.path / BUSYBOX, artifact.digests[IMAGE], artifact.meta["packages"]
    )


def make_board_image(
    arch: Arch, cache: Path, store: ArtifactStore, tools: ToolRoot, *, archives: Archives, sources: Sources
) -> BoardImage:
    """The image, made when it is not there. Raises InfrastructureError."""
    spec = _spec(arch, tools, sources)
    index = cache / "guest" / f"board-{arch.name}-{spec[:16]}.json"
    with locked(index, check_stopping), disk_errors(cache):
        found = _find(index, store)
        if found:
            return _image(found)
        with tempfile.TemporaryDirectory(prefix=f".board-{arch.name}-", dir=index.parent) as scratch:
            artifact = _make(Kitchen(arch, tools, Path(scratch)), spec, store, archives, sources)
        write_text(index, json.dumps({"key": artifact.key, "packages": artifact.meta["packages"]}, indent=1))
    return _image(artifact)


def _find(index: Path, store: ArtifactStore) -> Artifact | None:
    try:
        key = json.loads(index.read_text())["key"]
    except (OSError, ValueError, KeyError):
        return None
    return store.get(KIND, key)


def _make(kitchen: Kitchen, spec: str, store: ArtifactStore, archives: Archives, sources: Sources) -> Artifact:
    suites = suites_of(kitchen.tools.suite)
    apt = AptRoot(kitchen.work / "apt", arch=kitchen.arch.debian_arch, suites=suites, archives=archives)
    apt.update()
    named = {HELPER, *PROGRAMS}
    packages = {p.name: p for p in apt.download(sorted(named)) if p.name in named or p.name.startswith(("lib", "zlib"))}
    for package in packages.values():
        extract([package], kitchen.unpacked / package.name)
    files = _files(kitchen, packages)
    used = {name: packages[name] for name in {HELPER, *(origin for origin, _ in files.values())}}
    key = digest([spec, {name: [p.version, p.sha256] for name, p in used.items()}])

    def fill(place: Path) -> Mapping[str, Any]:
        _lay_out(kitchen, files, sources)
        pack(kitchen.tools, kitchen.root, place / IMAGE)
        shutil.copyfile(kitchen.unpacked / HELPER / "usr/bin/busybox", place / BUSYBOX)
        return {"arch": kitchen.arch.name, "packages": {name: p.version for name, p in sorted(used.items())}}

    return store.get(KIND, key) or store.put(KIND, key, fill)


def _files(kitchen: Kitchen, packages: Mapping[str, Package]) -> dict[str, tuple[str, Path]]:
    """Path in the image -> package and file, of the programs and the libraries that they need."""
    files = {path: (name, kitchen.unpacked / name / path) for name, paths in PROGRAMS.items() for path in paths}
    for path, (name, source) in files.items():
        if not source.is_file():
            raise InfrastructureError(f"package {name} {packages[name].version} has no /{path}")
    following = [source for _, source in files.values()]
    while following:
        wanted = [f"usr/lib/{kitchen.arch.gnu_triplet}/{name}" for name in needed(kitchen, following)]
        found = {path: find_library(kitchen, packages, path) for path in wanted if path not in files}
        files.update(found)
        following = [source for _, source in found.values()]
    return files


def _lay_out(kitchen: Kitchen, files: Mapping[str, tuple[str, Path]], sources: Sources) -> None:
    root = kitchen.root
    for name in ("", "usr", "usr/bin", "usr/sbin", "usr/lib", f"usr/lib/{kitchen.arch.gnu_triplet}"):
        (root / name).mkdir()
        (root / name).chmod(0o755)
    for path, (_, source) in files.items():
        shutil.copyfile(source, root / path)
        (root / path).chmod(0o755)
    for applet in _APPLETS:
        (root / "usr/bin" / applet).symlink_to("busybox")
    shutil.copyfile(sources.board / "init", root / "init")
    (root / "init").chmod(0o755)
    _compile_agent(kitchen, sources, root / AGENT)


def _compile_agent(kitchen: Kitchen, sources: Sources, target: Path) -> None:
    folder = kitchen.work / "agent"
    for path in sources.files():
        place = folder / ("board" if path.parent == sources.board else "guest")
        place.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place / path.name)
    files = [folder / "board/agent.c", *(folder / "guest" / f"{name}.c" for name in SHARED)]
    compile_sources(kitchen, folder, files, target, FLAGS)
