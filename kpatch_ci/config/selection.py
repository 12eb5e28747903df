# SPDX-License-Identifier: GPL-2.0-or-later
"""``select:`` of pipeline.yaml: which architectures, machines and workloads the files that a patch touches call for.

Its patterns are those of the kernel's MAINTAINERS file: ``drivers/net/`` is everything below, ``*`` stops at a slash, and
``**`` does not. The first rule that fits a path counts for it; what the rules of all paths want is put together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from kpatch_ci.config.entries import choices
from kpatch_ci.config.schema import SelectFile
from kpatch_ci.model.arch import ARCHES
from kpatch_ci.model.machine import Machine
from kpatch_ci.model.workload import Case, WorkloadPlan

SHOWN_PATHS = 3
EVERYTHING = "no rule of select: fits it, so everything is measured"


@dataclass(frozen=True, slots=True)
class Cases:
    """A workload of a rule, and which of its cases: those with all of ``settings``."""

    workload: str
    settings: tuple[tuple[str, str], ...] = ()

    def fits(self, case: Case) -> bool:
        """Whether a case is among them."""
        has = {key: str(value) for key, value in (*case.settings, *case.params)}
        return all(has.get(key) == value for key, value in self.settings)


@dataclass(frozen=True, slots=True)
class Rule:
    """One entry of ``select:``. Empty ``arches`` and ``workloads`` stand for all of the run's."""

    paths: tuple[str, ...]
    why: str
    built: bool = True
    arches: tuple[str, ...] = ()
    machines: tuple[Machine, ...] = ()
    workloads: tuple[Cases, ...] = ()
    kconfig: tuple[str, ...] = ()

    def fits(self, path: str) -> bool:
        """Whether one of the patterns matches."""
        return any(_pattern(one).fullmatch(path) for one in self.paths)


UNKNOWN = Rule(paths=(), why=EVERYTHING)


@dataclass(frozen=True, slots=True)
class Choice:
    """What a patch is tested with. ``lines`` say why, for people. Not ``built``: no file of it is part of any of our kernels."""

    built: bool
    machines: tuple[Machine, ...]
    workloads: tuple[WorkloadPlan, ...]
    kconfig: tuple[str, ...]
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line has settled already: the table has no say in it."""

    arches: bool = False
    machines: bool = False
    workloads: bool = False


def parse_cases(text: str) -> Cases:
    """``dbench fs=xfs`` -> the cases of dbench on XFS."""
    name, *settings = text.split()
    pairs = [word.partition("=") for word in settings]
    return Cases(name, tuple((key, value) for key, _, value in pairs))


Fault = tuple[tuple[str | int, ...], str, str]
"""Where in the file, what is wrong, what would be right."""


def faults(
    entries: Sequence[SelectFile],
    plans: Mapping[str, Sequence[Case]],
    machines: Collection[str],
    fragments: Collection[str],
) -> Iterator[Fault]:
    """What is wrong with ``select:``. ``plans``: each workload of the file with all cases that it has in any profile."""
    for index, one in enumerate(entries):
        known = {"arches": tuple(ARCHES), "machines": machines, "kconfig": fragments}
        for key, there in known.items():
            for place, name in enumerate(getattr(one, key)):
                if name not in there:
                    yield ("select", index, key, place), f"select: no '{name}'", choices(name, there)
        if not one.built and (one.arches or one.machines or one.workloads or one.kconfig):
            yield ("select", index), "select: `built: false` and something to build", "one of the two"
        for place, text in enumerate(one.workloads):
            cases = parse_cases(text)
            loc = ("select", index, "workloads", place)
            if cases.workload not in plans:
                yield loc, f"select: no workload '{cases.workload}'", choices(cases.workload, plans)
            elif not any(cases.fits(case) for case in plans[cases.workload]):
                labels = "; ".join(dict.fromkeys(case.label for case in plans[cases.workload]))
                yield loc, f"select: no case fits '{text}'", f"settings of one of its cases: {labels}"


def read_rules(entries: Sequence[SelectFile], load: Callable[[str], Machine]) -> tuple[Rule, ...]:
    """Rules of a file that was checked. ``load``: a machine by its name."""
    return tuple(
        Rule(
            paths=one.paths,
            why=one.why,
            built=one.built,
            arches=one.arches,
            machines=tuple(load(name) for name in one.machines),
            workloads=tuple(parse_cases(text) for text in one.workloads),
            kconfig=one.kconfig,
        )
        for one in entries
    )


def choose(
    rules: Sequence[Rule],
    paths: Sequence[str],
    machines: Sequence[Machine],
    workloads: Sequence[WorkloadPlan],
    asked: Asked = Asked(),
) -> Choice:
    """What ``paths`` call for, of the run's ``machines`` and ``workloads``."""
    found = _rules_of(rules, paths)
    building = [rule for rule, _ in found if rule.built] if found else [UNKNOWN]
    chosen_machines = _machines(building, machines, asked)
    chosen_workloads = tuple(workloads) if asked.workloads else _workloads(building, workloads)
    built = bool(building) and bool(chosen_machines)
    lines = _lines(found, chosen_machines if built else (), chosen_workloads, asked)
    kconfig = tuple(dict.fromkeys(name for rule in building for name in rule.kconfig))
    return Choice(built, chosen_machines, chosen_workloads, kconfig, lines)


