# SPDX-License-Identifier: GPL-2.0-or-later
"""Builds kernels for whoever calls, from source that was sent."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from kpatch_ci.debian.toolroot import ToolRoot
from kpatch_ci.kernel.build import Builder, BuildRequest
from kpatch_ci.kernel.checkout import Trees
from kpatch_ci.kernel.external import read_external
from kpatch_ci.kernel.sent import CHANGES, SentTrees, changes_key, unpack_source
from kpatch_ci.model.arch import ARCHES
from kpatch_ci.model.build import BuildResult
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.model.status import Status
from kpatch_ci.pipeline.calls import BuildAnswer, BuildCall, Module, stripped_build, text_of
from kpatch_ci.pipeline.turns import Turns
from kpatch_ci.store.artifacts import ArtifactStore

MOST_LOG = 8 << 20
"""Bytes of a log that travel, its last ones."""


class Building:
    """Builds below ``cache`` with ``tools``. Safe for concurrent threads."""

    def __init__(self, cache: Path, store: ArtifactStore, tools: ToolRoot, turns: Turns) -> None:
        self._cache, self._store, self._tools, self._turns = cache, store, tools, turns

    def do(self, call: BuildCall, logs: Path) -> BuildAnswer:
        """Build, or say that it was built before. Raises InfrastructureError where this machine fails, or would build another kernel."""
        request = self._request(call, logs / "modules")
        if request.key(self._tools) != call.key:
            raise InfrastructureError(
                f"the build of {call.arm} for {call.arch} would not be the one that was asked for: another key"
            )
        built = self.builder(call, SentTrees(None)).find(request)
        if built is None:
            with self._turns.one():
                built = self._built(call, request, logs)
        text = "" if built.status is Status.PASSED else text_of(built.log)[-MOST_LOG:]
        told = replace(stripped_build(built), log_tail=built.log_tail, reproduce=built.reproduce)
        return BuildAnswer(told, text)

    def builder(self, call: BuildCall, trees: Trees) -> Builder:
        """What builds."""
        jobserver = self._turns.share(call.jobs)
        return Builder(
            self._cache,
            self._store,
            self._tools,
            jobs=call.jobs,
            timeout=call.timeout,
            jobserver=jobserver,
            trees=trees,
        )

    def _built(self, call: BuildCall, request: BuildRequest, logs: Path) -> BuildResult:
        builder = self.builder(call, self._trees(call))
        unpack_source(self._cache, self._store, request.tree.tree_id)
        builder.make_objects(request, logs)  # a patched kernel takes seconds with them, and minutes without
        return builder.build(request, logs)

    def _trees(self, call: BuildCall) -> Trees:
        if call.tree_id == call.tree.tree_id:
            return SentTrees(None)
        key = changes_key(call.tree.tree_id, call.tree_id)
        artifact = self._store.get(CHANGES, key)
        if artifact is None:
            raise InfrastructureError("what the patch changes is not here, or was damaged")
        return SentTrees(artifact)

    def _request(self, call: BuildCall, folder: Path) -> BuildRequest:
        config = {one.symbol: one for one in call.config}
        modules = tuple(read_external(_laid(module, folder)) for module in call.modules)
        return BuildRequest(call.arm, ARCHES[call.arch], call.tree, call.tree_id, config, modules)


def _laid(module: Module, folder: Path) -> Path:
    """A module's sources in a directory of its name."""
    place = folder / Path(module.name).name
    place.mkdir(parents=True)
    for name, text in module.files:
        (place / Path(name).name).write_text(text)
    return place
