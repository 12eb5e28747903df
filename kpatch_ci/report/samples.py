# SPDX-License-Identifier: GPL-2.0-or-later
"""Every sample of a run as a row, for people who do their own statistics: samples.csv and samples.parquet are these rows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import NamedTuple

from kpatch_ci.report.clean import one_line
from kpatch_ci.report.schema import ComparisonDoc, Document
from kpatch_ci.report.view import every_arch


class Sample(NamedTuple):
    """One value of one metric in one replicate. The field names are the files' columns."""

    series: str
    """With its variant: ``SERIES+VARIANT``."""
    arch: str
    workload: str
    case: str
    metric: str
    unit: str
    better: str
    """``lower`` or ``higher``."""
    mode: str
    """deterministic, virtual-time, tcg, kvm or hardware."""
    arm: str
    """``baseline`` or ``patched``."""
    boot_seed: int | None
    run_seed: int | None
    """None where an old result does not say."""
    value: float


def samples(document: Document) -> Iterator[Sample]:
    """In the document's order. Primary figures are means over cases, no samples: they are left out, and so is what no arm measured."""
    for series, arch in every_arch(document):
        for comparison in arch.comparisons:
            if not comparison.primary:
                yield from _of(series, arch.arch, comparison)


def _of(series: str, arch: str, c: ComparisonDoc) -> Iterator[Sample]:
    names = [one_line(text) for text in (series, arch, c.workload, c.case, c.metric, c.unit)]
    series, arch, workload, case, metric, unit = names
    for arm, values in (("baseline", c.baseline), ("patched", c.patched)):
        for seed, value in zip_longest(c.seeds[: len(values)], values, fillvalue=""):
            if isinstance(value, float):
                boot, run = _seeds(seed)
                yield Sample(series, arch, workload, case, metric, unit, c.better, str(c.mode), arm, boot, run, value)


def _seeds(seed: str | float | None) -> tuple[int | None, int | None]:
    """``boot.run`` as two numbers."""
    boot, _, run = str(seed).partition(".")
    return (int(boot) if boot.isdecimal() else None, int(run) if run.isdecimal() else None)
