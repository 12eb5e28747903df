# SPDX-License-Identifier: GPL-2.0-or-later
"""An observer that shows nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kpatch_ci.pipeline.engine import Node


class Silent:
    """To be entered like what shows progress."""

    def planned(self, nodes: Sequence[Node]) -> None:
        """Nothing."""

    def started(self, node: Node) -> None:
        """Nothing."""

    def finished(self, node: Node, value: Any, seconds: float, known: bool) -> None:
        """Nothing."""

    def tick(self) -> None:
        """Nothing."""

    def note(self, text: str) -> None:
        """Nothing."""

    def __enter__(self) -> Silent:
        return self

    def __exit__(self, *_: object) -> None:
        pass
