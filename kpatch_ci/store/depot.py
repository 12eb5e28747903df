# SPDX-License-Identifier: GPL-2.0-or-later
"""A store that machines share: artifacts at a URL that fsspec knows (file, sftp, s3).

Files lie there once, under the sha256 of their bytes; an entry is its manifest, written last: whole or absent. What arrives is
verified. Whoever lacks an artifact fetches it into a store of its own, and works from there: the depot is only ever a carrier.
"""

from __future__ import annotations

import json
import logging
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from kpatch_ci.model.digest import digest, file_digest
from kpatch_ci.model.errors import InfrastructureError, KpatchError, UserError
from kpatch_ci.store.artifacts import MANIFEST, Artifact, ArtifactStore
from kpatch_ci.store.atomic import disk_errors
from kpatch_ci.store.cache import locked
from kpatch_ci.store.history.place import without_passwords

log = logging.getLogger(__name__)

RENAMING, WHOLE = "renaming", "whole"
PROTOCOLS = {"file": RENAMING, "sftp": RENAMING, "s3": WHOLE}
"""How a file gets there at once: written beside and renamed, or because an object is stored whole or not at all."""
EXPECTED = "file:///DIRECTORY, sftp://USER@HOST/DIRECTORY or s3://BUCKET/PREFIX"
SECRETS = ("password", "passwd", "passphrase", "secret", "secret_key", "aws_secret_access_key", "token", "key", "pkey")
"""Options that are not for a file that everybody reads."""
CONNECT_TIMEOUT = 10.0
"""Seconds."""
DEFAULTS: dict[str, dict[str, Any]] = {
    "sftp": {"timeout": CONNECT_TIMEOUT, "banner_timeout": CONNECT_TIMEOUT, "auth_timeout": CONNECT_TIMEOUT},
    "s3": {"config_kwargs": {"connect_timeout": CONNECT_TIMEOUT, "retries": {"max_attempts": 2}}},
}
PROBE = "probe"


