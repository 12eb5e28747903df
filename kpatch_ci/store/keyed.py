# SPDX-License-Identifier: GPL-2.0-or-later
"""A lock for each thing, for threads of one process: of several that want the same thing made, the first makes it."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from dataclasses import dataclass, field


@dataclass
class Locks:
    """Safe for concurrent threads."""

    _made: dict[Hashable, threading.Lock] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, key: Hashable) -> threading.Lock:
        """The one of ``key``."""
        with self._lock:
            return self._made.setdefault(key, threading.Lock())
