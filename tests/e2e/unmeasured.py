# SPDX-License-Identifier: GPL-2.0-or-later
"""A cache in which a run's kernels and guest images are, and nothing that was booted or measured."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Any

from kpatch_ci.store.cache import cache_root
from tests.e2e.conftest import arches

LINKED = ("tools", "trees")
"""Read, never changed, by a run that builds nothing."""
TAKEN = ("guest", "store/guest-files", "store/guest-image")


def unmeasured_cache(result: Any, place: Path, arms: Collection[str] = ("baseline", "patched")) -> Path:
    """Make one at ``place`` for the kernels of a run's result (of some ``arms`` of it), from the cache that made them."""
    for name in LINKED:
        (place / name).mkdir(parents=True)
        for one in (cache_root() / name).iterdir():
            if one.suffix not in (".apt", ".deb"):  # somebody's half-made ones, which a sweep would take for ours
                (place / name / one.name).symlink_to(one)
    for name in TAKEN:
        _take(name, place)
    for part in arches(result).values():
        for arm in arms:
            key = part["build"][arm]["key"]
            _take(f"store/build/{key[:2]}/{key}", place)
    return place


def _take(name: str, place: Path) -> None:
    shutil.copytree(cache_root() / name, place / name, copy_function=_link, dirs_exist_ok=True, symlinks=True)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another disk
        shutil.copy2(source, target)
