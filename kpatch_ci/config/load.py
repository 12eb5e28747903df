# SPDX-License-Identifier: GPL-2.0-or-later
"""pipeline.yaml -> Config: validated whole, every error at once with its line and the valid choices."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from kpatch_ci.config.accel import check_accelerators
from kpatch_ci.config.checker import Checker
from kpatch_ci.config.cluster import EngineSettings
from kpatch_ci.config.entries import SeriesEntry, narrow_series
from kpatch_ci.config.history import HistorySettings
from kpatch_ci.config.hosts import choose_hosts, read_hosts
from kpatch_ci.config.narrow import first_seeds, narrow, narrow_machines
from kpatch_ci.config.schema import DEFAULT_PROFILE, PipelineFile, Timeouts
from kpatch_ci.config.selection import Rule
from kpatch_ci.model.errors import UserError
from kpatch_ci.model.hosts import Host
from kpatch_ci.model.machine import Accel, Machine
from kpatch_ci.model.result import DEFAULT_ORIGIN
from kpatch_ci.model.workload import Seed, WorkloadPlan
from kpatch_ci.stats.precision import Precision, stricter
from kpatch_ci.stats.verdict import Thresholds
from kpatch_ci.store.yamlmodel import read, validate


@dataclass(frozen=True, slots=True)
class Selection:
    """What the command line narrows; empty means all. ``seeds`` is a number of seeds, ``tree`` another tree."""

    series: tuple[str, ...] = ()
    arches: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    seeds: int | None = None
    profile: str = DEFAULT_PROFILE
    tree: str | None = None
    accel: Accel | None = None
    """Instead of the machines' own."""
    variants: bool = False
    """All variants of the chosen series too."""
    fuzz: int = 0
    precision_percent: float | None = None
    """Instead of the file's; likewise ``max_seeds``."""
    max_seeds: int | None = None
    budget: float | None = None
    """Seconds of wall time for the whole command."""
    on: tuple[str, ...] | None = None
    """Names of the hosts to use, ``here`` for this machine; None: all of them."""
    engine: str | None = None
    """Instead of the file's."""


@dataclass(frozen=True, slots=True)
class Config:
    """A pipeline, ready to run. ``root`` holds patches/, kconfigs/ and qemu/."""

    path: Path
    root: Path
    profile: str
    tree: str
    series: tuple[SeriesEntry, ...]
    machines: tuple[Machine, ...]
    kconfig: tuple[str, ...]
    tools: str
    archives: tuple[str, str | None] | None
    workloads: tuple[WorkloadPlan, ...]
    seeds: tuple[Seed, ...]
    thresholds: Thresholds
    timeouts: Timeouts
    fuzz: int = 0
    """Lines of context that may be ignored where a mail does not apply otherwise; only ever asked for on the command line."""
    rules: tuple[Rule, ...] = ()
    """What `try` goes by."""
    own_machines: bool = False
    """Whether the machines are those of a profile."""
    precision: Precision | None = None
    """How narrow the intervals are to be, where that was asked for: boots are added to ``seeds`` then."""
    exports: tuple[str, ...] = ()
    """Report formats beside the standard ones."""
    origin: str = DEFAULT_ORIGIN
    """What KCIDB calls this CI system."""
    budget: float | None = None
    """Seconds of wall time for the whole command; None: as long as it takes."""
    history: HistorySettings = field(default_factory=HistorySettings)
    hosts: tuple[Host, ...] = ()
    """Machines that do stages."""
    spare_here: bool = False
    """Whether this machine does nothing that one of them can do."""
    engine: EngineSettings | None = None
    """A cluster; None: this machine."""

    @property
    def patches(self) -> Path:
        """The folder of series."""
        return self.root / "patches"

    def fragments(self, arch: str) -> tuple[Path, ...]:
        """Kconfig fragments of an architecture, in order: its own comes second, so that the needs may override it."""
        boards = [name for m in self.machines if m.arch == arch and m.board for name in m.board.kconfig]
        names = dict.fromkeys((self.kconfig[0], arch, *self.kconfig[1:], *boards))
        return tuple(self.root / "kconfigs" / f"{name}.config" for name in names)


def load_config(path: Path, selection: Selection = Selection()) -> Config:
    """Read pipeline.yaml and narrow it. Raises UserErrors: of the file first, then of the selection."""
    data, lines = read(path)
    model = validate(data, PipelineFile, lines)
    checker = Checker(model, lines, path.absolute().parent, selection.accel)
    for name, changes in model.profiles.items():
        if changes.machines and name != selection.profile:
            checker.machines(changes.machines, ("profiles", name, "machines"))
    chosen = model.profiles.get(selection.profile)
    if chosen and chosen.machines:
        machines = checker.machines(chosen.machines, ("profiles", selection.profile, "machines"))
    else:
        machines = checker.machines(model.machines, ("machines",))
    entries = checker.series()
    checker.names("kconfig", model.kconfig, checker.fragment_names(), "a file of kconfigs/")
    plans = checker.plans(selection.profile)
    rules = checker.rules()
    checker.exports()
    history = checker.history()
    engine = checker.engine(selection.engine)
    checker.raise_all()
    hosts, here_too = choose_hosts(read_hosts(model.hosts, checker.root, lines), selection.on)
    seeds = first_seeds((chosen.seeds if chosen else None) or model.seeds, selection.seeds)
    narrowed = narrow_machines(machines, selection.arches)
    check_accelerators(narrowed, checker.root / "qemu", selection.accel)
    precision = _precision(model, selection, len({seed.boot for seed in seeds}))
    return Config(
        path=path,
        root=checker.root,
        profile=selection.profile,
        tree=selection.tree or model.tree,
        series=narrow_series(
            entries, checker.all_entries(), selection.series, selection.workloads, variants=selection.variants
        ),
        machines=narrowed,
        kconfig=model.kconfig,
        tools=model.tools,
        archives=(model.archives.main, model.archives.security) if model.archives else None,
        workloads=tuple(p for p in plans if p.name in narrow("workload", [p.name for p in plans], selection.workloads)),
        seeds=seeds,
        thresholds=stricter(_thresholds(model)) if precision else _thresholds(model),
        timeouts=model.timeouts,
        fuzz=selection.fuzz,
        rules=rules,
        own_machines=bool(chosen and chosen.machines),
        precision=precision,
        exports=model.exports,
        origin=model.origin,
        budget=selection.budget,
        history=history,
        hosts=hosts,
        spare_here=bool(hosts) and not here_too,
        engine=engine,
    )


def _thresholds(model: PipelineFile) -> Thresholds:
    numbers = model.statistics
    return Thresholds(alpha=numbers.alpha, confidence=numbers.confidence)


def _precision(model: PipelineFile, selection: Selection, boots: int) -> Precision | None:
    """What is asked for, by the command line or else the file. Raises UserError where the cap is below what a run starts with."""
    percent = selection.precision_percent or model.statistics.precision_percent
    most = selection.max_seeds or model.statistics.max_seeds
    if percent is None:
        return None
    if most < boots:
        what = f"at most {most} boots cannot start with {boots}"
        raise UserError(what, where="max_seeds", expected=f"{boots} or more, or fewer --seeds to start with")
    return Precision(percent, most)
