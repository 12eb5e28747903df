# SPDX-License-Identifier: GPL-2.0-or-later
"""A terminal that shows what patches, compilers and guests say, and does nothing that they tell it to."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from kpatch_ci.report.clean import printable


class SafeConsole(Console):
    """Rich's console; no text that is printed through it keeps escape sequences, control or direction-changing characters."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Rich's own, each segment's text made safe."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)
