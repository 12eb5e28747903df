# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels of many git trees for booting, each built from the objects of the one before it, whichever that was.

What is kept is a kind of its own, ``bisect``: the same image, modules and configuration as another build of that git tree, but
without what a build says of its baseline, for here it has none. A build that a run has made is taken where it is there.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from kpatch_ci.kernel.build import Builder, BuildRequest, failed_build, passed
from kpatch_ci.kernel.chain import Chain, open_chain
from kpatch_ci.kernel.diagnostics import failure_tail
from kpatch_ci.kernel.external import drop_external
from kpatch_ci.kernel.make import Failure, explain
from kpatch_ci.kernel.outputs import OddOutput
from kpatch_ci.model.build import BuildResult
from kpatch_ci.store.atomic import require_space, write_text

KIND = "bisect"


class Walk:
    """A context manager. Builds begin with the objects of ``baseline``, which is built by ``builder`` itself. Not for two threads."""

    def __init__(self, builder: Builder, baseline: BuildRequest, name: str) -> None:
        self._builder, self._baseline, self._name = builder, baseline, name
        self._stack = contextlib.ExitStack()
        self._chain: Chain | None = None

    def __enter__(self) -> Walk:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def find(self, request: BuildRequest) -> BuildResult | None:
        """The build, when it was made before, here or by a run."""
        found = self._builder.find(request)
        if found:
            return found
        artifact = self._builder.store.get(KIND, request.key(self._builder.tools))
        return passed(request, artifact, cached=True) if artifact else None

    def build(self, request: BuildRequest, logs: Path) -> BuildResult:
        """Build, or reuse. A kernel that does not build is a result; raises InfrastructureError where the machine fails."""
        found = self.find(request)
        if found:
            return found
        if request.tree_id == self._baseline.tree_id:
            return self._builder.build(request, logs)
        if self._chain is None:
            self._chain = self._stack.enter_context(open_chain(self._builder, self._baseline, self._name))
        return self._step(self._chain, request, logs)

    def _step(self, chain: Chain, request: BuildRequest, logs: Path) -> BuildResult:
        builder, key, began = self._builder, request.key(self._builder.tools), time.monotonic()
        log = logs / f"build-{request.arch.name}-{request.arm}.log"
        failed, said = chain.prepare(request.tree_id), ""
        if failed is None:
            done, said = chain.run(request.arch.make_targets)
            if not done.ok:
                failed = Failure(explain(done), failure_tail(said))
                write_text(log, said)
        failed = failed or chain.make.build_external(request.external, chain.source, chain.out, log)
        artifact = None
        if not failed:
            try:
                more = {"seconds": round(time.monotonic() - began, 2), "compiled": {}, "differing": None}
                artifact = builder.keep_as(KIND, request, chain.out, text=said, more=more)
            except OddOutput as odd:
                failed = Failure(str(odd), "")
        drop_external(chain.out)
        if artifact is None or failed:
            require_space(builder.cache)
            assert failed  # noqa: S101
            seconds = time.monotonic() - began
            return failed_build(request, key, failed, seconds=seconds, log=log, reproduce=builder.reproduce(request))
        return passed(request, artifact, cached=False)
