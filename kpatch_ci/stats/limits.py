# SPDX-License-Identifier: GPL-2.0-or-later
"""How large a change over nights must be to be an alert: a limit a metric, relative, absolute or both. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from kpatch_ci.model.history import Limit

DEFAULT = "default"
LIMITS: Mapping[str, Limit] = {
    DEFAULT: Limit(DEFAULT, percent=2.0),
    "context_switches": Limit("context_switches", percent=5.0),
    "wakeups": Limit("wakeups", percent=5.0),
    "migrations": Limit("migrations", percent=10.0, amount=5.0),
}
"""What pipeline.yaml and the command line override. Counters move more than times do when a kernel changes, and mean less."""


def limit_for(limits: Mapping[str, Limit], workload: str, metric: str) -> Limit:
    """The most particular one: of ``workload.metric``, of the metric, of ``default``; those of ``limits`` come before ours."""
    every = {**LIMITS, **limits}
    return next(every[name] for name in (f"{workload}.{metric}", metric, DEFAULT) if name in every)
