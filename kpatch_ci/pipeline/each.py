# SPDX-License-Identifier: GPL-2.0-or-later
"""What is asked of a series beside figures, as nodes of the graph: a build after every patch, W=1, sparse, checkpatch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

from kpatch_ci.debian.sparse import find_sparse, make_sparse
from kpatch_ci.kernel.checkpatch import Job, checkpatch, find_checkpatch
from kpatch_ci.kernel.each import Walk, build_each, find_each
from kpatch_ci.kernel.lint import W1, Checker, Pair, find_lint, lint, sparse_checker
from kpatch_ci.model.build import BuildResult
from kpatch_ci.model.each import CheckResult, EachResult
from kpatch_ci.model.result import worst
from kpatch_ci.model.series import BASELINE, ApplyResult, Patch, Series
from kpatch_ci.model.status import Status
from kpatch_ci.pipeline.engine import Node, Values
from kpatch_ci.pipeline.stagenames import apply_name, build_name
from kpatch_ci.pipeline.stages import Stages

PRIORITY = 2
"""After every arm's own build, before the boots."""
SPARSE = "sparse"
"""Node that fetches it."""


@dataclass(frozen=True, slots=True)
class Checks:
    """What is asked. ``strict``: checkpatch's --strict."""

    each: bool = False
    w1: bool = False
    sparse: bool = False
    checkpatch: bool = False
    strict: bool = False


NO_CHECKS = Checks()


def each_name(arch: str, kernel: str) -> str:
    """Node that builds after every patch."""
    return f"each {arch} {kernel}"


def lint_name(checker: str, arch: str, kernel: str) -> str:
    """Node that checks a series with W=1 or sparse."""
    return f"check {arch} {kernel} {checker}"


def checkpatch_name(kernel: str) -> str:
    """Node that checks a series' mails."""
    return f"check mails {kernel}"


def check_nodes(stages: Stages, series: Sequence[Series], checks: Checks) -> list[Node]:
    """Every node that ``checks`` asks for, each kernel once."""
    kernels = {one.patched_kernel: one for one in series}
    arches = [machine.arch for machine in stages.session.config.machines]
    nodes = [_sparse(stages)] if checks.sparse and kernels else []
    nodes += [_checkpatch(stages, one, checks.strict) for one in kernels.values() if checks.checkpatch]
    for arch in arches:
        for one in kernels.values():
            nodes += [_each(stages, arch, one)] if checks.each else []
            nodes += [_lint(stages, arch, one, W1.name, lambda _: W1)] if checks.w1 else []
            nodes += [_lint(stages, arch, one, SPARSE, _get_sparse, needs=(SPARSE,))] if checks.sparse else []
    return nodes


def mails_of(series: Series) -> tuple[Patch, ...]:
    """A series' patches as they came, those of a stack's members one after another. Ports are ours, not the author's."""
    return tuple(chain.from_iterable(mails_of(m) for m in series.members)) if series.members else series.patches


def each_of(values: Values, arch: str, series: Series) -> EachResult | None:
    """What was built after every patch; None where that was not asked, or could not be."""
    found: EachResult | None = values.get(each_name(arch, series.patched_kernel))
    return found


def checks_of(values: Values, arch: str, series: Series) -> tuple[CheckResult, ...]:
    """What the checkers said of a series on an architecture."""
    kernel = series.patched_kernel
    names = [checkpatch_name(kernel), *(lint_name(c, arch, kernel) for c in (W1.name, SPARSE))]
    return tuple(r for r in map(values.get, names) if isinstance(r, CheckResult))


def judged(status: Status, reason: str, each: EachResult | None, checks: Sequence[CheckResult]) -> tuple[Status, str]:
    """A series' status and reason, with what building it patch by patch has shown, and with checks that could not be done."""
    more = [(Status.FAILED, each.reason)] if each and each.reason else []
    more += [(c.status, f"{c.checker}: {c.reason}") for c in checks if c.status is not Status.PASSED]
    reasons = [*(why for _, why in more), reason]
    return worst((status, *(s for s, _ in more))), "; ".join(r for r in reasons if r)


def _each(stages: Stages, arch: str, series: Series) -> Node:
    def walk(values: Values) -> Walk | None:
        found = _arms(values, arch, series)
        if found is None:
            return None
        applied: ApplyResult = values[apply_name(series.patched_kernel)]
        base, before, after = found
        request = stages.request(arch, series.patched_kernel, after.tree_id)
        return Walk(request, base, before, after, applied.patches)

    def look(values: Values) -> EachResult | None:
        wanted = walk(values)
        return find_each(stages.builder, wanted) if wanted else None

    def work(values: Values) -> EachResult | None:
        wanted = walk(values)
        return build_each(stages.builder, wanted, stages.session.logs) if wanted else None

    name = each_name(arch, series.patched_kernel)
    return Node(name, "each", work, needs=_needs(arch, series), priority=PRIORITY, lookup=look)


def _lint(
    stages: Stages,
    arch: str,
    series: Series,
    name: str,
    checker: Callable[[Values], Checker],
    *,
    needs: tuple[str, ...] = (),
) -> Node:
    def pair(values: Values) -> Pair | None:
        found = _arms(values, arch, series)
        if found is None or found[2].status is not Status.PASSED:
            return None
        _, before, after = found
        return Pair(stages.request(arch, series.patched_kernel, after.tree_id), before, after)

    def look(values: Values) -> CheckResult | None:
        wanted = pair(values)
        return find_lint(stages.builder, wanted, checker(values)) if wanted else None

    def work(values: Values) -> CheckResult | None:
        wanted = pair(values)
        return lint(stages.builder, wanted, checker(values)) if wanted else None

    kernel = series.patched_kernel
    return Node(
        lint_name(name, arch, kernel),
        "check",
        work,
        needs=(*_needs(arch, series), *needs),
        priority=PRIORITY,
        lookup=look,
    )


def _get_sparse(values: Values) -> Checker:
    return sparse_checker(values[SPARSE])


def _sparse(stages: Stages) -> Node:
    s = stages.session
    return Node(
        SPARSE,
        "check",
        lambda _: make_sparse(s.cache, s.tools, s.archives),
        slot=False,
        lookup=lambda _: find_sparse(s.cache, s.tools.suite),
    )


def _checkpatch(stages: Stages, series: Series, strict: bool) -> Node:
    s = stages.session
    job = Job(s.tools, s.tree, mails_of(series), strict)
    return Node(
        checkpatch_name(series.patched_kernel),
        "check",
        lambda _: checkpatch(s.cache, s.store, job),
        priority=PRIORITY,
        lookup=lambda _: find_checkpatch(s.store, job),
    )


def _needs(arch: str, series: Series) -> tuple[str, ...]:
    below = (build_name(arch, series.base.name),) if series.base else ()
    kernel = series.patched_kernel
    return (apply_name(kernel), build_name(arch, BASELINE), *below, build_name(arch, kernel))


def _arms(values: Values, arch: str, series: Series) -> tuple[BuildResult, BuildResult, BuildResult] | None:
    """Builds of the tree as it is, of what the series went on, and of its end; None where one of the first two is missing."""
    base: BuildResult | None = values[build_name(arch, BASELINE)]
    before: BuildResult | None = values[build_name(arch, series.base.name)] if series.base else base
    after: BuildResult | None = values[build_name(arch, series.patched_kernel)]
    if base is None or before is None or after is None:
        return None
    return (base, before, after) if before.status is base.status is Status.PASSED else None
