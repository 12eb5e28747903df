# SPDX-License-Identifier: GPL-2.0-or-later
"""metrics.prom: a run as OpenMetrics text (version 1.0.0), for Prometheus and what reads its format."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from kpatch_ci.model.status import Status, Verdict
from kpatch_ci.report.clean import printable
from kpatch_ci.report.schema import ComparisonDoc, Document
from kpatch_ci.report.view import every_arch, mean

PREFIX = "kpatch_ci"
UNITS = {"s": "seconds", "MB/s": "megabytes_per_second", "count": "events", "1/1000": "events_per_thousand"}
"""Units as results have them -> as metric names end. Values are not converted: a figure is the same in every report."""

Labels = Mapping[str, str]
Points = Sequence[tuple[Labels, float]]


@dataclass(frozen=True, slots=True)
class _Family:
    name: str
    """Without prefix; ends in ``_`` + unit where there is one."""
    kind: str
    """``gauge``, ``stateset`` or ``info``."""
    unit: str
    help: str
    points: Points


def to_openmetrics(document: Document) -> str:
    """All metric families, ending in ``# EOF``. Families of which there is nothing are left out."""
    families = (*_run(document), *_steps(document), *_figures(document))
    return "".join(line + "\n" for f in families if f.points for line in _lines(f)) + "# EOF\n"


def _lines(family: _Family) -> Iterator[str]:
    name = f"{PREFIX}_{family.name}"
    yield f"# TYPE {name} {family.kind}"
    if family.unit:
        yield f"# UNIT {name} {family.unit}"
    yield f"# HELP {name} {_escaped(family.help)}"
    suffix = "_info" if family.kind == "info" else ""
    for labels, value in family.points:
        inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        yield f"{name}{suffix}{{{inside}}} {value!r}" if inside else f"{name}{suffix} {value!r}"


def _escaped(text: str) -> str:
    """As label values and help texts are written: backslash, quotation mark and newline behind a backslash."""
    return printable(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _states(name: str, labels: Labels, states: type[StrEnum], now: str) -> list[tuple[Labels, float]]:
    """A stateset's points: 1 for the state that it is in, 0 for each other."""
    return [({**labels, f"{PREFIX}_{name}": str(s)}, 1.0 if s == now else 0.0) for s in states]


def _run(document: Document) -> Iterator[_Family]:
    about = {"run_id": document.run_id, "mode": str(document.mode), "profile": document.profile}
    tree = {"tree": document.tree.get("label", ""), "release": document.tree.get("release", "")}
    yield _Family("run", "info", "", "The run that these figures are of.", [({**about, **tree}, 1.0)])
    status = _states("run_status", {}, Status, document.status)
    yield _Family("run_status", "stateset", "", "How the run ended.", status)
    began = _timestamp(document.started)
    stamp: Points = [({}, began)] if began is not None else []
    yield _Family("run_start_timestamp_seconds", "gauge", "seconds", "When the run began, in Unix time.", stamp)
    wall: Points = [({}, float(document.seconds))]
    yield _Family("run_duration_seconds", "gauge", "seconds", "Wall time of the run.", wall)


def _timestamp(started: str) -> float | None:
    try:
        at = datetime.fromisoformat(started)
    except ValueError:
        return None
    return at.timestamp() if at.tzinfo else None


def _steps(document: Document) -> Iterator[_Family]:
    ends: list[tuple[Labels, float]] = []
    steps: list[tuple[Labels, float]] = []
    builds: list[tuple[Labels, float]] = []
    for series in document.series:
        if not series.arches:
            ends += _states("series_status", {"series": series.name, "arch": ""}, Status, series.status)
    for series_name, arch in every_arch(document):
        where = {"series": series_name, "arch": arch.arch}
        ends += _states("series_status", where, Status, arch.status)
        steps += _states("step_status", {**where, "step": "apply", "arm": "patched"}, Status, arch.apply.status)
        for arm in ("baseline", "patched"):
            build, boot = getattr(arch.build, arm), getattr(arch.boot, arm)
            steps += _states("step_status", {**where, "step": "build", "arm": arm}, Status, build.status)
            steps += _states("step_status", {**where, "step": "boot", "arm": arm}, Status, boot.status)
            if build.status is not Status.SKIPPED:
                builds.append(({**where, "arm": arm}, float(build.seconds)))
    yield _Family("series_status", "stateset", "", "How a series ended on an architecture.", ends)
    yield _Family("step_status", "stateset", "", "How a step of a series on an architecture ended.", steps)
    yield _Family(
        "build_duration_seconds", "gauge", "seconds", "Wall time that the build took when it was made.", builds
    )


def _figures(document: Document) -> Iterator[_Family]:
    all_of_them = [(_where(name, arch.arch, c), c) for name, arch in every_arch(document) for c in arch.comparisons]
    yield from _means(all_of_them)
    counts = [
        ({**where, "arm": arm}, float(sum(v is not None for v in values)))
        for where, c in all_of_them
        for arm, values in _arms(c)
    ]
    yield _Family("samples", "gauge", "", "Samples that a figure rests on.", counts)
    for name, text, value in PERCENTS:
        points = [(where, float(v)) for where, c in all_of_them if (v := value(c)) is not None]
        yield _Family(name, "gauge", "percent", text, points)
    adjusted = [(where, float(c.p_adjusted)) for where, c in all_of_them if c.p_adjusted is not None]
    yield _Family("p_adjusted", "gauge", "", "p-value, adjusted for the number of comparisons.", adjusted)
    verdicts = [point for where, c in all_of_them for point in _states("verdict", where, Verdict, c.verdict)]
    yield _Family("verdict", "stateset", "", "What the comparison says.", verdicts)


def _low(c: ComparisonDoc) -> float | None:
    return c.ci_percent[0] if c.ci_percent else None


def _high(c: ComparisonDoc) -> float | None:
    return c.ci_percent[1] if c.ci_percent else None


PERCENTS: tuple[tuple[str, str, Callable[[ComparisonDoc], float | None]], ...] = (
    ("change_percent", "Change by the patch; positive is better, whatever the metric.", lambda c: c.change_percent),
    ("change_low_percent", "Lower end of the change's interval.", _low),
    ("change_high_percent", "Upper end of the change's interval.", _high),
    ("mde_percent", "Smallest change that such a comparison finds in four of five.", lambda c: c.mde_percent),
)
"""Gauges of a comparison in percent: name, help, value."""


def _where(series: str, arch: str, c: ComparisonDoc) -> dict[str, str]:
    return {"series": series, "arch": arch, "workload": c.workload, "case": c.case, "metric": c.metric}


def _arms(c: ComparisonDoc) -> tuple[tuple[str, list[float | None]], ...]:
    return (("baseline", c.baseline), ("patched", c.patched))


def _means(found: Iterable[tuple[dict[str, str], ComparisonDoc]]) -> Iterator[_Family]:
    """One family a unit: a name ends in its unit."""
    units: dict[str, list[tuple[Labels, float]]] = {}
    for where, c in found:
        points = units.setdefault(_unit(c.unit), [])
        points += [({**where, "arm": arm}, m) for arm, values in _arms(c) if (m := mean(values)) is not None]
    for unit, points in units.items():
        yield _Family(f"mean_{unit}", "gauge", unit, "Arithmetic mean of an arm's samples.", points)


def _unit(unit: str) -> str:
    return UNITS.get(unit) or re.sub(r"[^a-z0-9]+", "_", unit.lower()).strip("_") or "units"
