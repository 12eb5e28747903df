# SPDX-License-Identifier: GPL-2.0-or-later
"""All workloads. A new one is one file and one line here."""

from __future__ import annotations

from kpatch_ci.workloads.dbench import DBENCH
from kpatch_ci.workloads.dd import DD
from kpatch_ci.workloads.hackbench import HACKBENCH
from kpatch_ci.workloads.types import Workload

WORKLOADS: dict[str, Workload] = {w.name: w for w in (DD, HACKBENCH, DBENCH)}
