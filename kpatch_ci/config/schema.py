# SPDX-License-Identifier: GPL-2.0-or-later
"""What pipeline.yaml may say: its keys, their types and their defaults."""

from __future__ import annotations

from typing import Annotated

import pydantic

from kpatch_ci.config.cluster import LOCAL, EngineFile, StoreFile
from kpatch_ci.config.hosts import HostFile
from kpatch_ci.config.nightly_schema import NightlyFile
from kpatch_ci.model.result import DEFAULT_ORIGIN
from kpatch_ci.stats.precision import DEFAULT_MOST
from kpatch_ci.store.yamlmodel import Strict

DEFAULT_PROFILE = "default"
Value = str | int | tuple[str | int, ...]
"""A setting's value, or several: the product of all lists gives the cases."""
Positive = Annotated[int, pydantic.Field(gt=0)]
Percent = Annotated[float, pydantic.Field(gt=0, lt=100, strict=False)]
Fraction = Annotated[float, pydantic.Field(gt=0, lt=1)]


class Seeds(Strict):
    """How many boots an arm gets, and how many runs a boot: boots x runs seeds. Statistics are over boots."""

    boots: Positive = 12
    runs: Positive = 1


class WorkloadFile(Strict):
    """One workload. ``cases``: mappings of settings; a list of values stands for one case each."""

    cases: tuple[dict[str, Value], ...] = pydantic.Field(min_length=1)
    params: dict[str, str | int] = pydantic.Field(default_factory=dict)
    threshold_percent: Percent | None = None


class Statistics(Strict):
    """When a difference counts: error rate, confidence of intervals, and the smallest change that matters.

    ``precision_percent``: boots are added until half the width of every primary figure's interval is at most that, or
    ``max_seeds`` boots are reached.
    """

    alpha: Fraction = 0.05
    confidence: Fraction = 0.95
    threshold_percent: Percent = 1.0
    precision_percent: Percent | None = None
    max_seeds: Positive = DEFAULT_MOST


class Timeouts(Strict):
    """Wall seconds on this machine after which a stage is ended. ``silence``: of a guest that says nothing.

    ``replicate``: for each invocation of the workload, where it has several (``iterations``).
    """

    build: Positive = 3600
    boot: Positive = 180
    replicate: Positive = 180
    silence: Positive = 120


class ArchivesFile(Strict):
    """Debian archives to use instead of the host's own."""

    main: str
    security: str | None = None


class ProfileFile(Strict):
    """What a profile changes: fewer seeds, other cases, other machines, another threshold. What it does not name stays."""

    seeds: Seeds | None = None
    threshold_percent: Percent | None = None
    machines: tuple[str, ...] | None = None
    workloads: dict[str, tuple[dict[str, Value], ...]] = pydantic.Field(default_factory=dict)


class SeriesEntryFile(Strict):
    """One of ``series:`` that is more than a name: a variant of it, or with some of the workloads only."""

    name: str
    variant: str | None = None
    workloads: tuple[str, ...] = ()


class SelectFile(Strict):
    """One rule of ``select:``: what `try` does with the files that a patch touches. The first whose path fits counts."""

    paths: tuple[str, ...] = pydantic.Field(min_length=1)
    why: str = pydantic.Field(min_length=1)
    built: bool = True
    arches: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    """A workload's name, and settings of the cases that matter: ``dbench fs=xfs``."""
    kconfig: tuple[str, ...] = ()
    """Fragments that the kernels get besides those of the run."""


class HistoryFile(Strict):
    """Where runs are recorded, and how large a change over nights must be to be an alert (docs/history.md).

    A text alone is the place.
    """

    place: str | None = None
    thresholds: dict[str, str | float | int] = pydantic.Field(default_factory=dict)

    @pydantic.model_validator(mode="before")
    @classmethod
    def _place_alone(cls, data: object) -> object:
        return {"place": data} if isinstance(data, str) else data


class PipelineFile(Strict):
    """The whole file."""

    tree: str = "debian:6.1"
    series: tuple[str | SeriesEntryFile, ...] = pydantic.Field(min_length=1)
    machines: tuple[str, ...] = pydantic.Field(min_length=1)
    kconfig: tuple[str, ...] = pydantic.Field(min_length=1)
    tools: str = "trixie"
    archives: ArchivesFile | None = None
    workloads: dict[str, WorkloadFile] = pydantic.Field(min_length=1)
    seeds: Seeds = Seeds()
    statistics: Statistics = Statistics()
    timeouts: Timeouts = Timeouts()
    profiles: dict[str, ProfileFile] = pydantic.Field(default_factory=dict)
    select: tuple[SelectFile, ...] = ()
    history: HistoryFile = HistoryFile()
    exports: tuple[str, ...] = ()
    """Report formats beside the standard ones: kcidb, openmetrics, csv, parquet."""
    origin: str = DEFAULT_ORIGIN
    """What KCIDB calls this CI system: lower-case letters, digits and _."""
    nightly: NightlyFile | None = None
    hosts: dict[str, HostFile] = pydantic.Field(default_factory=dict)
    """Machines that boot and measure, beside this one."""
    engine: str | EngineFile = LOCAL
    """Where boots, replicates and builds run: here, or on a cluster of dask's (docs/cluster.md)."""
    store: StoreFile | None = None
    """Where a cluster's workers get artifacts from."""
