# SPDX-License-Identifier: GPL-2.0-or-later
"""What a guest of one build is started with: kernel, initramfs with the build's modules, device tree."""

from __future__ import annotations

import dataclasses
import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kpatch_ci.debian.toolroot import ToolRoot
from kpatch_ci.guest import cpio, cpufreq, qemu, switchcost
from kpatch_ci.guest.dtb import machine_dtb
from kpatch_ci.guest.image import GuestImage
from kpatch_ci.model.build import BuildResult
from kpatch_ci.model.digest import digest, file_digest
from kpatch_ci.model.machine import Accel, Machine
from kpatch_ci.model.workload import JOB_BYTES
from kpatch_ci.store.artifacts import MANIFEST, ArtifactStore

KIND = "guest-files"
STAGE_VERSION = 1
KERNEL = "image"
"""Name of the kernel in a build's artifact."""

_WITHOUT_FREQUENCIES = ("policies", "transition_latency_us", "capacity_slows")
"""What of a machine means nothing unless it scales frequencies."""


def loaded(machine: Machine) -> dict[str, str]:
    """Modules that the agent loads before the snapshot, with their parameters. The order is the build's."""
    found = {"null_blk.ko": "nr_devices=0"}
    if machine.scales_frequency:
        found[f"{cpufreq.MODULE}.ko"] = cpufreq.parameters(machine)
    if machine.context_switch_cost_ns is not None:
        found[f"{switchcost.MODULE}.ko"] = switchcost.parameters(machine)
    return found


@dataclass(frozen=True, slots=True)
class Module:
    """A module that goes into the guest."""

    path: Path
    parameters: str
    digest: str

    @property
    def name(self) -> str:
        """What /proc/modules calls it."""
        return self.path.stem.replace("-", "_")


@dataclass(frozen=True, slots=True)
class GuestFiles:
    """Paths on this host."""

    kernel: Path
    initrd: Path
    dtb: Path | None
    job: Path
    """An empty job."""
    preload: Path

    def mounts(self) -> list[tuple[Path, str]]:
        """Where they are in the sandbox."""
        found = [(self.kernel, qemu.KERNEL), (self.initrd, qemu.INITRD), (self.preload, qemu.PRELOAD)]
        return [*found, (self.dtb, qemu.DTB)] if self.dtb else found


def guest_modules(build: BuildResult, machine: Machine) -> tuple[Module, ...]:
    """The build's modules that a guest on this machine loads, in load order."""
    if build.artifact is None:
        return ()
    folder = build.artifact / "modules"
    try:
        order: Sequence[str] = json.loads((build.artifact / MANIFEST).read_text())["meta"]["modules"]
    except (OSError, ValueError, KeyError):
        order = sorted(p.name for p in folder.glob("*.ko"))
    parameters = loaded(machine)
    wanted = [folder / name for name in order if name in parameters]
    return tuple(Module(path, parameters[path.name], file_digest(path)) for path in wanted)


def machine_slice(machine: Machine) -> dict[str, Any]:
    """What of a machine file a guest is a function of: all but the words for people, and what is off."""
    values = dataclasses.asdict(machine)
    del values["description"]
    if not machine.real_time:
        del values["accel"]
    if machine.accel is not Accel.TCG:
        del values["tcg_threads"]
    if machine.board is None:
        del values["board"]
    if not machine.scales_frequency:
        for key in _WITHOUT_FREQUENCIES:
            del values[key]
        for cluster in values["clusters"]:
            del cluster["frequencies"]
    if machine.context_switch_cost_ns is None:
        del values["context_switch_cost_ns"]
    return values


def files_key(modules: Sequence[Module], image: GuestImage, machine: Machine, tools: ToolRoot) -> str:
    """Digest of what ``make_files`` is a function of."""
    loaded = [[m.name, m.parameters, m.digest] for m in modules]
    return digest([KIND, STAGE_VERSION, loaded, image.digest, machine_slice(machine), tools.fingerprint])


def make_files(
    build: BuildResult, image: GuestImage, machine: Machine, store: ArtifactStore, tools: ToolRoot
) -> GuestFiles:
    """The files that a guest of ``build`` starts with, made when they are not there. Raises InfrastructureError."""
    if build.artifact is None:
        raise ValueError(f"build {build.key} left no artifact: only a passed one can boot")
    modules = guest_modules(build, machine)
    key = files_key(modules, image, machine, tools)

    def fill(place: Path) -> Mapping[str, Any]:
        with tempfile.TemporaryDirectory(dir=place) as scratch:
            work = Path(scratch)
            pack_modules(tools, modules, work)
            cpio.concatenate([image.path, work / "modules.cpio"], place / "initrd")
            tree = machine_dtb(tools, machine, work)
            if tree is not None:
                (place / "dtb").write_bytes(tree)
        (place / "job").write_bytes(bytes(JOB_BYTES))
        return {"modules": [m.name for m in modules], "machine": machine.name}

    found = store.get(KIND, key, verify=False) or store.put(KIND, key, fill)
    dtb = found.path / "dtb"
    return GuestFiles(
        kernel=build.artifact / KERNEL,
        initrd=found.path / "initrd",
        dtb=dtb if dtb.name in found.digests else None,
        job=found.path / "job",
        preload=image.preload,
    )


def pack_modules(tools: ToolRoot, modules: Sequence[Module], work: Path) -> None:
    """``work``/modules.cpio, the second archive of the initramfs: the modules, and the list that the agent loads them by."""
    root = work / "root"
    folder = root / "usr/lib/kpci"
    for made in (root, root / "usr", root / "usr/lib", folder):
        made.mkdir()
        made.chmod(0o755)
    for module in modules:
        shutil.copyfile(module.path, folder / module.path.name)
    lines = [f"/lib/kpci/{m.path.name} {m.parameters}".rstrip() + "\n" for m in modules]
    (folder / "modules").write_text("".join(lines))
    for path in folder.iterdir():
        path.chmod(0o644)
    cpio.pack(tools, root, work / "modules.cpio")
