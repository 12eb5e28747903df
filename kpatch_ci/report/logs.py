# SPDX-License-Identifier: GPL-2.0-or-later
"""Where each step's log goes below a run's output directory. Names only: write.py copies."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from kpatch_ci.model.result import ArchResult, ArmResult, RunResult

LOG_DIRECTORY = "logs"


def log_names(result: RunResult, output: Path | None = None) -> dict[Path, str]:
    """Every log of ``result`` -> its path relative to ``output``. A log that lies there already keeps its place."""
    wished: dict[Path, str] = {}
    for source, name in _wished(result):
        wished.setdefault(source, name)
    names = {source: inside for source in wished if (inside := _inside(source, output))}
    taken = set(names.values())
    for source, name in wished.items():
        if source not in names:
            names[source] = _free(name, taken)
            taken.add(names[source])
    return names


def _inside(source: Path, output: Path | None) -> str:
    """``source`` relative to ``output``; empty where it lies elsewhere."""
    if output is None or not source.absolute().is_relative_to(output.absolute()):
        return ""
    return source.absolute().relative_to(output.absolute()).as_posix()


def _wished(result: RunResult) -> Iterator[tuple[Path, str]]:
    for series in result.series:
        for arch in series.arches:
            yield from _arch_logs(series.name, arch)


def _arch_logs(series: str, arch: ArchResult) -> Iterator[tuple[Path, str]]:
    if arch.baseline:
        yield from _arm_logs(f"{LOG_DIRECTORY}/{_safe(arch.arch)}/baseline", arch.baseline)
    if arch.patched:
        yield from _arm_logs(f"{LOG_DIRECTORY}/{_safe(arch.arch)}/{_safe(series)}", arch.patched)
    for patch in arch.each.patches if arch.each else ():
        if patch.log:
            yield patch.log, f"{LOG_DIRECTORY}/{_safe(arch.arch)}/{_safe(series)}/each-{patch.number}.log"


def _arm_logs(place: str, arm: ArmResult) -> Iterator[tuple[Path, str]]:
    if arm.build.log:
        yield arm.build.log, f"{place}/build.log"
    for boot in arm.boots:
        if boot.console:
            yield boot.console, f"{place}/console-{boot.boot_seed}.log"


def _free(wished: str, taken: set[str]) -> str:
    stem, count, name = wished.removesuffix(".log"), 1, wished
    while name in taken:
        count += 1
        name = f"{stem}-{count}.log"
    return name


def _safe(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._+-]", "_", name).lstrip(".") or "_"
