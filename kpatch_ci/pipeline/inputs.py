# SPDX-License-Identifier: GPL-2.0-or-later
"""Everything that an item's figures and verdicts depend on, as one digest, known before anything is built."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import kpatch_ci
from kpatch_ci.guest.files import machine_slice
from kpatch_ci.model.digest import digest, file_digest
from kpatch_ci.model.series import Series
from kpatch_ci.pipeline.fingerprint import series_digests
from kpatch_ci.pipeline.session import Session

_IGNORED = ("__pycache__",)


def inputs_digest(session: Session, series: Sequence[Series]) -> str:
    """Of tree, series, machines, kconfig, workloads, seeds, statistics, tools, the guest's sources and our own code.

    Two nights with one digest have the same figures in deterministic mode; limits of time are no part of it.
    """
    config = session.config
    return digest(
        {
            "tree": session.tree.tree_id,
            "series": series_digests(series),
            "folders": _files(config.patches, [entry.name for entry in config.series]),
            "entries": [dataclasses.asdict(entry) for entry in config.series],
            "kconfig": {m.arch: [file_digest(p) for p in config.fragments(m.arch)] for m in config.machines},
            "machines": [[machine_slice(m), str(m.accel)] for m in config.machines],
            "guest": _files(config.root / "qemu", ["."]),
            "workloads": [_plain(plan) for plan in config.workloads],
            "seeds": [_plain(seed) for seed in config.seeds],
            "statistics": _plain(config.thresholds),
            "fuzz": config.fuzz,
            "tools": session.tools.fingerprint,
            "ours": our_code(),
        }
    )


@cache
def our_code() -> str:
    """Of this program's own files: another way to count is another figure."""
    return digest(_files(Path(kpatch_ci.__file__).parent, ["."]))


def _plain(value: Any) -> Any:
    return dataclasses.asdict(value)


def _files(root: Path, names: Sequence[str]) -> dict[str, str]:
    """Digest of every file below each of ``names`` in ``root``, by its path from there."""
    return {str(p.relative_to(root)): file_digest(p) for name in names for p in _below(root / name)}


def _below(place: Path) -> Iterator[Path]:
    for path in sorted(place.rglob("*")):
        if path.is_file() and not set(path.parts) & set(_IGNORED):
            yield path
