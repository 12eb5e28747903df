# SPDX-License-Identifier: GPL-2.0-or-later
"""What the schema of pipeline.yaml cannot know: names that must exist beside the file, and cases that must make sense."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from kpatch_ci.board.file import load_any
from kpatch_ci.config.cluster import EngineSettings, engine_settings
from kpatch_ci.config.entries import SeriesEntry, choices
from kpatch_ci.config.history import Below, HistorySettings, history_settings
from kpatch_ci.config.schema import DEFAULT_PROFILE, PipelineFile, Value
from kpatch_ci.config.selection import Rule, faults, read_rules
from kpatch_ci.guest.machine import machine_files
from kpatch_ci.model.errors import UserError, UserErrors
from kpatch_ci.model.machine import Accel, Machine
from kpatch_ci.model.workload import Case, WorkloadPlan
from kpatch_ci.report.formats import FORMATS, check_origin
from kpatch_ci.series.folder import folder_variants
from kpatch_ci.series.variants import SEPARATOR
from kpatch_ci.store.yamlmodel import Lines
from kpatch_ci.workloads.cases import expand
from kpatch_ci.workloads.table import WORKLOADS

Loc = tuple[str | int, ...]


class Checker:
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
