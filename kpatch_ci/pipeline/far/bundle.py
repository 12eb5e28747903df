# SPDX-License-Identifier: GPL-2.0-or-later
"""Our code as it travels: this package's source and the pure-Python libraries that a worker imports, named by their digest.

So what runs at the other end is what runs here, whatever is installed there.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import zipfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from kpatch_ci.model.errors import InfrastructureError

MODULES = ("kpatch_ci", "attr", "attrs", "cattrs", "fdt", "git", "gitdb", "qemu.qmp", "smmap", "typing_extensions")
"""Packages and modules that importing the worker brings in, beside Python's own."""

TESTS = ("test", "tests")
"""Folders of a library that nothing imports."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """A zip file. ``digest`` is of the names and contents in it, as ``far.start`` computes it at the other end."""

    digest: str
    data: bytes


@lru_cache(maxsize=1)
def bundle() -> Bundle:
    """The code of this process. Raises InfrastructureError where a library is not there as source."""
    files = {name: path.read_bytes() for module in MODULES for name, path in _sources(module).items()}
    state = hashlib.sha256()
    for name in sorted(files):
        state.update(f"{name}\0{len(files[name])}\0".encode())
        state.update(files[name])
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(files):
            archive.writestr(zipfile.ZipInfo(name), files[name], zipfile.ZIP_DEFLATED, 9)
    return Bundle(state.hexdigest(), stream.getvalue())


def _sources(module: str) -> dict[str, Path]:
    """Name in the bundle -> file, of a package's Python files or a single module's."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise InfrastructureError(f"the library {module} is not installed", hint="python -m pip install .")
    origin = Path(spec.origin)
    base = module.replace(".", "/")
    if spec.submodule_search_locations is None:
        return {f"{base}.py": origin}
    root = origin.parent
    names = {path.relative_to(root): path for path in sorted(root.rglob("*.py"))}
    return {f"{base}/{name.as_posix()}": path for name, path in names.items() if name.parts[0] not in TESTS}
