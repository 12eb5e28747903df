# SPDX-License-Identifier: GPL-2.0-or-later
"""What workers are at for this run, under a name, so that it can be ended there and others' work on the same workers cannot."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

log = logging.getLogger(__name__)
TELLING = 3.0
"""Seconds that whoever ends a round waits for workers to hear of it: one that does not answer is not waited for."""


class Hub(Protocol):
    """What is needed of a dask client."""

    def submit(self, func: Any, *args: Any, **kwargs: Any) -> Any:
        """See distributed.Client.submit."""

    def run(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        """See distributed.Client.run."""


def ended_there() -> Callable[[str], None]:
    """``there.end_round`` in a wrapping that the scheduler can unpack without having kpatch-ci (see ``done_there``)."""

    def end_round(name: str) -> None:
        from kpatch_ci.pipeline.cluster import there  # noqa: PLC0415 (in the worker)

        there.end_round(name)

    return end_round


@dataclass
class Rounds:
    """Every call carries the present round's name. Safe for concurrent threads."""

    hub: Hub
    _name: str = field(default_factory=lambda: uuid.uuid4().hex)
    _used: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def enter(self) -> str:
        """The name for a call that is made now."""
        with self._lock:
            self._used = True
            return self._name

    def end(self) -> None:
        """Have all that was called for so far ended where it is at work; calls that come later are of another round."""
        with self._lock:
            name, used = self._name, self._used
            self._name, self._used = uuid.uuid4().hex, False
        if not used:
            return
        telling = threading.Thread(target=self._tell, args=(name,), name="end-round", daemon=True)
        telling.start()
        telling.join(TELLING)

    def _tell(self, name: str) -> None:
        try:
            self.hub.run(ended_there(), name, on_error="return")
        except Exception as error:  # the scheduler may be gone; then workers end what they are at, for nobody
            log.debug("telling workers that a round is over: %s", error)
