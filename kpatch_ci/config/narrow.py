# SPDX-License-Identifier: GPL-2.0-or-later
"""What the command line leaves of a pipeline: fewer seeds, machines, workloads."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from kpatch_ci.config.entries import choices
from kpatch_ci.config.schema import Seeds
from kpatch_ci.model.errors import UserError
from kpatch_ci.model.machine import Machine
from kpatch_ci.model.workload import Seed
from kpatch_ci.store.yamlmodel import read


def profiles_of(path: Path) -> tuple[str, ...]:
    """Names of a file's profiles; none where it cannot be read, which load_config then says better."""
    try:
        data, _ = read(path)
    except UserError:
        return ()
    profiles = data.get("profiles") if isinstance(data, dict) else None
    return tuple(str(name) for name in profiles) if isinstance(profiles, dict) else ()


def first_seeds(shape: Seeds, wanted: int | None) -> tuple[Seed, ...]:
    """boots x runs seeds, counted from 1; or ``wanted`` boots of one run, whatever the shape. Raises UserError."""
    if wanted is None:
        return tuple(Seed(boot, run) for boot in range(1, shape.boots + 1) for run in range(1, shape.runs + 1))
    if wanted < 1:
        raise UserError(f"{wanted} seeds measure nothing", where="--seeds", expected="a whole number from 1 on")
    return tuple(Seed(boot, 1) for boot in range(1, wanted + 1))


def narrow(option: str, all_names: Collection[str], chosen: Collection[str]) -> tuple[str, ...]:
    """The chosen names in the file's order; all where none is chosen. Raises UserError."""
    known = list(all_names)
    for name in chosen:
        if name not in known:
            raise UserError(f"no {option} '{name}'", where=f"--{option}", expected=choices(name, known))
    return tuple(n for n in known if n in chosen) if chosen else tuple(all_names)


def narrow_machines(machines: list[Machine], arches: Collection[str]) -> tuple[Machine, ...]:
    """The machines of the chosen architectures; all where none is chosen. Raises UserError."""
    names = narrow("arch", [m.arch for m in machines], arches)
    return tuple(m for m in machines if m.arch in names)
