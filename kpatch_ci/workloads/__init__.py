# SPDX-License-Identifier: GPL-2.0-or-later
"""Workloads: one file each, one table, jobs out and replicates in. Pure.

expand("dbench", {"fs": ["xfs", "ext4"], "clients": [1, 4, 8]})   -> six cases
workload_job(WORKLOADS["dbench"], case, seed)                     -> what the guest's agent is told
parse_events(text, WORKLOADS["dbench"], case, seed, mode)         -> Replicate
"""

from kpatch_ci.model.workload import JOB_BYTES
from kpatch_ci.workloads.cases import expand, find_workload, make_case
from kpatch_ci.workloads.events import parse_events
from kpatch_ci.workloads.job import render_job, workload_job
from kpatch_ci.workloads.table import WORKLOADS
from kpatch_ci.workloads.types import Label, Option, ParseError, Step, Workload

__all__ = [
    "JOB_BYTES",
    "WORKLOADS",
    "Label",
    "Option",
    "ParseError",
    "Step",
    "Workload",
    "expand",
    "find_workload",
    "make_case",
    "parse_events",
    "render_job",
    "workload_job",
]
