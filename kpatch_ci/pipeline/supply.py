# SPDX-License-Identifier: GPL-2.0-or-later
"""What a build on another machine is made of: the call, and the artifacts that it names, made here."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from pathlib import Path

from kpatch_ci.debian.toolroot import ToolRoot
from kpatch_ci.kernel.build import BuildRequest, objects_name
from kpatch_ci.kernel.external import External
from kpatch_ci.kernel.sent import SOURCE, pack_changes, pack_source, source_key
from kpatch_ci.model.build import Tree
from kpatch_ci.pipeline.calls import NOWHERE, BuildCall, Module, Ref
from kpatch_ci.store.artifacts import ArtifactStore

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Supply:
    """Of this machine's cache. ``timeout``: wall seconds of each make. Safe for concurrent threads."""

    cache: Path
    store: ArtifactStore
    tools: ToolRoot
    timeout: float

    def call(self, request: BuildRequest, jobs: int) -> BuildCall:
        """How another machine is asked for a build; ``jobs`` CPUs are its own. Raises InfrastructureError."""
        if request.tree_id != request.tree.tree_id:
            pack_changes(request.tree, request.tree_id, self.store)
        return BuildCall(
            request.key(self.tools),
            request.arm,
            request.arch.name,
            replace(request.tree, repo=NOWHERE),
            request.tree_id,
            tuple(request.config[name] for name in sorted(request.config)),
            tuple(_module(one) for one in request.external),
            jobs,
            self.timeout,
        )

    def provide(self, tree: Tree, ref: Ref) -> None:
        """Make an artifact that is made only where it is lacking: the packed source, which is large. Raises InfrastructureError."""
        if ref == (SOURCE, source_key(tree.tree_id)) and self.store.get(*ref, verify=False) is None:
            log.info("packing the kernel source for other machines (once)")
            pack_source(self.cache, tree, self.store)

    def objects_of(self, request: BuildRequest) -> str:
        """What the objects are called from which a patched kernel of the request's tree starts."""
        return objects_name(request.baseline(), self.tools)


def _module(one: External) -> Module:
    return Module(one.name, tuple((name, (one.folder / name).read_text()) for name, _ in one.files))
