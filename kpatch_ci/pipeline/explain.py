# SPDX-License-Identifier: GPL-2.0-or-later
"""From the values of a run to its list of stages: what ran, what was reused, and why."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from kpatch_ci.model.boot import BootResult
from kpatch_ci.model.build import BuildResult, Tree
from kpatch_ci.model.digest import digest
from kpatch_ci.model.each import CheckResult, EachResult
from kpatch_ci.model.result import StageTime
from kpatch_ci.model.series import ApplyResult
from kpatch_ci.model.status import REAL_TIME, Status
from kpatch_ci.model.workload import Replicate
from kpatch_ci.pipeline.engine import Node
from kpatch_ci.pipeline.memo import Memo
from kpatch_ci.pipeline.stages import Stages

_WITH_STATUS = BuildResult | BootResult | ApplyResult | EachResult | CheckResult


class Recorder:
    """Collects what the engine reports. Replicates are told by case, not one by one: there are thousands."""

    def __init__(self, stages: Stages, memo: Memo, tree: Tree) -> None:
        self._stages, self._memo, self._tree = stages, memo, tree
        self._rows: list[StageTime] = []
        self._runs: dict[str, list[Replicate]] = defaultdict(list)

    def finished(self, node: Node, value: Any, seconds: float, known: bool) -> None:
        """One node has its value."""
        if isinstance(value, Replicate):
            self._runs[node.name.rsplit(" seed ", 1)[0]].append(value)
            return
        status = value.status if isinstance(value, _WITH_STATUS) else Status.PASSED
        if value is None:
            self._rows.append(
                StageTime(
                    node.name,
                    "",
                    False,
                    0.0,
                    "skipped: what it needs failed, or it is the baseline's image",
                    Status.SKIPPED,
                )
            )
            return
        why = self._memo.why(node.name, self._inputs(value), reused=known)
        self._rows.append(
            StageTime(node.name, str(getattr(value, "key", ""))[:16], known, round(seconds, 2), why, status)
        )

    def _inputs(self, value: Any) -> Mapping[str, str]:
        tools = self._stages.session.tools.fingerprint
        if isinstance(value, BuildResult):
            request = self._stages.request(value.arch, value.arm, value.tree_id)
            return {
                "git tree": value.tree_id,
                "kconfig": digest({k: v.value for k, v in request.config.items()}),
                "our modules": digest([m.files for m in request.external]),
                "tools": tools,
            }
        if isinstance(value, BootResult):
            return {"kernel, image, machine or QEMU": value.key, "tools": tools}
        if isinstance(value, ApplyResult):
            return {
                "tree": self._tree.tree_id,
                "patches and ports": digest([self._tree.tree_id, value.tree_id, value.reason]),
            }
        if isinstance(value, EachResult | CheckResult):
            return {"patches, builds, checker or its options": value.key, "tools": tools}
        return {"packages, agent or tools": str(getattr(value, "digest", ""))}

    def rows(self) -> tuple[StageTime, ...]:
        """All stages in the order in which they ended; replicates case by case after them."""
        return (*self._rows, *(self._case(name, runs) for name, runs in self._runs.items()))

    def _case(self, name: str, runs: Sequence[Replicate]) -> StageTime:
        cached = sum(r.cached for r in runs)
        passed = sum(r.status is Status.PASSED for r in runs)
        status = Status.PASSED if passed == len(runs) else Status.SKIPPED if not passed else Status.FAILED
        why = f"{cached} of {len(runs)} reused, {len(runs) - cached} measured" + (
            "" if passed == len(runs) else f", {passed} passed"
        )
        again = sum(r.first is not None for r in runs)
        why += f", {again} booted again after a first guest was lost" if again else ""
        if any(r.mode in REAL_TIME for r in runs):
            why += "; in real time nothing is kept or reused"
        seconds = round(sum(r.seconds for r in runs if not r.cached), 2)
        return StageTime(
            name, digest(sorted(str(r.seed) for r in runs))[:16], cached == len(runs), seconds, why, status
        )
