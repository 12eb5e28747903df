# SPDX-License-Identifier: GPL-2.0-or-later
"""The log of nights: one JSON file a night in the state directory, and the lock that keeps two of them apart."""

from __future__ import annotations

import datetime
import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from kpatch_ci.model.digest import digest
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.model.nightly import ItemOutcome, ItemState, Night
from kpatch_ci.store.atomic import disk_errors, write_text

RESUME_HOURS = 20
"""A night that was killed goes on when the command is typed again so soon; after that it is yesterday's."""


class NightLog:
    """The nights of one pipeline file. Nothing in it is needed to make the site: without it only what was *not* run is unknown."""

    def __init__(self, cache: Path, pipeline: Path) -> None:
        self.place = cache / "state" / "nightly" / digest(str(pipeline.absolute()))[:12]

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the night's lock; the kernel drops it when this process ends. Raises InfrastructureError where another holds it."""
        path = self.place / "lock"
        with disk_errors(self.place):
            self.place.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o644)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                holder = os.pread(descriptor, 100, 0).decode(errors="replace").strip() or "another process"
                raise InfrastructureError(
                    f"a night is at work already ({holder})", hint="wait for it; a second one would measure the same"
                ) from error
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"process {os.getpid()}, since {_now()}".encode(), 0)
            yield
        finally:
            os.close(descriptor)

    def write(self, night: Night) -> None:
        """Keep ``night`` as it is now."""
        write_text(self._file(night.name), json.dumps(asdict(night), indent=1) + "\n")

    def read(self) -> list[Night]:
        """All nights, oldest first; a damaged file is passed over."""
        return [night for path in sorted(self.place.glob("night-*.json")) if (night := _read(path))]

    def unfinished(self, items: tuple[str, ...], now: datetime.datetime) -> Night | None:
        """The last night, where it was killed, is of these items and is not yesterday's."""
        last = next(iter(self.read()[::-1]), None)
        if last is None or last.finished or last.items != items:
            return None
        age = now - datetime.datetime.fromisoformat(last.started)
        return last if age < datetime.timedelta(hours=RESUME_HOURS) else None

    def _file(self, name: str) -> Path:
        return self.place / f"night-{name}.json"


def _read(path: Path) -> Night | None:
    try:
        data = json.loads(path.read_text())
        outcomes = tuple(ItemOutcome(**{**one, "state": ItemState(one["state"])}) for one in data.pop("outcomes"))
        data |= {key: tuple(data[key]) for key in ("items", "troubles")}
        night = Night(**data, outcomes=outcomes)
        datetime.datetime.fromisoformat(night.started)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return night


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
