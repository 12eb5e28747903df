# SPDX-License-Identifier: GPL-2.0-or-later
"""pipeline.yaml -> Config: validated whole, every error at once with its line and the valid choices."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kpatch_ci.board.file import load_any
from kpatch_ci.config.accel import check_accelerators
from kpatch_ci.config.cluster import EngineSettings, engine_settings
from kpatch_ci.config.entries import SeriesEntry, choices, narrow_series
from kpatch_ci.config.history import Below, HistorySettings, history_settings
from kpatch_ci.config.hosts import choose_hosts, read_hosts
from kpatch_ci.config.narrow import first_seeds, narrow, narrow_machines
from kpatch_ci.config.schema import PipelineFile, Timeouts, Value
from kpatch_ci.config.selection import Rule, faults, read_rules
from kpatch_ci.guest.machine import machine_files
from kpatch_ci.model.errors import UserError, UserErrors
from kpatch_ci.model.hosts import Host
from kpatch_ci.model.machine import Accel, Machine
from kpatch_ci.model.result import DEFAULT_ORIGIN
from kpatch_ci.model.workload import Case, Seed, WorkloadPlan
from kpatch_ci.report.formats import FORMATS, check_origin
from kpatch_ci.series.folder import folder_variants
from kpatch_ci.series.variants import SEPARATOR
from kpatch_ci.stats.precision import Precision, stricter
from kpatch_ci.stats.verdict import Thresholds
from kpatch_ci.store.yamlmodel import Lines, read, validate
from kpatch_ci.workloads.cases import expand
from kpatch_ci.workloads.table import WORKLOADS

DEFAULT_PROFILE = "default"
Loc = tuple[str | int, ...]


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
    checker = _Checker(model, lines, path.absolute().parent, selection.accel)
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


class _Checker:
    """What the schema cannot know: names that must exist beside the file. Collects errors."""

    def __init__(self, model: PipelineFile, lines: Lines, root: Path, accel: Accel | None = None) -> None:
        self.model, self.lines, self.root, self.accel = model, lines, root, accel
        self.errors: list[UserError] = []

    def series_names(self) -> list[str]:
        return sorted(p.parent.name for p in (self.root / "patches").glob("*/series.yaml"))

    def all_entries(self) -> list[SeriesEntry]:
        """Every series and every variant that there is, whether the file lists it or not."""
        return [SeriesEntry(name, one) for name in self.series_names() for one in ("", *self._variants(name))]

    def _variants(self, name: str) -> tuple[str, ...]:
        folders = self.root / "patches"
        return folder_variants(folders / name, folders)

    def series(self) -> list[SeriesEntry]:
        """The file's series, checked: each folder, variant and workload must be there, and none may stand twice."""
        entries = []
        for index, one in enumerate(self.model.series):
            if isinstance(one, str):
                name, _, chosen = one.partition(SEPARATOR) if one not in self.series_names() else (one, "", "")
                entry = SeriesEntry(name, chosen)
            else:
                entry = SeriesEntry(one.name, one.variant or "", one.workloads)
            entries.append(entry)
            self._entry(entry, ("series", index))
        names = [entry.full_name for entry in entries]
        for name in sorted({n for n in names if names.count(n) > 1}):
            self._add(f"series: '{name}' stands twice", ("series",), "each once")
        return entries

    def _entry(self, entry: SeriesEntry, loc: Loc) -> None:
        known = self.series_names()
        if entry.name not in known:
            self._add(f"series: no '{entry.name}'", loc, f"a folder of patches/: {choices(entry.name, known)}")
        elif entry.variant and entry.variant not in self._variants(entry.name):
            there = self._variants(entry.name)
            expected = choices(entry.variant, there) if there else "it has none: see patches/README.md"
            self._add(f"series: {entry.name} has no variant '{entry.variant}'", loc, expected)
        for workload in entry.workloads:
            if workload not in self.model.workloads:
                expected = choices(workload, self.model.workloads)
                self._add(f"series: {entry.full_name}: no workload '{workload}'", loc, expected)

    def fragment_names(self) -> list[str]:
        return sorted(p.stem for p in (self.root / "kconfigs").glob("*.config"))

    def names(
        self, key: str, wanted: Collection[str], known: Collection[str], what: str, loc: Loc | None = None
    ) -> None:
        loc = loc or (key,)
        for index, name in enumerate(wanted):
            if name not in known:
                self._add(f"{key}: no '{name}'", (*loc, index), f"{what}: {choices(name, known)}")
        for name in sorted({n for n in wanted if list(wanted).count(n) > 1}):
            self._add(f"{key}: '{name}' stands twice", loc, "each once")

    def exports(self) -> None:
        self.names("exports", self.model.exports, FORMATS, "a report format")
        try:
            check_origin(self.model.origin)
        except UserError as error:
            self._add(f"origin: {error.what}", ("origin",), error.expected or "")

    def machines(self, names: Collection[str], loc: Loc) -> list[Machine]:
        known = machine_files(self.root / "qemu")
        self.names("machines", names, known, "a file of qemu/", loc)
        found = [m for n in names if n in known for m in self._try(self._machine, self.root / "qemu" / f"{n}.yaml")]
        for machine in (m for m in found if m.board):
            wanted = machine.board.kconfig if machine.board else ()
            self.names(f"{machine.name}: kconfig", wanted, self.fragment_names(), "a file of kconfigs/", loc)
        arches = [m.arch for m in found]
        for arch in sorted({a for a in arches if arches.count(a) > 1}):
            self._add(f"machines: two are of {arch}", loc, "one machine an architecture")
        return found

    def _machine(self, path: Path) -> Machine:
        return load_any(path, self.accel)

    def _try(self, function: Callable[[Path], Machine], path: Path) -> list[Machine]:
        try:
            return [function(path)]
        except UserError as error:
            self.errors += error.errors if isinstance(error, UserErrors) else [error]
            return []

    def plans(self, profile: str) -> list[WorkloadPlan]:
        if profile != DEFAULT_PROFILE and profile not in self.model.profiles:
            self._add(
                f"no profile '{profile}'", ("profiles",), f"one of {', '.join([DEFAULT_PROFILE, *self.model.profiles])}"
            )
        for name, changes in self.model.profiles.items():
            for workload in changes.workloads:
                if workload not in self.model.workloads:
                    loc: Loc = ("profiles", name, "workloads", workload)
                    self._add(
                        f"profile '{name}': no workload '{workload}'", loc, choices(workload, self.model.workloads)
                    )
        found = []
        for name, entry in self.model.workloads.items():
            for other in (n for n, p in self.model.profiles.items() if name in p.workloads and n != profile):
                self._cases(name, self.model.profiles[other].workloads[name], ("profiles", other, "workloads", name))
            loc = ("workloads", name, "cases")
            cases = self._cases(name, entry.cases, loc)
            chosen = self.model.profiles.get(profile)
            if chosen and name in chosen.workloads:
                cases = self._cases(name, chosen.workloads[name], ("profiles", profile, "workloads", name))
            own = (chosen.threshold_percent if chosen else None) or entry.threshold_percent
            threshold = own or self.model.statistics.threshold_percent
            found.append(WorkloadPlan(name, _kind(name), tuple(cases), threshold))
        return found

    def _cases(self, name: str, entries: Collection[Mapping[str, Value]], loc: Loc) -> list[Case]:
        kind = _kind(name)
        if kind not in WORKLOADS:
            self._add(f"no workload '{name}'", loc[:-1], f"{choices(kind, WORKLOADS)}, each with a -suffix if wanted")
            return []
        cases: dict[str, Case] = {}
        for index, entry in enumerate(entries):
            params = self.model.workloads[name].params if name in self.model.workloads else {}
            here = (*loc, index)

            def where(key: str, here: Loc = here, entry: Mapping[str, Value] = entry) -> str:
                return self.lines.where((*here, key) if key in entry else ("workloads", name, "params", key))

            try:
                made = expand(kind, {**params, **entry}, where)
            except UserError as error:
                self.errors += error.errors if isinstance(error, UserErrors) else [error]
                continue
            for case in made:
                if case.label in cases:
                    self._add(f"{name}: case {case.label} stands twice", here, "cases that differ in a setting")
                cases[case.label] = case
        return list(cases.values())

    def rules(self) -> tuple[Rule, ...]:
        """``select:``, checked; none where something is wrong with it."""
        known = machine_files(self.root / "qemu")
        found = list(faults(self.model.select, self._every_case(), known, self.fragment_names()))
        for loc, what, expected in found:
            self._add(what, loc, expected)
        folder = self.root / "qemu"
        return () if found else read_rules(self.model.select, lambda n: load_any(folder / f"{n}.yaml", self.accel))

    def engine(self, instead: str | None) -> EngineSettings | None:
        """``engine:`` (or what the command line says ``instead``) and ``store:``, checked."""
        try:
            return engine_settings(instead or self.model.engine, self.model.store)
        except UserError as error:
            if instead and error.where == "engine":
                raise UserError(error.what, where="--engine", expected=error.expected) from error
            self._add(error.what, (error.where or "engine",), error.expected or "")
            return None

    def history(self) -> HistorySettings:
        """``history:``, checked."""
        try:
            return history_settings(self.model.history, Below(self.lines).key)
        except UserErrors as error:
            self.errors += error.errors
            return HistorySettings()

    def _every_case(self) -> dict[str, list[Case]]:
        """Each workload with the cases that it has in any profile."""
        by_profile = [{p.name: p.cases for p in self.plans(name)} for name in (DEFAULT_PROFILE, *self.model.profiles)]
        return {name: [case for plans in by_profile for case in plans.get(name, ())] for name in self.model.workloads}

    def _add(self, what: str, loc: Loc, expected: str) -> None:
        self.errors.append(UserError(what, where=self.lines.where(loc), expected=expected))

    def raise_all(self) -> None:
        unique = list({str(e): e for e in self.errors}.values())
        if unique:
            raise UserErrors(sorted(unique, key=_line))


def _line(error: UserError) -> tuple[str, int]:
    name, _, line = (error.where or ":0").rpartition(":")
    return (name, int(line)) if line.isdigit() else (str(error.where), 0)


def _kind(name: str) -> str:
    return name.split("-", 1)[0]
