# SPDX-License-Identifier: GPL-2.0-or-later
"""A build after every patch of a series: which is the first that breaks, and what each newly warns of.

The last patch's tree is the patched arm's, which is built anyway. The trees between are taken from the store where they were
built before, else built one from the other (``kernel/chain.py``). What is compared is content: see ``known_after``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kpatch_ci.kernel.build import KEPT_LOG, Builder, BuildRequest
from kpatch_ci.kernel.chain import Chain, Step, open_chain
from kpatch_ci.kernel.checkout import differing_paths
from kpatch_ci.kernel.diagnostics import errors, failure_tail, known_after, objects_compiled, warnings
from kpatch_ci.model.build import BuildResult, Identity
from kpatch_ci.model.digest import digest
from kpatch_ci.model.each import EachResult, PatchBuild
from kpatch_ci.model.series import AppliedPatch
from kpatch_ci.model.status import Status
from kpatch_ci.store.atomic import disk_errors, write_text

KIND = "each"
VERSION = 1
MAX_ERRORS = 10
Known = frozenset[Identity]


@dataclass(frozen=True, slots=True)
class Walk:
    """What is to be built. ``end`` is the patched arm's build, ``before`` that of the tree which patch 1 went on.

    ``before`` is ``baseline`` itself but for a series on baseline patches.
    """

    request: BuildRequest
    """The patched arm's."""
    baseline: BuildResult
    before: BuildResult
    end: BuildResult
    patches: Sequence[AppliedPatch]


@dataclass(frozen=True, slots=True)
class _Said:
    """One build, of whatever origin. ``start``: git tree whose objects it began with."""

    log: str
    start: str
    seconds: float
    cached: bool
    reason: str = ""
    tail: str = ""


def build_each(builder: Builder, walk: Walk, logs: Path) -> EachResult:
    """Build after every patch. Raises InfrastructureError where the machine fails."""
    with _Walker(builder, walk) as walker:
        found = walker.all(walker.made)
    assert found is not None  # noqa: S101
    for patch, log in found:
        if patch.log is not None:
            with disk_errors(logs):
                logs.mkdir(parents=True, exist_ok=True)
            write_text(logs / patch.log, log)
    patches = tuple(replace(p, log=logs / p.log) if p.log is not None else p for p, _ in found)
    return EachResult(walk.request.arch.name, patches, walker.key(len(patches) - 1))


def find_each(builder: Builder, walk: Walk) -> EachResult | None:
    """The same, when every patch builds and was built before."""
    with _Walker(builder, walk) as walker:
        found = walker.all(walker.kept)
    if found is None or any(p.status is not Status.PASSED for p, _ in found):
        return None
    return EachResult(walk.request.arch.name, tuple(p for p, _ in found), walker.key(len(found) - 1))


class _Walker:
    def __init__(self, builder: Builder, walk: Walk) -> None:
        self._builder, self._walk = builder, walk
        self._trees = [p.tree_id or "" for p in walk.patches]
        self._stack = contextlib.ExitStack()
        self._chain: Chain | None = None

    def __enter__(self) -> _Walker:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def key(self, index: int) -> str:
        """Digest of what a step is a function of: its build, and the trees that lie before it."""
        request = replace(self._walk.request, tree_id=self._trees[index], external=())
        way = [self._walk.before.tree_id, *self._trees[:index]]
        return digest([KIND, VERSION, request.key(self._builder.tools), way])

    def all(self, step: Any) -> list[tuple[PatchBuild, str]] | None:
        """Every patch with its build's log; None where ``step`` has none for one of them."""
        walk, tree = self._walk, self._walk.request.tree
        known: dict[str, Known] = {walk.baseline.tree_id: frozenset(d.identity for d in walk.baseline.warnings)}
        now = known[walk.baseline.tree_id]
        if walk.before.tree_id != walk.baseline.tree_id:
            now = known_after(now, _log(walk.before), differing_paths(tree, tree.tree_id, walk.before.tree_id))
            known[walk.before.tree_id] = now
        found = []
        for index, tree_id in enumerate(self._trees):
            said: _Said | None = step(index)
            if said is None:
                return None
            found.append((self._patch(index, said, now), said.log))
            if said.reason:  # it may have ended before it came to a file: nothing is forgotten
                now |= frozenset(d.identity for d in warnings(said.log))
            else:
                now = known_after(known[said.start], said.log, differing_paths(tree, said.start, tree_id))
            known[tree_id] = now
        return found

    def kept(self, index: int) -> _Said | None:
        """A step that need not be built: the end, one of the store, or another arm that has this tree."""
        walk, base = self._walk, self._walk.baseline.tree_id
        if index == len(self._trees) - 1:
            reason = "" if walk.end.status is Status.PASSED else walk.end.reason
            return _Said(_log(walk.end), base, walk.end.seconds, walk.end.cached, reason, walk.end.log_tail)
        artifact = self._builder.store.get(KIND, self.key(index))
        if artifact:
            log, meta = (artifact.path / KEPT_LOG).read_text(errors="replace"), artifact.meta
            return _Said(log, meta["start"], meta["seconds"], cached=True)
        built = self._builder.find(replace(walk.request, tree_id=self._trees[index]))
        return _Said(_log(built), base, built.seconds, cached=True) if built else None

    def made(self, index: int) -> _Said:
        """A step, built where it has to be."""
        found = self.kept(index)
        if found is None and self._chain is None:
            name = f"each-{self._walk.request.arch.name}-{digest(self._trees)[:16]}"
            self._chain = self._stack.enter_context(open_chain(self._builder, self._walk.request.baseline(), name))
            found = self.kept(index)  # another process may have built it while this one waited
        if found is None:
            assert self._chain is not None  # noqa: S101
            found = self._keep(index, self._chain.step(self._trees[index]))
        return found

    def _keep(self, index: int, step: Step) -> _Said:
        said = _Said(step.log, step.start, step.seconds, cached=False)
        if step.failure:
            return replace(said, reason=step.failure.reason, tail=step.failure.tail or failure_tail(step.log))

        def fill(place: Path) -> Mapping[str, Any]:
            (place / KEPT_LOG).write_text(step.log)
            return {"start": step.start, "seconds": step.seconds}

        self._builder.store.put(KIND, self.key(index), fill)
        return said

    def _patch(self, index: int, said: _Said, known: Known) -> PatchBuild:
        patch, request = self._walk.patches[index], self._walk.request
        name = f"each-{request.arch.name}-{request.arm}-{index + 1}.log".replace("/", "_")
        return PatchBuild(
            number=index + 1,
            subject=patch.subject,
            tree_id=self._trees[index],
            status=Status.FAILED if said.reason else Status.PASSED,
            seconds=said.seconds,
            objects=objects_compiled(said.log),
            cached=said.cached,
            new_warnings=tuple(d for d in warnings(said.log) if d.identity not in known),
            errors=errors(said.log)[:MAX_ERRORS] if said.reason else (),
            reason=said.reason,
            log_tail=said.tail,
            log=Path(name) if said.reason and said.log else None,
        )


def _log(build: BuildResult) -> str:
    return build.log.read_text(errors="replace") if build.log and build.log.is_file() else ""
