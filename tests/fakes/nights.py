# SPDX-License-Identifier: GPL-2.0-or-later
"""Made-up histories of one figure: what nights of real time, and of virtual time on a kernel that moves, look like."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kpatch_ci.model.history import Condition, Line, Night

NIGHTS = 200
PLANTED: Mapping[int, tuple[Condition, float]] = {
    60: (Condition.COMPILER, 1.05),
    110: (Condition.KERNEL, 1 / 1.05),
    160: (Condition.QEMU, 1.06),
}
"""Night -> what changes in it, and what that does to the figure: a regression, its recovery, another regression."""


def line(mode: str, metric: str = "time", better: str = "lower") -> Line:
    """One of hackbench's."""
    return Line("debian:6.1", "s", "arm64", "hackbench", "all", metric, "patched", mode, "default", "s", better)


def night(number: int, values: Mapping[str, float], **conditions: str) -> Night:
    """Night ``number``; keys of ``conditions`` are Condition's names."""
    started = f"2026-01-{1 + number % 28:02d}T02:00:00+00:00"
    return Night(f"n{number:03d}", started, values, {str(Condition[k]): v for k, v in conditions.items()})


def number_of(run: str) -> int:
    """The night that ``run`` names."""
    return int(run[1:])


def real_time(
    seed: int, planted: Mapping[int, tuple[Condition, float]], *, correlation: float = 0.3, spread: float = 0.01
) -> list[Night]:
    """Heavy tails (Student's t, 4 degrees) and some memory from night to night, odd nights (one in fifty, some 8 % slower), six runs."""
    dice = np.random.default_rng(seed)
    level, noise = 10.0, 0.0
    conditions = {"KERNEL": "k0", "COMPILER": "c0", "QEMU": "q0", "HOST": "h"}
    found = []
    for number in range(NIGHTS):
        if number in planted:
            what, factor = planted[number]
            conditions = {**conditions, what.name: f"new{number}"}
            level *= factor
        noise = correlation * noise + float(dice.standard_t(4)) * spread / np.sqrt(2) * np.sqrt(1 - correlation**2)
        odd = 1 + abs(float(dice.normal(0, 0.1))) if dice.random() < 0.02 else 1.0
        values = {f"{n}.1": level * (1 + noise) * odd * float(np.exp(dice.normal(0, 0.01))) for n in range(1, 7)}
        found.append(night(number, values, **conditions))
    return found


def virtual_time(
    seed: int, planted: Mapping[int, tuple[Condition, float]], *, moves: float, boots: int = 6, runs: int = 2
) -> list[Night]:
    """Samples are the same again until something changes; then each seed's path is another one, 1 % around the level.

    ``moves``: share of the nights in which the kernel is another one that does nothing to the figure.
    """
    dice = np.random.default_rng(seed)
    level, paths = 10.0, _paths(dice, boots, runs)
    conditions = {"KERNEL": "k", "COMPILER": "c", "QEMU": "q", "GUEST": "g"}
    found = []
    for number in range(NIGHTS):
        if number in planted:
            what, factor = planted[number]
            conditions, level, paths = (
                {**conditions, what.name: f"new{number}"},
                level * factor,
                _paths(dice, boots, runs),
            )
        elif dice.random() < moves:
            conditions, paths = {**conditions, "KERNEL": f"k{number}"}, _paths(dice, boots, runs)
        found.append(night(number, {key: level * path for key, path in paths.items()}, **conditions))
    return found


def _paths(dice: np.random.Generator, boots: int, runs: int) -> dict[str, float]:
    return {
        f"{boot}.{run}": float(np.exp(shared + dice.normal(0, 0.007)))
        for boot in range(1, boots + 1)
        for shared in [dice.normal(0, 0.007)]
        for run in range(1, runs + 1)
    }
