# SPDX-License-Identifier: GPL-2.0-or-later
"""Statistics: samples -> comparison -> verdict. Pure. Method and sources: docs/statistics.md."""

from kpatch_ci.stats.compare import compare_arch, compare_series
from kpatch_ci.stats.holm import holm
from kpatch_ci.stats.paired import Estimate, estimate, from_log_ratios
from kpatch_ci.stats.pairs import Replicates
from kpatch_ci.stats.variance import boot_variance_share
from kpatch_ci.stats.verdict import Thresholds, decide

__all__ = [
    "Estimate",
    "Replicates",
    "Thresholds",
    "boot_variance_share",
    "compare_arch",
    "compare_series",
    "decide",
    "estimate",
    "from_log_ratios",
    "holm",
]
