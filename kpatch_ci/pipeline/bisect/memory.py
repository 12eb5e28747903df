# SPDX-License-Identifier: GPL-2.0-or-later
"""What a bisection has found so far, on disk: written whole after every step, so that a killed one goes on where it was."""

from __future__ import annotations

import logging
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from kpatch_ci.model.bisect import Ends, Step
from kpatch_ci.store.atomic import write_text

log = logging.getLogger(__name__)
VERSION = 1
FILE = "state.json"


@dataclass(frozen=True, slots=True)
class Notes:
    """``ends`` None: not measured yet."""

    version: int = VERSION
    ends: Ends | None = None
    steps: tuple[Step, ...] = ()


_FORM = TypeAdapter(Notes)


class Memory:
    """Notes below ``place``, which belongs to one bisection: its name is a digest of all that its result depends on."""

    def __init__(self, place: Path, *, restart: bool = False) -> None:
        if restart:
            shutil.rmtree(place, ignore_errors=True)
        self.place = place
        self._file = place / FILE
        self._notes = _read(self._file)
        self.resumed = len(self._notes.steps)
        """Steps that were known at the start."""

    @property
    def ends(self) -> Ends | None:
        """Of the bisection, once measured."""
        return self._notes.ends

    @property
    def steps(self) -> tuple[Step, ...]:
        """In the order in which they were made."""
        return self._notes.steps

    def keep_ends(self, ends: Ends) -> None:
        """Remember them."""
        self._write(replace(self._notes, ends=ends))

    def keep(self, step: Step) -> None:
        """Remember a step."""
        self._write(replace(self._notes, steps=(*self._notes.steps, step)))

    def _write(self, notes: Notes) -> None:
        write_text(self._file, _FORM.dump_json(notes, indent=1).decode())
        self._notes = notes


def _read(path: Path) -> Notes:
    try:
        notes = _FORM.validate_json(path.read_text())
    except FileNotFoundError:
        return Notes()
    except (ValidationError, UnicodeDecodeError) as error:
        log.warning("%s is damaged (%s): the bisection begins anew", path, str(error).splitlines()[0])
        return Notes()
    return notes if notes.version == VERSION else Notes()
