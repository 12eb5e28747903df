# SPDX-License-Identifier: GPL-2.0-or-later
"""sparse, of the tool root's suite, in a directory of its own.

It is no part of the tool root: that is what every kernel's key rests on, and sparse takes no part in building one. It needs
nothing but libc, and is fetched when it is first asked for.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from kpatch_ci.debian.apt import AptRoot, Archives, extract, suites_of
from kpatch_ci.debian.toolroot import ToolRoot
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.process import run
from kpatch_ci.store.atomic import write_text
from kpatch_ci.store.cache import locked

INSIDE = "/sparse"
"""Where it is in the sandbox."""
PROBE_TIMEOUT = 30.0


@dataclass(frozen=True, slots=True)
class Sparse:
    """An unpacked sparse. ``fingerprint`` is its version and checksum."""

    path: Path
    fingerprint: str

    @property
    def mount(self) -> tuple[Path, str]:
        """Where it is, and where it is seen."""
        return self.path / "usr", INSIDE

    @property
    def program(self) -> str:
        """What make is to run."""
        return f"{INSIDE}/bin/sparse"


def find_sparse(cache: Path, suite: str) -> Sparse | None:
    """It, when it is there and whole."""
    place = cache / "tools" / f"{suite}-sparse"
    try:
        fields = json.loads((place / "package.json").read_text())
        return Sparse(place, f"{fields['version']} {fields['sha256']}")
    except (OSError, ValueError, KeyError, TypeError):
        return None


def make_sparse(cache: Path, tools: ToolRoot, archives: Archives) -> Sparse:
    """Fetched when it is not there, and tried in the tool root. Raises InfrastructureError."""
    place = cache / "tools" / f"{tools.suite}-sparse"
    with locked(place):
        found = find_sparse(cache, tools.suite)
        if found:
            return found
        shutil.rmtree(place, ignore_errors=True)
        apt = AptRoot(
            place.with_name(f"{place.name}.apt"), arch="amd64", suites=suites_of(tools.suite), archives=archives
        )
        apt.forget()
        try:
            apt.update()
            package = apt.download_only("sparse")
            extract([package], place)
        finally:
            apt.forget()
        sparse = Sparse(place, "")
        done = run(tools.argv([sparse.program, "--version"], mounts=[sparse.mount]), timeout=PROBE_TIMEOUT)
        if not done.ok:
            raise InfrastructureError(f"sparse {package.version} does not run in the tool root", log=done.output)
        write_text(place / "package.json", json.dumps({"version": package.version, "sha256": package.sha256}))
    made = find_sparse(cache, tools.suite)
    if made is None:
        raise InfrastructureError(f"{place} vanished while it was made")
    return made
