# SPDX-License-Identifier: GPL-2.0-or-later
"""Boot consoles for the page: one an arm, read from the run's directory, bounded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kpatch_ci.model.status import Status
from kpatch_ci.report.clean import visible
from kpatch_ci.report.schema import ArmBootDoc, BootDoc, Document

MAX_LINES = 2000
"""The last ones are kept: that is where a panic is."""
MAX_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Console:
    """One boot's console. ``cut``: it had more before."""

    anchor: str
    log: str
    boot_seed: int
    text: str
    lines: int
    cut: bool


def consoles(document: Document, directory: Path | None) -> dict[str, Console]:
    """Log's path in the document -> its console, for the boot of each arm that is shown; without what is not there."""
    found: dict[str, Console] = {}
    for boot in _shown(document):
        if boot.log and boot.log not in found:
            console = _read(boot, directory, f"console-{len(found) + 1}")
            if console:
                found[boot.log] = console
    return found


def shown_boot(arm: ArmBootDoc) -> BootDoc | None:
    """The first boot that did not pass, else the first one."""
    return next((b for b in arm.boots if b.status is not Status.PASSED), arm.boots[0] if arm.boots else None)


def _shown(document: Document) -> Iterator[BootDoc]:
    for series in document.series:
        for arch in series.arches:
            for arm in (arch.boot.baseline, arch.boot.patched):
                boot = shown_boot(arm)
                if boot:
                    yield boot


def _read(boot: BootDoc, directory: Path | None, anchor: str) -> Console | None:
    path = _inside(directory, boot.log)
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - MAX_BYTES))
            data = file.read(MAX_BYTES)
    except OSError:
        return None
    lines = visible(data.decode(errors="replace")).split("\n")
    lines = lines if lines[-1] else lines[:-1]
    kept = lines[-MAX_LINES:]
    cut = size > MAX_BYTES or len(lines) > MAX_LINES
    return Console(anchor, boot.log, boot.boot_seed, "\n".join(kept), len(kept), cut)


def _inside(directory: Path | None, log: str) -> Path | None:
    """The log's file; None where it is none, or lies outside the run's directory: a result.json may come from anywhere."""
    if directory is None or "\0" in log:
        return None
    path = (directory / log).resolve()
    return path if path.is_relative_to(directory.resolve()) and path.is_file() else None
