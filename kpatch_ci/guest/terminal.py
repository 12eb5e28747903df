# SPDX-License-Identifier: GPL-2.0-or-later
"""Leaving a person's terminal as it was found: QEMU sets it raw, and may end without setting it back."""

from __future__ import annotations

import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def restored_terminal() -> Iterator[None]:
    """Restore the terminal's settings at the end; does nothing where standard input is no terminal."""
    if not sys.stdin.isatty():
        yield
        return
    saved = termios.tcgetattr(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, saved)