def _rules_of(rules: Sequence[Rule], paths: Sequence[str]) -> list[tuple[Rule, list[str]]]:
    """The rules that count, each with its paths, in the order of the paths."""
    every = (*rules, UNKNOWN)
    found: dict[int, list[str]] = {}
    for path in paths:
        number = next((n for n, rule in enumerate(rules) if rule.fits(path)), len(rules))
        found.setdefault(number, []).append(path)
    return [(every[number], those) for number, those in found.items()]


def _machines(rules: Sequence[Rule], machines: Sequence[Machine], asked: Asked) -> tuple[Machine, ...]:
    """One an architecture: the first that a rule names for it, else the run's own."""
    named: dict[str, Machine] = {}
    if not asked.machines:
        for machine in (machine for rule in rules for machine in rule.machines):
            named.setdefault(machine.arch, machine)
    wanted = [rule.arches or tuple(m.arch for m in rule.machines) for rule in rules]
    every = asked.arches or not all(wanted)
    arches = {arch for names in wanted for arch in names}
    return tuple(named.get(m.arch, m) for m in machines if every or m.arch in arches)


def _workloads(rules: Sequence[Rule], plans: Sequence[WorkloadPlan]) -> tuple[WorkloadPlan, ...]:
    if not all(rule.workloads for rule in rules):
        return tuple(plans)
    wanted: dict[str, list[Cases]] = {}
    for cases in (cases for rule in rules for cases in rule.workloads):
        wanted.setdefault(cases.workload, []).append(cases)
    return tuple(_narrowed(plan, wanted[plan.name]) for plan in plans if plan.name in wanted)


def _narrowed(plan: WorkloadPlan, wanted: Sequence[Cases]) -> WorkloadPlan:
    """Only the cases that are wanted; all of them where this profile has none of those."""
    kept = tuple(case for case in plan.cases if any(one.fits(case) for one in wanted))
    return replace(plan, cases=kept or plan.cases)


def _lines(
    found: Sequence[tuple[Rule, Sequence[str]]],
    machines: Sequence[Machine],
    plans: Sequence[WorkloadPlan],
    asked: Asked,
) -> tuple[str, ...]:
    lines = []
    if machines:
        on = ", ".join(f"{m.arch} ({m.name})" for m in machines)
        how = {"architectures": asked.arches, "machines": asked.machines, "workloads": asked.workloads}
        told = [name for name, is_so in how.items() if is_so]
        said = f" ({' and '.join(told)}: the command line's)" if told else ""
        lines.append(f"chosen: {on}; {', '.join(_plan_text(plan) for plan in plans)}{said}")
    lines += [_because(rule, paths) for rule, paths in found]
    return tuple(lines)


def _plan_text(plan: WorkloadPlan) -> str:
    return f"{plan.name} ({len(plan.cases)} case{'s' if len(plan.cases) != 1 else ''})"


def _because(rule: Rule, paths: Sequence[str]) -> str:
    more = f" and {len(paths) - SHOWN_PATHS} more" if len(paths) > SHOWN_PATHS else ""
    word = "because of" if rule.built else "not built:"
    return f"{word} {', '.join(paths[:SHOWN_PATHS])}{more}: {rule.why}"


@cache
def _pattern(text: str) -> re.Pattern[str]:
    """A pattern of MAINTAINERS' kind as a regular expression."""
    wild = {"**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = [wild.get(part, re.escape(part)) for part in re.split(r"(\*\*|\*|\?)", text)]
    return re.compile("".join(parts) + (".*" if text.endswith("/") else ""), re.DOTALL)