@dataclass(frozen=True)
class Depot:
    """``options`` go to fsspec's file system. Methods raise InfrastructureError that names the URL. Safe for concurrent threads."""

    url: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raises UserError."""
        protocol, separator, rest = self.url.partition("://")
        if not separator or protocol not in PROTOCOLS or not rest.strip("/"):
            raise UserError(f"no store at {self.shown}", expected=EXPECTED)
        bad = sorted(set(self.options) & set(SECRETS))
        if bad or without_passwords(self.url) != self.url:
            what = f"store {self.shown}: {', '.join(bad) or 'a password'} is not written down here"
            raise UserError(what, expected="keys of ssh-agent or ~/.ssh; for s3 ~/.aws or AWS_* of the environment")

    @property
    def protocol(self) -> str:
        """Of the URL."""
        return self.url.partition("://")[0]

    @property
    def shown(self) -> str:
        """For people."""
        return without_passwords(self.url)

    def told(self) -> dict[str, Any]:
        """What another machine makes the same depot of."""
        return {"url": self.url, "options": dict(self.options)}

    @cached_property
    def _fs(self) -> Any:
        options = {**DEFAULTS.get(self.protocol, {}), **self.options, "skip_instance_cache": True}
        try:
            import fsspec.core  # noqa: PLC0415 (only where there is a depot)

            if self.protocol == "sftp":
                from kpatch_ci.store.sftp import checked_sftp  # noqa: PLC0415 (paramiko takes long to import)

                return checked_sftp(self.url, options)
            return fsspec.core.url_to_fs(self.url, **options)[0]
        except ImportError as error:
            extra = "s3" if self.protocol == "s3" else "cluster"
            hint = f"pip install 'kpatch-ci[{extra}]'"
            raise InfrastructureError(f"store {self.shown}: {error}", hint=hint) from error

    @cached_property
    def _root(self) -> str:
        return str(self._fs._strip_protocol(self.url)).rstrip("/")

    def _blob(self, sha256: str) -> str:
        return f"{self._root}/blobs/{sha256[:2]}/{sha256}"

    def _manifest(self, kind: str, key: str) -> str:
        return f"{self._root}/{kind}/{key[:2]}/{key}.json"

    def has(self, kind: str, key: str) -> bool:
        """Whether the entry is there."""
        with self._told(f"look for {kind}/{key[:12]}"):
            return bool(self._fs.exists(self._manifest(kind, key)))

    def push(self, artifact: Artifact, *, again: bool = False) -> int:
        """Bring an artifact there; the bytes that were sent. ``again``: also what seems to be there."""
        if not again and self.has(artifact.kind, artifact.key):
            return 0
        sent = 0
        with self._told(f"write {artifact.kind}/{artifact.key[:12]}"):
            for name, sha256 in sorted(artifact.digests.items()):
                path = artifact.path / name
                if again or not self._there(self._blob(sha256), path.stat().st_size):
                    sent += self._put(path, self._blob(sha256))
            return sent + self._put(artifact.path / MANIFEST, self._manifest(artifact.kind, artifact.key))

    def _there(self, name: str, size: int) -> bool:
        try:
            return bool(self._fs.info(name)["size"] == size)
        except FileNotFoundError:
            return False

    def _put(self, source: Path, target: str) -> int:
        if PROTOCOLS[self.protocol] == WHOLE:
            self._fs.put_file(str(source), target)
            return source.stat().st_size
        self._fs.makedirs(target.rsplit("/", 1)[0], exist_ok=True)
        beside = f"{target}.{uuid.uuid4().hex[:8]}.new"
        self._fs.put_file(str(source), beside)
        self._fs.mv(beside, target)
        return source.stat().st_size

    def pull(self, kind: str, key: str, store: ArtifactStore) -> int | None:
        """Fetch an artifact into ``store``; the bytes that came. None: it is not there, or damaged, which is said aloud."""
        with disk_errors(store.root), locked(store.place(kind, key).with_name(f"{key}.fetch")):
            if store.get(kind, key, verify=False):
                return 0
            with self._told(f"read {kind}/{key[:12]}"), tempfile.TemporaryDirectory() as name:
                manifest = self._fetch(self._manifest(kind, key), Path(name) / MANIFEST)
                if manifest is None:
                    return None
                return self._keep(kind, key, manifest.read_bytes(), store)

    def _keep(self, kind: str, key: str, text: bytes, store: ArtifactStore) -> int | None:
        try:
            said = json.loads(text)
            files: dict[str, dict[str, Any]] = said["files"]
            whole = said["sum"] == digest([said["meta"], files]) and all(_inside(name) for name in files)
        except (ValueError, KeyError, TypeError):
            whole = False
        if not whole:
            self._damaged(kind, key, "its manifest")
            return None

        def fill(place: Path) -> Mapping[str, Any]:
            for name, wanted in files.items():
                path = self._fetch(self._blob(wanted["sha256"]), place / name)
                if path is None or file_digest(path) != wanted["sha256"]:
                    raise _DamagedError(name)
            return dict(said["meta"])

        try:
            store.put(kind, key, fill)
        except _DamagedError as error:
            self._damaged(kind, key, str(error))
            return None
        return len(text) + sum(int(f["size"]) for f in files.values())

    def _damaged(self, kind: str, key: str, what: str) -> None:
        log.warning("store %s: %s/%s is damaged (%s)", self.shown, kind, key[:12], what)

    def _fetch(self, name: str, target: Path) -> Path | None:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._fs.get_file(name, str(target))
        except FileNotFoundError:
            return None
        return target

    def write_probe(self) -> str:
        """Leave a small file there, and return its name: whoever shares the depot can read it."""
        name = f"{PROBE}-{uuid.uuid4().hex}"
        with self._told("write"), tempfile.TemporaryDirectory() as place:
            (Path(place) / PROBE).write_text(name)
            self._put(Path(place) / PROBE, f"{self._root}/{name}")
        return name

    def read_probe(self, name: str) -> None:
        """See that the file is there. Raises InfrastructureError."""
        with self._told("read"), tempfile.TemporaryDirectory() as place:
            found = self._fetch(f"{self._root}/{name}", Path(place) / PROBE)
            if found is None or found.read_text() != name:
                raise InfrastructureError(
                    f"store {self.shown}: what was written to it a moment ago is not there: is it shared?"
                )

    def remove_probe(self, name: str) -> None:
        """Clean up."""
        with self._told("delete"):
            self._fs.rm_file(f"{self._root}/{name}")

    @contextmanager
    def _told(self, what: str) -> Iterator[None]:
        """Turn whatever the file system raises into an InfrastructureError."""
        try:
            yield
        except KpatchError:
            raise
        except Exception as error:  # each file system has exceptions of its own
            text = without_passwords(" ".join(str(error).split()) or type(error).__name__)
            raise InfrastructureError(f"store {self.shown}: cannot {what}: {text}") from error


class _DamagedError(Exception):
    """A file did not arrive as it should."""


def _inside(name: str) -> bool:
    path = Path(name)
    return not path.is_absolute() and ".." not in path.parts
