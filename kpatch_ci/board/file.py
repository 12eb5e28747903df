# SPDX-License-Identifier: GPL-2.0-or-later
"""Machine files of kind ``board``, checked whole; and any machine file, whatever its kind."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import pydantic

from kpatch_ci.guest.cpulist import CAPACITY_ARCHES, FULL_CAPACITY
from kpatch_ci.guest.machine import Cpus, KernelArgs, Word, load_machine
from kpatch_ci.model.arch import ARCHES
from kpatch_ci.model.board import Board, Login, Quiet, Timeouts
from kpatch_ci.model.errors import UserError, UserErrors
from kpatch_ci.model.machine import Accel, Cluster, Machine
from kpatch_ci.store import yamlmodel
from kpatch_ci.store.yamlmodel import Lines, Strict

KIND = "board"
Host = Annotated[str, pydantic.Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
Jump = Annotated[str, pydantic.Field(pattern=r"^([A-Za-z0-9_][\w.-]*@)?[A-Za-z0-9][\w.-]*(:\d+)?$")]
Command = Annotated[str, pydantic.Field(min_length=1)]
Seconds = Annotated[float, pydantic.Field(gt=0, le=3600, strict=False)]


class _Cluster(Strict):
    name: Word
    cpus: Cpus
    capacity: Annotated[int, pydantic.Field(ge=1, le=FULL_CAPACITY)] | None = None


class _Entry(Strict):
    boot_entry: Command


class _Power(Strict):
    cycle: Command


class _Quiet(Strict):
    governor: Word | None = None
    boost: bool | None = None
    smt: bool | None = None
    max_celsius: Annotated[float, pydantic.Field(gt=0, lt=200, strict=False)] | None = None
    cool_seconds: Seconds = 300.0


class _Timeouts(Strict):
    boot: Seconds = 120.0
    silence: Seconds = 60.0
    back: Seconds = 300.0
    command: Seconds = 30.0


class _BoardFile(Strict):
    kind: Literal["board"]
    name: Word
    description: str
    arch: str
    address: Host
    user: Annotated[str, pydantic.Field(pattern=r"^[A-Za-z_][\w-]*$")] = "root"
    port: Annotated[int, pydantic.Field(ge=1, le=65535)] = 22
    key: str | None = None
    known_hosts: str | None = None
    jump: Jump | None = None
    memory_mib: Annotated[int, pydantic.Field(ge=64)]
    clusters: Annotated[tuple[_Cluster, ...], pydantic.Field(min_length=1)]
    clocksource: Word | None = None
    install: Literal["kexec"] | _Entry = "kexec"
    console: Command | None = None
    power: _Power | None = None
    folder: Annotated[str, pydantic.Field(pattern=r"^/[\w./-]+$")] = "/var/tmp/kpatch-ci"  # noqa: S108 (the board's, and only root writes there)
    kernel_args: KernelArgs = ()
    kconfig: tuple[Word, ...] = ("board",)
    quiet: _Quiet = _Quiet()
    timeouts: _Timeouts = _Timeouts()


def load_any(path: Path, accel: Accel | None = None) -> Machine:
    """The machine of a file of either kind. Raises UserErrors with every error and its line."""
    data, lines = yamlmodel.read(path)
    if not isinstance(data, dict) or "kind" not in data:
        return load_machine(path, accel)
    if data["kind"] != KIND:
        raise UserErrors([UserError(f"kind: '{data['kind']}'", where=lines.where(("kind",)), expected=KIND)])
    return _board(yamlmodel.validate(data, _BoardFile, lines), path, lines, accel)


def _board(found: _BoardFile, path: Path, lines: Lines, accel: Accel | None) -> Machine:
    errors = [*_name_errors(found, path, lines, accel), *_cluster_errors(found, lines), *_file_errors(found, lines)]
    if errors:
        raise UserErrors(errors)
    quiet, times = found.quiet, found.timeouts
    board = Board(
        login=Login(found.address, found.user, found.port, _file(found.key), _file(found.known_hosts), found.jump),
        boot_entry=found.install.boot_entry if isinstance(found.install, _Entry) else None,
        console=found.console,
        power_cycle=found.power.cycle if found.power else None,
        folder=found.folder,
        kconfig=found.kconfig,
        clocksource=found.clocksource,
        quiet=Quiet(quiet.governor, quiet.boost, quiet.smt, quiet.max_celsius, quiet.cool_seconds),
        timeouts=Timeouts(times.boot, times.silence, times.back, times.command),
    )
    return Machine(
        name=found.name,
        description=found.description.strip(),
        arch=found.arch,
        qemu_machine="",
        cpu="",
        memory_mib=found.memory_mib,
        clusters=tuple(Cluster(c.name, tuple(sorted(c.cpus)), c.capacity) for c in found.clusters),
        icount_shift=0,
        kernel_args=found.kernel_args,
        accel=Accel.HARDWARE,
        board=board,
    )


def _file(name: str | None) -> str | None:
    return str(Path(name).expanduser()) if name else None


def _name_errors(found: _BoardFile, path: Path, lines: Lines, accel: Accel | None) -> list[UserError]:
    errors = []
    if found.name != path.stem:
        errors.append(
            UserError(f"name: '{found.name}' in {path.name}", where=lines.where(("name",)), expected=path.stem)
        )
    if found.arch not in ARCHES:
        expected = f"one of {', '.join(ARCHES)}"
        errors.append(UserError(f"arch: '{found.arch}'", where=lines.where(("arch",)), expected=expected))
    if isinstance(found.install, _Entry) and found.arch == "x86_64":
        what = "install: x86_64's image is an ELF file (vmlinux), and boot loaders start bzImage"
        errors.append(UserError(what, where=lines.where(("install",)), expected="kexec"))
    if accel is not None:
        what = f"{found.name} is a board, which has no accelerator to choose"
        errors.append(UserError(what, where="--accel", expected="leave it away, or --arch to leave the board out"))
    return errors


def _cluster_errors(found: _BoardFile, lines: Lines) -> list[UserError]:
    """Each CPU from 0 up stands in exactly one cluster; capacities for all or none, where the architecture has them."""
    where = lines.where(("clusters",))
    errors = []
    cpus = sorted(cpu for cluster in found.clusters for cpu in cluster.cpus)
    if cpus != list(range(len(cpus))):
        errors.append(
            UserError("clusters: CPUs are missing or stand twice", where=where, expected="each from 0 up once")
        )
    capacities = [c.capacity for c in found.clusters if c.capacity is not None]
    if capacities and found.arch not in CAPACITY_ARCHES:
        errors.append(UserError(f"{found.arch} has no CPU capacities", where=where, expected="leave the key away"))
    elif capacities and (len(capacities) < len(found.clusters) or max(capacities) != FULL_CAPACITY):
        expected = f"one for each cluster, {FULL_CAPACITY} for the fastest"
        errors.append(UserError("clusters: capacities are not whole", where=where, expected=expected))
    return errors


def _file_errors(found: _BoardFile, lines: Lines) -> list[UserError]:
    given: Sequence[tuple[str, str | None]] = (("key", found.key), ("known_hosts", found.known_hosts))
    return [
        UserError(f"{key}: {value} is not there", where=lines.where((key,)), expected="a file that can be read")
        for key, value in given
        if value and not Path(value).expanduser().is_file()
    ]
