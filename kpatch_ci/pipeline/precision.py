# SPDX-License-Identifier: GPL-2.0-or-later
"""Rounds of measuring: boots are added for the workloads whose intervals are wider than asked. Nothing is measured twice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kpatch_ci.config.load import Config
from kpatch_ci.model.comparison import Comparison
from kpatch_ci.model.series import Series
from kpatch_ci.model.workload import Seed
from kpatch_ci.pipeline.assemble import compared
from kpatch_ci.pipeline.engine import Engine, Values
from kpatch_ci.pipeline.plan import Depth, plan
from kpatch_ci.pipeline.stages import Stages
from kpatch_ci.stats.paired import rounded
from kpatch_ci.stats.precision import Precision, next_boots, too_wide

Note = Callable[[str], None]
Key = tuple[str, str, str]
"""Series, architecture, workload."""


@dataclass
class Rounds:
    """Goes on after the first round, which ``values`` are of, until all is narrow enough or the cap is reached.

    ``stages``' session ends with the seeds of the last round.
    """

    stages: Stages
    series: Sequence[Series]
    depth: Depth
    engine: Engine
    note: Note
    _pairs: dict[Key, int] = field(default_factory=dict)

    def run(self, values: Values, asked: Precision) -> tuple[Values, int]:
        """The values of all rounds, and how many there were. Raises what a node raised."""
        rounds = 1
        while True:
            boots = _boots(self._config.seeds)
            wide = self._too_wide(values, asked)
            if not wide or boots >= asked.most:
                return values, rounds
            rounds += 1
            more = next_boots(boots, max(wide.values()), asked)
            self.note(_ahead(rounds, more, wide, asked))
            self.stages.session = replace(
                self.stages.session, config=replace(self._config, seeds=more_seeds(self._config.seeds, more))
            )
            ahead = plan(self.stages, self.series, self.depth, wanted={key[1:] for key in wide})
            values = self.engine.run([node for node in ahead if node.name not in values])

    @property
    def _config(self) -> Config:
        return self.stages.session.config

    def _too_wide(self, values: Values, asked: Precision) -> dict[Key, float]:
        """What is too wide and has gained by the last round: boots that all fail make nothing narrower."""
        found = {}
        for one in self.series:
            for arch, comparisons in compared(self._config, one, values)[1].items():
                wide = too_wide(comparisons, asked)
                for c in (c for c in comparisons if c.primary and c.workload in wide):
                    key = (one.name, arch, c.workload)
                    if _count(c) > self._pairs.get(key, 0):
                        found[key] = wide[c.workload]
                    self._pairs[key] = _count(c)
        return found


def _count(comparison: Comparison) -> int:
    return sum(b is not None for b in comparison.baseline) + sum(p is not None for p in comparison.patched)


def _boots(seeds: Sequence[Seed]) -> int:
    return len({seed.boot for seed in seeds})


def more_seeds(seeds: Sequence[Seed], boots: int) -> tuple[Seed, ...]:
    """The same with ``boots`` boots, each with the runs that they have now. Those that were there stay."""
    runs = sorted({seed.run for seed in seeds})
    return tuple(Seed(boot, run) for boot in range(1, boots + 1) for run in runs)


def _ahead(number: int, boots: int, wide: Mapping[Key, float], asked: Precision) -> str:
    workloads = ", ".join(sorted({f"{workload} {arch}" for _, arch, workload in wide}))
    widest = max(wide.values())
    so_far = f"±{rounded(widest)} %" if widest < float("inf") else "no exact interval"
    return f"round {number}: {boots} boots an arm for {workloads}: {so_far} so far, ±{asked.percent:g} % asked for"
