# SPDX-License-Identifier: GPL-2.0-or-later
"""Modules of ours, built against each arm's kernel."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from kpatch_ci.kernel.outputs import OddOutput, plain_file
from kpatch_ci.model.digest import file_digest
from kpatch_ci.model.errors import InfrastructureError


@dataclass(frozen=True, slots=True)
class External:
    """A folder with a Kbuild file. ``files``: name and digest of each of its sources, sorted."""

    folder: Path
    files: tuple[tuple[str, str], ...]

    @property
    def name(self) -> str:
        """Its folder's."""
        return self.folder.name


def read_external(folder: Path) -> External:
    """The module whose sources are in ``folder``. Raises InfrastructureError."""
    wanted = [p for p in sorted(folder.glob("*")) if p.name == "Kbuild" or p.suffix in (".c", ".h")]
    if not any(p.name == "Kbuild" for p in wanted):
        raise InfrastructureError(f"{folder} has no Kbuild file: this copy of the project is damaged")
    return External(folder, tuple((p.name, file_digest(p)) for p in wanted))


def _all_of(out: Path) -> Path:
    """Beside an output directory: what a patch's build has left in there cannot lead our sources elsewhere."""
    return out.with_name(f"{out.name}.modules")


def place_external(module: External, out: Path) -> Path:
    """Lay its sources beside a build's output, without what an earlier build left there, and return where."""
    place = _all_of(out) / module.name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    for name, _ in module.files:
        shutil.copyfile(module.folder / name, place / name)
    return place


def copy_external(module: External, out: Path, place: Path) -> list[str]:
    """Copy what was built of it, and return the names. (Its modules.order has another form in every tree.)

    Raises OddOutput where that is no regular file, or nothing.
    """
    built = sorted(path.name for path in (_all_of(out) / module.name).glob("*.ko"))
    if not built:
        raise OddOutput(f"the build left no module of {module.name}")
    place.mkdir(exist_ok=True)
    for name in built:
        shutil.copyfile(plain_file(_all_of(out) / module.name, name), place / name)
    return built


def drop_external(out: Path) -> None:
    """Remove what ``place_external`` laid out: a module is made again in seconds."""
    shutil.rmtree(_all_of(out), ignore_errors=True)
