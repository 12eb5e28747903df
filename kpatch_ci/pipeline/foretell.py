# SPDX-License-Identifier: GPL-2.0-or-later
"""Before a run: how much there is to do, about how long it takes, and whether the disk has room. A line each, and only where it matters.

An upper bound: what was done before with the same inputs is found only when its turn comes, so nothing but the baselines' kernels counts as
done. Costs of replicates are this host's own where it has measured such (budget.Costs); of kernels and boots those of README.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from kpatch_ci.config.load import Config
from kpatch_ci.model.series import BASELINE
from kpatch_ci.pipeline.budget import Arms, Costs
from kpatch_ci.pipeline.engine import Node
from kpatch_ci.pipeline.stagenames import build_name

COLD, PATCHED, BOOT = 335.0, 15.0, 2.0
"""Seconds of one CPU: a baseline's kernel from nothing, a patched one from its objects, a boot to the snapshot."""
SNAPSHOT, KERNEL, TREE = 43e6, 17e6, 1.8e9
"""Bytes of a boot's snapshot, of a kernel that is kept, of a baseline's source and objects (measured, Linux 6.1)."""
WORTH_IT = 120.0
"""Seconds below which nobody needs to be told."""


def foretell(
    config: Config, arms: Arms, nodes: Sequence[Node], known: Collection[str], costs: Costs, *, jobs: int
) -> str:
    """What is ahead, and the wall time on ``jobs`` CPUs that it takes at most; empty where that is short."""
    ahead, cold = _ahead(config, nodes, known)
    counts = Counter(node.kind for node in ahead)
    parallel = COLD * cold + PATCHED * (counts["build"] - cold)
    alone = 0.0
    for machine in config.machines:
        measured = sum(
            costs.of(machine, plan.name, case.label) * len(config.seeds)
            for plans in arms.values()
            for plan in plans
            for case in plan.cases
        )
        if machine.real_time:
            alone += measured
        else:
            parallel += measured
    seconds = (parallel + BOOT * counts["boot"]) / jobs + alone
    if seconds < WORTH_IT:
        return ""
    todo = (("build", "kernel"), ("boot", "boot"), ("run", "replicate"))
    what = ", ".join(_count(counts[kind], name) for kind, name in todo)
    how = f"about {_minutes(seconds)} on {_count(jobs, 'CPU')} (an estimate)"
    return f"ahead: {what}: {how} where none of it was done before; what was is reused"


def _ahead(config: Config, nodes: Sequence[Node], known: Collection[str]) -> tuple[list[Node], int]:
    """What there is to do, and how many kernels of it are baselines'."""
    baselines = {build_name(machine.arch, BASELINE) for machine in config.machines}
    ahead = [node for node in nodes if node.name not in known]
    return ahead, sum(node.name in baselines for node in ahead)


def cramped(config: Config, nodes: Sequence[Node], known: Collection[str], *, free: float) -> str:
    """That ``free`` bytes may be too few for what will be kept; empty where they are not. What hosts or boards boot is not kept here."""
    real_time = {machine.arch for machine in config.machines if machine.real_time}
    ahead, cold = _ahead(config, nodes, known)
    elsewhere = config.spare_here or config.engine is not None
    boots = 0 if elsewhere else sum(node.kind == "boot" and node.arch not in real_time for node in ahead)
    builds = sum(node.kind == "build" for node in ahead)
    need = SNAPSHOT * boots + KERNEL * builds + TREE * (cold > 0)
    if need <= free:
        return ""
    kernels = [_count(builds, "kernel")] if builds else []
    what = " and ".join([*kernels, f"the snapshots of {_count(boots, 'boot')}"])
    return (
        f"disk: up to {need / 1e9:.1f} GB are needed for {what}, and {free / 1e9:.1f} GB are free in the cache:"
        " `kpatch-ci clean` shows what can go"
    )


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"


def _minutes(seconds: float) -> str:
    minutes = max(1, round(seconds / 60))
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"
