# SPDX-License-Identifier: GPL-2.0-or-later
"""Machine files: what is in qemu/, checked whole."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic

from kpatch_ci.guest.cpulist import CAPACITY_ARCHES, FULL_CAPACITY, parse_cpus
from kpatch_ci.model.arch import ARCHES
from kpatch_ci.model.errors import UserError, UserErrors
from kpatch_ci.model.machine import Accel, Cluster, Machine, TcgThreads
from kpatch_ci.store import yamlmodel
from kpatch_ci.store.yamlmodel import Lines, Strict

SUFFIX = ".yaml"


def _cpus(value: Any) -> Any:
    return parse_cpus(value) if isinstance(value, str) else value


Cpus = Annotated[tuple[int, ...], pydantic.BeforeValidator(_cpus), pydantic.Field(min_length=1)]
Word = Annotated[str, pydantic.Field(pattern=r"^[A-Za-z0-9._+-]+$")]


MHZ = 1000
"""A MHz in kHz."""
MAX_SWITCH_COST_NS = 1_000_000


def _rising(value: tuple[int, ...]) -> tuple[int, ...]:
    if list(value) != sorted(set(value)):
        raise ValueError("frequencies rise, each once")
    if value[-1] % MHZ:
        raise ValueError("the highest frequency is a whole number of MHz: Linux counts capacities in those")
    return value


Frequencies = Annotated[
    tuple[Annotated[int, pydantic.Field(ge=MHZ, le=10_000_000)], ...],
    pydantic.Field(min_length=1, max_length=32),
    pydantic.AfterValidator(_rising),
]


class _ClusterFile(Strict):
    name: Word
    cpus: Cpus
    capacity: Annotated[int, pydantic.Field(ge=1, le=FULL_CAPACITY)] | None = None
    frequencies: Frequencies | None = None
    """In kHz; for all clusters or for none."""


KernelArgs = tuple[Annotated[str, pydantic.Field(pattern=r"^\S+$")], ...]


class _OnlyFile(Strict):
    """What holds with one accelerator only: another CPU model, further kernel arguments (they go first) and properties."""

    cpu: Annotated[str, pydantic.Field(min_length=1)] | None = None
    kernel_args: KernelArgs = ()
    properties: dict[str, str] = pydantic.Field(default_factory=dict)


class _OnlyTcgFile(_OnlyFile):
    threads: Literal["single", "multi"] = "single"
    """One for all CPUs, or one each: docs/accelerators.md says what speaks against the latter."""


class _OnlyFiles(Strict):
    deterministic: _OnlyFile = _OnlyFile()
    tcg: _OnlyTcgFile = _OnlyTcgFile()
    kvm: _OnlyFile = _OnlyFile()

    def of(self, accel: Accel) -> _OnlyFile:
        """The part for an accelerator."""
        return {Accel.DETERMINISTIC: self.deterministic, Accel.TCG: self.tcg, Accel.KVM: self.kvm}[accel]


class _MachineFile(Strict):
    name: Word
    description: str
    arch: str
    qemu_machine: Annotated[str, pydantic.Field(min_length=1)]
    cpu: Annotated[str, pydantic.Field(min_length=1)]
    memory_mib: Annotated[int, pydantic.Field(ge=64, le=65536)]
    clusters: Annotated[tuple[_ClusterFile, ...], pydantic.Field(min_length=1)]
    icount_shift: Annotated[int, pydantic.Field(ge=0, le=10)]
    kernel_args: KernelArgs = ()
    properties: dict[str, str] = pydantic.Field(default_factory=dict)
    accel: Literal["deterministic", "tcg", "kvm"] = "deterministic"
    only: _OnlyFiles = _OnlyFiles()
    policies: Literal["shared", "per-cpu"] = "shared"
    transition_latency_us: Annotated[int, pydantic.Field(ge=1, le=100_000)] = 10
    capacity_slows: bool = False
    context_switch_cost_ns: Annotated[int, pydantic.Field(ge=1, le=MAX_SWITCH_COST_NS)] | None = None

    @pydantic.field_validator("arch")
    @classmethod
    def _known(cls, value: str) -> str:
        if value not in ARCHES:
            raise ValueError(f"one of {', '.join(ARCHES)}")
        return value


def load_machine(path: Path, accel: Accel | None = None) -> Machine:
    """The machine that a file describes, with its own accelerator or with ``accel``.

    Raises UserErrors with every error and its line.
    """
    data, lines = yamlmodel.read(path)
    found = yamlmodel.validate(data, _MachineFile, lines)
    checks = (_cpu_errors, _capacity_errors, _frequency_errors, *((_accel_errors,) if accel is None else ()))
    errors = [*_name_errors(found, path, lines), *(error for check in checks for error in check(found, lines))]
    if errors:
        raise UserErrors(errors)
    accel = accel or Accel(found.accel)
    only = found.only.of(accel)
    return Machine(
        name=found.name,
        description=found.description.strip(),
        arch=found.arch,
        qemu_machine=found.qemu_machine,
        cpu=only.cpu or found.cpu,
        memory_mib=found.memory_mib,
        clusters=tuple(Cluster(c.name, tuple(sorted(c.cpus)), c.capacity, c.frequencies or ()) for c in found.clusters),
        icount_shift=found.icount_shift,
        kernel_args=(*only.kernel_args, *found.kernel_args),
        properties={**found.properties, **only.properties},
        policies=found.policies,
        transition_latency_us=found.transition_latency_us,
        capacity_slows=found.capacity_slows,
        accel=accel,
        tcg_threads=TcgThreads(found.only.tcg.threads) if accel is Accel.TCG else TcgThreads.SINGLE,
        context_switch_cost_ns=found.context_switch_cost_ns,
    )


def machine_files(folder: Path) -> list[str]:
    """Names of the machines in a folder, sorted; what ``load_machine(folder / f"{name}.yaml")`` takes."""
    return sorted(p.stem for p in folder.glob(f"*{SUFFIX}"))


def _name_errors(found: _MachineFile, path: Path, lines: Lines) -> list[UserError]:
    if found.name == path.stem:
        return []
    return [UserError(f"name: '{found.name}' in {path.name}", where=lines.where(("name",)), expected=path.stem)]


def _accel_errors(found: _MachineFile, lines: Lines) -> list[UserError]:
    """Emulated frequencies are slow-downs counted in virtual time: nobody has measured what they come to in real time."""
    if Accel(found.accel) is Accel.DETERMINISTIC or not any(c.frequencies for c in found.clusters):
        return []
    what = f"{found.name} has frequencies, and accel is {found.accel}"
    return [UserError(what, where=lines.where(("accel",)), expected="deterministic: they are emulated in virtual time")]


def _cpu_errors(found: _MachineFile, lines: Lines) -> list[UserError]:
    """Each CPU from 0 up stands in exactly one cluster."""
    errors: list[UserError] = []
    owner: dict[int, str] = {}
    for index, cluster in enumerate(found.clusters):
        for cpu in cluster.cpus:
            if cpu in owner:
                where = lines.where(("clusters", index, "cpus"))
                errors.append(UserError(f"CPU {cpu} is in '{owner[cpu]}' already", where=where))
            owner.setdefault(cpu, cluster.name)
    missing = sorted(set(range(max(owner) + 1)) - set(owner))
    if missing:
        what = f"clusters: CPU {', '.join(map(str, missing))} is in no cluster"
        errors.append(UserError(what, where=lines.where(("clusters",)), expected=f"all of 0-{max(owner)}"))
    return errors


def _capacity_errors(found: _MachineFile, lines: Lines) -> list[UserError]:
    """Capacities: for all clusters or none, where the architecture has them, and the fastest is 1024."""
    given = [(i, c.capacity) for i, c in enumerate(found.clusters) if c.capacity is not None]
    if not given:
        return []
    if found.arch not in CAPACITY_ARCHES:
        where = lines.where(("clusters", given[0][0], "capacity"))
        return [UserError(f"{found.arch} has no CPU capacities", where=where, expected="leave the key away")]
    errors = [
        UserError(f"cluster '{c.name}' has no capacity, others have", where=lines.where(("clusters", i)))
        for i, c in enumerate(found.clusters)
        if c.capacity is None
    ]
    if max(value for _, value in given) != FULL_CAPACITY:
        where = lines.where(("clusters", given[0][0], "capacity"))
        errors.append(UserError("no cluster has the full capacity", where=where, expected=f"{FULL_CAPACITY} somewhere"))
    return errors


def _frequency_errors(found: _MachineFile, lines: Lines) -> list[UserError]:
    """Frequencies: for all clusters or none, and what depends on them not without them."""
    with_them = [c.name for c in found.clusters if c.frequencies]
    if with_them:
        return [
            UserError(
                f"cluster '{c.name}' has no frequencies, '{with_them[0]}' has", where=lines.where(("clusters", i))
            )
            for i, c in enumerate(found.clusters)
            if not c.frequencies
        ]
    return [
        UserError(f"{key} without frequencies", where=lines.where((key,)), expected="frequencies in each cluster")
        for key in ("policies", "transition_latency_us", "capacity_slows")
        if key in found.model_fields_set
    ]
