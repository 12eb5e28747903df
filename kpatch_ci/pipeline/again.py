# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests that were lost once and not again when they were booted a second time (guest/secondlook.py), as a run tells of them.

Neither a pass nor a failure: a race of the patch that shows in one boot of fifty looks like this, and so does a fault of the emulator.
"""

from __future__ import annotations

from collections.abc import Iterator

from kpatch_ci.model.result import UNDECIDED, ArmResult, Once
from kpatch_ci.model.status import Status


def lost_once(baseline: ArmResult | None, patched: ArmResult | None) -> tuple[Once, ...]:
    """Every such guest of both arms, boots before replicates."""
    arms = (("baseline", baseline), ("patched", patched))
    return tuple(one for name, arm in arms if arm is not None for one in _of(name, arm))


def _of(name: str, arm: ArmResult) -> Iterator[Once]:
    for boot in arm.boots:
        if boot.first and boot.status is Status.PASSED:
            yield Once(name, "boot", str(boot.boot_seed), boot.first.reason, boot.first.log_tail)
    for run in arm.replicates:
        if run.first and run.status is Status.PASSED:
            yield Once(name, f"{run.workload} {run.case}", str(run.seed), run.first.reason, run.first.log_tail)


def undecided(guests: tuple[Once, ...]) -> tuple[Status, str] | None:
    """What they make of a series that is without a fault otherwise: an error, for nothing of it is the patch's for certain."""
    if not guests:
        return None
    first = guests[0]
    more = f" (and {len(guests) - 1} more)" if len(guests) > 1 else ""
    return Status.ERROR, f"{first.arm}, {first.what} (seed {first.seed}): {first.reason}; {UNDECIDED}{more}"
