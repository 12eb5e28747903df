# SPDX-License-Identifier: GPL-2.0-or-later
"""The text of a job, as the guest's agent reads it (qemu/guest/job.c)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kpatch_ci.model.errors import UserError
from kpatch_ci.model.series import Switches
from kpatch_ci.model.workload import JOB_BYTES, Case, Seed
from kpatch_ci.workloads.types import Step, Workload, text

FEATURES, OLD_FEATURES, FEATURES_MOVED = "/sys/kernel/debug/sched/features", "/sys/kernel/debug/sched_features", (5, 13)
"""Where the scheduler's features are switched, before and since 5.13."""
MAX_FIELDS = 128
"""Fields a line, the directive included."""

_FIELDS = {
    "seed": (1, 1),
    "timeout": (1, 1),
    "write": (2, 2),
    "mkdir": (1, 1),
    "mount": (3, 4),
    "prep": (1, MAX_FIELDS - 1),
    "run": (1, MAX_FIELDS - 1),
}
"""Directive -> fewest and most fields after it."""


def workload_job(workload: Workload, case: Case, seed: Seed, before: Sequence[Step] = ()) -> str:
    """The job of one replicate: run seed, time limit, ``before``, and the workload's steps. Raises like render_job."""
    limit = Step("timeout", (text(case, "timeout_s"),))
    return render_job(seed.run, (limit, *before, *workload.steps(case)))


def switch_off(switches: Switches, release: str) -> tuple[Step, ...]:
    """Steps that turn a series' change off. A kernel that does not know a feature or a sysctl fails the job."""
    features = FEATURES if _version(release) >= FEATURES_MOVED else OLD_FEATURES
    return (
        *(Step("write", (features, f"NO_{name}")) for name in switches.sched_features),
        *(Step("write", (f"/proc/sys/{path}", value)) for path, value in switches.sysctls),
    )


def _version(release: str) -> tuple[int, int]:
    major, minor = re.findall(r"\d+", release)[:2]
    return int(major), int(minor)


def render_job(run_seed: int, steps: Sequence[Step]) -> str:
    """Directives one a line, fields TAB-separated, with a final newline; at most JOB_BYTES bytes of UTF-8.

    Raises UserError for a field that would break the format, a directive that the agent would refuse, or too long a job.
    """
    job = "".join(_line(step) for step in (Step("seed", (str(run_seed),)), *steps))
    size = len(job.encode())
    if size > JOB_BYTES:
        raise UserError(f"job of {size} bytes", expected=f"at most {JOB_BYTES}: shorter paths or fewer arguments")
    return job


def _line(step: Step) -> str:
    if step.directive not in _FIELDS:
        raise UserError(f"job: unknown directive {step.directive!r}", expected="one of " + ", ".join(_FIELDS))
    fewest, most = _FIELDS[step.directive]
    if not fewest <= len(step.fields) <= most:
        what = f"job: {step.directive} with {len(step.fields)} fields"
        raise UserError(what, expected=f"{fewest} to {most}")
    for field in step.fields:
        if any(c in field for c in "\t\n\0"):
            what = f"job: {step.directive} cannot carry {field!r}"
            raise UserError(what, expected="no tab, newline or NUL in a field")
    return "\t".join((step.directive, *step.fields)) + "\n"
