# SPDX-License-Identifier: GPL-2.0-or-later
"""Why a stage ran or was reused: its named inputs, compared with those of the last time."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Mapping
from pathlib import Path

from kpatch_ci.store.atomic import write_text

Inputs = Mapping[str, str]


class Memo:
    """Remembers each stage's inputs between runs, in one file of the cache. Losing the file loses explanations, no results."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._known: dict[str, dict[str, str]] = {}
        with contextlib.suppress(OSError, ValueError):
            loaded = json.loads(path.read_text())
            self._known = loaded if isinstance(loaded, dict) else {}

    def why(self, stage: str, inputs: Inputs, *, reused: bool) -> str:
        """One sentence; and ``inputs`` are remembered for the next time."""
        with self._lock:
            before = self._known.get(stage)
            self._known[stage] = dict(inputs)
        if reused:
            return (
                "reused: every input is the same"
                if before in (None, dict(inputs))
                else "reused: made earlier from these inputs"
            )
        if before is None:
            return "ran: for the first time"
        changed = sorted(k for k in {*before, *inputs} if before.get(k) != inputs.get(k))
        if not changed:
            return "ran, with the inputs of the last time: it is never kept, failed then, or was removed since"
        return f"ran: {', '.join(f'{k} changed' for k in changed)}"

    def save(self) -> None:
        """Write what is remembered."""
        with self._lock:
            write_text(self._path, json.dumps(self._known, indent=0, sort_keys=True))
