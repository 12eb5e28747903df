# SPDX-License-Identifier: GPL-2.0-or-later
"""One set of objects that walks from git tree to git tree, patch by patch.

It starts as a copy of the baseline's objects, with a working tree of its own. A step turns that into the next git tree, with
only what differs made newer, and builds: so it costs the files that its own patch touches, not those of all before it.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from kpatch_ci.kernel.build import Builder, BuildRequest
from kpatch_ci.kernel.checkout import checkout_movable, move
from kpatch_ci.kernel.make import FRAGMENT, Failure, Make, explain
from kpatch_ci.kernel.outputs import logs_of, next_log
from kpatch_ci.model.build import Tree
from kpatch_ci.process import Completed, check_stopping
from kpatch_ci.store.atomic import require_space
from kpatch_ci.store.cache import locked

KEEP_GOING = "-k"
"""All that compiles is compiled, so that a patch that breaks a file does not hide what the next file has to say."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one build of a chain gave. ``log`` is all that make said; ``start`` the git tree whose objects it began with."""

    failure: Failure | None
    log: str
    start: str
    seconds: float


class Chain:
    """See ``open_chain``. ``tree_id`` is the git tree that the objects and the working tree are at."""

    def __init__(self, builder: Builder, baseline: BuildRequest, source: Path, out: Path) -> None:
        self._builder, self._request = builder, baseline
        self.source, self.out = source, out
        self.tree_id = baseline.tree_id

    @property
    def tree(self) -> Tree:
        """The baseline."""
        return self._request.tree

    @property
    def make(self) -> Make:
        """Make, as the builder runs it."""
        return self._builder.make(self._request.arch)

    def prepare(self, tree_id: str) -> Failure | None:
        """Make the working tree that of another git tree, and its .config; nothing is built."""
        move(self.tree, self.source, self.tree_id, tree_id, newer_than=_newest(self.out))
        self.tree_id = tree_id
        fragment = self.out / FRAGMENT
        if fragment.is_dir() and not fragment.is_symlink():  # an earlier patch's build may have left anything
            shutil.rmtree(fragment)
        return self._builder.configure(
            replace(self._request, tree_id=tree_id), self.source, self.out, next_log(self.out)
        )

    def step(self, tree_id: str) -> Step:
        """Build another git tree from the objects that are there. A kernel that does not build is a value."""
        start, began = self.tree_id, time.monotonic()
        failed, log = self.prepare(tree_id), ""
        if failed is None:
            done, log = self.run([KEEP_GOING, *self._request.arch.make_targets])
            if not done.ok:
                require_space(self.out)
                failed = Failure(explain(done), "")
        return Step(failed, log, start, round(time.monotonic() - began, 2))

    def run(self, targets: Sequence[str], mounts: Sequence[tuple[Path, str]] = ()) -> tuple[Completed, str]:
        """Run make on the objects; what it said."""
        said = next_log(self.out)
        done = self.make.run(self.source, self.out, targets, said, mounts=mounts)
        return done, said.read_text(errors="replace")


@contextmanager
def open_chain(builder: Builder, baseline: BuildRequest, name: str) -> Iterator[Chain]:
    """A chain at the baseline, without our own modules. ``name`` tells it from others; it leaves nothing behind."""
    out = builder.cache / "out" / f"patched-{name}"
    source = builder.cache / "src" / f"patched-{name}"
    with locked(out, check_stopping):
        _forget(out, source)
        try:
            builder.copy_objects(baseline, out)
            checkout_movable(builder.cache, baseline.tree, source)
            yield Chain(builder, replace(baseline, external=()), source, out)
        finally:
            _forget(out, source)


def _forget(out: Path, source: Path) -> None:
    for place in (out, source, logs_of(out)):
        shutil.rmtree(place, ignore_errors=True)


def _newest(out: Path) -> float:
    """Time stamp of the newest file below ``out``; links are not followed, for a build may have left any."""
    stamps = [(Path(place) / name).lstat().st_mtime for place, _, names in os.walk(out) for name in names]
    return max(stamps, default=0.0)
