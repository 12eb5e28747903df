# SPDX-License-Identifier: GPL-2.0-or-later
"""Content-addressed artifacts: a directory of files per key, with a manifest that says what each must be.

An entry is whole or absent: it is filled beside its place and renamed into it, manifest last. A damaged entry is
dropped, said aloud, and counts as a miss.
"""

from __future__ import annotations

import json
import logging
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kpatch_ci.model.digest import digest, file_digest
from kpatch_ci.store.atomic import disk_errors, write_text
from kpatch_ci.store.cache import locked

log = logging.getLogger(__name__)
MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class Artifact:
    """One entry: its directory and what its maker said about it."""

    kind: str
    key: str
    path: Path
    meta: Mapping[str, Any]
    digests: Mapping[str, str]
    """File name (below ``path``) -> sha256."""


class ArtifactStore:
    """Artifacts below one directory, as ``<kind>/<key[:2]>/<key>/``. Safe for concurrent processes."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def place(self, kind: str, key: str) -> Path:
        """Where the entry is or would be."""
        return self.root / kind / key[:2] / key

    def get(self, kind: str, key: str, *, verify: bool = True) -> Artifact | None:
        """The entry, or None. ``verify`` hashes its files; without it only their presence and sizes are checked."""
        place = self.place(kind, key)
        try:
            manifest = json.loads((place / MANIFEST).read_text())
            files: dict[str, dict[str, Any]] = manifest["files"]
            if manifest["sum"] != digest([manifest["meta"], files]):
                raise ValueError("its own checksum does not match")
            damaged = _first_damaged(place, files, verify)
            artifact = Artifact(kind, key, place, manifest["meta"], {n: f["sha256"] for n, f in files.items()})
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            damaged = f"{MANIFEST}: {error}"
        if damaged:
            log.warning("cache entry %s/%s is damaged (%s): dropped, it will be made again", kind, key[:12], damaged)
            self.drop(kind, key)
            return None
        return artifact

    def put(self, kind: str, key: str, fill: Callable[[Path], Mapping[str, Any]]) -> Artifact:
        """Make the entry: ``fill`` writes files into the directory that it is given and returns the meta data (JSON).

        When another process made it meanwhile, that one stays. What ``fill`` raises is passed on, with nothing left.
        """
        place = self.place(kind, key)
        with disk_errors(self.root):
            place.parent.mkdir(parents=True, exist_ok=True)
            work = Path(tempfile.mkdtemp(prefix=".new-", dir=place.parent))
            try:
                work.chmod(0o755)
                meta = fill(work)
                files = {
                    str(p.relative_to(work)): {"sha256": file_digest(p), "size": p.stat().st_size}
                    for p in sorted(work.rglob("*"))
                    if p.is_file() and not p.is_symlink()
                }
                whole = {"meta": dict(meta), "files": files, "sum": digest([dict(meta), files])}
                write_text(work / MANIFEST, json.dumps(whole, indent=1, sort_keys=True))
                with locked(place):
                    if not (place / MANIFEST).exists():
                        shutil.rmtree(place, ignore_errors=True)
                        work.replace(place)
            finally:
                shutil.rmtree(work, ignore_errors=True)
        found = self.get(kind, key, verify=False)
        assert found is not None, f"{place} vanished while it was written"  # noqa: S101
        return found

    def drop(self, kind: str, key: str) -> None:
        """Remove an entry; the manifest goes first, so that a half-removed one is a miss."""
        place = self.place(kind, key)
        (place / MANIFEST).unlink(missing_ok=True)
        shutil.rmtree(place, ignore_errors=True)


def _first_damaged(place: Path, files: Mapping[str, Mapping[str, Any]], verify: bool) -> str | None:
    for name, wanted in files.items():
        path = place / name
        if not path.is_file():
            return f"{name} is missing"
        if path.stat().st_size != wanted["size"]:
            return f"{name} has {path.stat().st_size} bytes, not {wanted['size']}"
        if verify and file_digest(path) != wanted["sha256"]:
            return f"{name} has another checksum"
    return None
