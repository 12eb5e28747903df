# SPDX-License-Identifier: GPL-2.0-or-later
"""One walk over the commits that touch some paths, newest first, bounded in time."""

from __future__ import annotations

import os
import selectors
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kpatch_ci.process import PIPE, Process
from kpatch_ci.series.gitindex import isolated
from kpatch_ci.series.names import unquote

_MARK, _FIELD = b"\x01", b"\x02"
_FORMAT = "--format=%x01%H%x02%P%x02%ct%x02%an%x02%s"
_TELL = 2.0
"""Seconds between two words about progress."""


@dataclass(frozen=True, slots=True)
class Touch:
    """A commit (for a merge: against one of its parents) and what it does to the paths: path -> (blob before, after)."""

    commit: str
    parents: tuple[str, ...]
    when: int
    """Committer's time, seconds since 1970."""
    author: str
    subject: str
    blobs: dict[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def day(self) -> str:
        """YYYY-MM-DD."""
        return time.strftime("%Y-%m-%d", time.gmtime(self.when))


class Walk:
    """Iterates over Touches. After it, ``complete`` says whether the history's end was reached in time."""

    def __init__(
        self, git_dir: Path, commit: str, paths: Sequence[str], *, seconds: float, tell: Callable[[Touch, int], None]
    ) -> None:
        """``tell`` is called every two seconds with the commit that was reached and the number of them so far."""
        self._argv = [
            *isolated(git_dir), "log", "--raw", "--no-abbrev", "--no-renames", "--full-history", "-m", _FORMAT, commit,
            "--", *paths,
        ]  # fmt: skip
        self._seconds, self._tell = seconds, tell
        self.complete = False
        self.seen = 0

    def __iter__(self) -> Iterator[Touch]:
        end = time.monotonic() + self._seconds
        told = time.monotonic()
        touch: Touch | None = None
        with Process(self._argv, stdout=PIPE) as process:
            for line in _lines(process.stdout.fileno(), end):
                if line.startswith(_MARK):
                    if touch is not None:
                        yield touch
                    touch = _header(line)
                    self.seen += 1
                    if time.monotonic() - told > _TELL:
                        told = time.monotonic()
                        self._tell(touch, self.seen)
                elif line.startswith(b":") and touch is not None:
                    meta, _, name = line.partition(b"\t")
                    _, _, before, after, _ = meta.split(b" ")
                    touch.blobs[unquote(name)] = (_blob(before), _blob(after))
            left = end - time.monotonic()
            self.complete = left > 0 and process.wait(left) == 0
        if touch is not None:
            yield touch


def _lines(descriptor: int, end: float) -> Iterator[bytes]:
    """Lines of a pipe, until it ends or the time is over."""
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while (left := end - time.monotonic()) > 0:
            if not selector.select(left):
                return
            data = os.read(descriptor, 1 << 16)
            if not data:
                break
            *whole, rest = (rest + data).split(b"\n")
            yield from whole
    if rest:
        yield rest


def _header(line: bytes) -> Touch:
    commit, parents, when, author, subject = line[1:].split(_FIELD, 4)
    who, what = author.decode(errors="replace"), subject.decode(errors="replace")
    return Touch(commit.decode(), tuple(parents.decode().split()), int(when or 0), who, what)


def _blob(name: bytes) -> str:
    return name.decode() if name.strip(b"0") else ""
