# SPDX-License-Identifier: GPL-2.0-or-later
"""Frequency over time: what the cpufreq module recorded in one replicate of each arm, bounded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kpatch_ci.model.result import ArmResult
from kpatch_ci.model.status import Status
from kpatch_ci.model.workload import Replicate, Seed
from kpatch_ci.report.recorded import is_count

MOST_CASES = 4
"""Of a workload: its first ones."""
MOST_CHANGES = 400
"""Of a line. Where there were more, it is what was in force at so many evenly spaced times."""

Change = tuple[int, int]
"""ns since the start, and kHz from then on."""


def timelines(baseline: ArmResult | None, patched: ArmResult | None) -> list[dict[str, Any]]:
    """For the first cases of each workload, and each policy, both arms' lines under one seed.

    The seed is the first under which both arms passed and told something, else the first of one arm, whose other has no line.
    """
    arms = [_told(baseline), _told(patched)]
    found = []
    for workload, case in _first_cases([*arms[0], *arms[1]]):
        runs = [arm.get((workload, case), {}) for arm in arms]
        seed = next((s for s in runs[0] if s in runs[1]), next(iter([*runs[0], *runs[1]])))
        lines = [_lines(run[seed]) if seed in run else {} for run in runs]
        for policy in dict.fromkeys([*lines[0], *lines[1]]):
            one = {
                arm: line[policy] for arm, line in zip(("baseline", "patched"), lines, strict=True) if policy in line
            }
            found.append({"workload": workload, "case": case, "seed": str(seed), "policy": policy, **one})
    return found


def _told(arm: ArmResult | None) -> dict[tuple[str, str], dict[Seed, Mapping[str, Any]]]:
    found: dict[tuple[str, str], dict[Seed, Mapping[str, Any]]] = {}
    for run in arm.replicates if arm else ():
        told = _frequency(run)
        if told and run.status is Status.PASSED:
            found.setdefault((run.workload, run.case), {})[run.seed] = told
    return found


def _frequency(run: Replicate) -> Mapping[str, Any] | None:
    """What the guest said, where it can be read as far as its policies."""
    told = run.extra.get("frequency")
    if not isinstance(told, Mapping) or not isinstance(told.get("policies"), Mapping) or not told["policies"]:
        return None
    return told if all(is_count(told.get(key)) for key in ("span_ns", "lost", "known_from_ns")) else None


def _first_cases(keys: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    kept: dict[str, dict[str, None]] = {}
    for workload, case in keys:
        cases = kept.setdefault(workload, {})
        if len(cases) < MOST_CASES:
            cases[case] = None
    return [(workload, case) for workload, cases in kept.items() for case in cases]


def _lines(told: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    found = {}
    for policy, line in told["policies"].items():
        if not isinstance(line, Mapping) or not is_count(line.get("khz")) or not isinstance(line.get("changes"), list):
            continue
        changes = [tuple(c) for c in line["changes"] if isinstance(c, list) and len(c) == 2 and all(map(is_count, c))]
        found[str(policy)] = {
            "span_ns": told["span_ns"],
            "khz": line["khz"],
            "changes": thinned(changes, line["khz"], told["span_ns"]),
            "total": len(changes),
            "lost": told["lost"],
            "known_from_ns": told["known_from_ns"],
        }
    return found


def thinned(changes: Sequence[Change], khz: int, span_ns: int, most: int = MOST_CHANGES) -> list[Change]:
    """``changes`` (times rising) as they are, or, where there are more than ``most``, what was in force at ``most`` times.

    ``khz`` was in force before the first. A time at which it is the same as at the last has no entry.
    """
    if len(changes) <= most:
        return list(changes)
    kept: list[Change] = []
    last, i, now = khz, 0, khz
    for slot in range(1, most + 1):
        at = span_ns * slot // most
        while i < len(changes) and changes[i][0] <= at:
            now = changes[i][1]
            i += 1
        if now != last:
            kept.append((at, now))
            last = now
    return kept
