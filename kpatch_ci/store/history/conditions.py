# SPDX-License-Identifier: GPL-2.0-or-later
"""What each figure of a run rests on, by the names that changes are attributed to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from kpatch_ci.model.history import Condition
from kpatch_ci.store.history.query import chunks
from kpatch_ci.store.history.tables import builds, fingerprints

ALL_CASES = "all"
COMPILERS = {"arm64": "gcc_arm64"}
"""Architecture -> key of its compiler in a fingerprint, where it is not ``gcc``."""

Prints = Mapping[tuple[str, str], str]
Build = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Conditions:
    """Fingerprints by run, builds by run and number of the architecture."""

    prints: Mapping[int, Prints]
    builds: Mapping[tuple[int, int], Mapping[str, Build]]

    def of(self, row: Mapping[str, Any], arm: str) -> dict[str, str]:
        """Of one arm of a comparison's row; what is not known is left out."""
        prints = self.prints[row["run"]]
        arms = self.builds[row["run"], row["arch"]]
        found = {**_shared(prints, row), **_built(arms, arm)}
        if arm == "patched":
            found[Condition.SERIES] = prints.get(("", f"series.{row['series_name']}"), "")
            found[Condition.PATCHED_TREE] = arms.get("patched", {}).get("tree_id", "")
        return {str(name): value for name, value in found.items() if value}


def _shared(prints: Prints, row: Mapping[str, Any]) -> dict[str, str]:
    arch = row["arch_name"]

    def both(*keys: str, of: str = "") -> str:
        return " ".join(filter(None, (prints.get((of, key), "") for key in keys)))

    return {
        Condition.COMPILER: both(COMPILERS.get(arch, "gcc"), "binutils"),
        Condition.QEMU: both("qemu"),
        Condition.QEMU_ARGV: both("qemu_argv", of=arch),
        Condition.GUEST: both("guest_image", of=arch),
        Condition.MACHINE: row["machine"],
        Condition.MACHINE_FILE: both("machine_digest", of=arch),
        Condition.WORKLOAD: _workload(prints, row["workload"], row["case"]),
        Condition.TOOLS: both("tools"),
        Condition.OURS: both("kpatch_ci"),
        Condition.HOST: both("host.cpu", "host.kernel"),
    }


def _workload(prints: Prints, workload: str, case: str) -> str:
    start = f"workloads.{workload}."
    if case != ALL_CASES:
        return prints.get(("", start + case), "")
    return " ".join(value for (_, key), value in sorted(prints.items()) if key.startswith(start))


def _built(arms: Mapping[str, Build], arm: str) -> dict[str, str]:
    build = arms.get(arm, {})
    return {
        Condition.KERNEL: arms.get("baseline", {}).get("tree_id", ""),
        Condition.CONFIG: build.get("config_digest", ""),
        Condition.IMAGE: build.get("image_digest", ""),
    }


def read_conditions(connection: Connection, keys: Sequence[int]) -> Conditions:
    """Those of the runs with these keys."""
    prints: dict[int, dict[tuple[str, str], str]] = defaultdict(dict)
    built: dict[tuple[int, int], dict[str, Build]] = defaultdict(dict)
    f = fingerprints.c
    for some in chunks(keys):
        for run, arch, key, value in connection.execute(select(f.run, f.arch, f.key, f.value).where(f.run.in_(some))):
            prints[run][arch, key] = value
        for row in connection.execute(select(builds).where(builds.c.run.in_(some))).mappings():
            built[row["run"], row["arch"]][row["arm"]] = dict(row)
    return Conditions(prints, built)
