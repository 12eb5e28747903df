# SPDX-License-Identifier: GPL-2.0-or-later
"""Reading the result channel: one JSON object a line, the last of which may be cut off."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any


def events(text: str) -> Iterator[Mapping[str, Any]]:
    """The whole events in ``text``, in order; what is no event (a line that was cut off) is left out."""
    for line in text.splitlines():
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and "event" in value:
            yield value


def find_event(text: str, name: str) -> Mapping[str, Any] | None:
    """The last event of that name."""
    found = None
    for event in events(text):
        if event["event"] == name:
            found = event
    return found
