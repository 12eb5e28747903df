# SPDX-License-Identifier: GPL-2.0-or-later
"""From a document's comparisons to the page's figures: which rows share an axis, and what each row says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from kpatch_ci.model.workload import COUNTERS, MIGRATIONS
from kpatch_ci.report.html import plots
from kpatch_ci.report.html.guest import cpus_named, khz_of, megahertz, policy_cpus
from kpatch_ci.report.html.scale import scale_of
from kpatch_ci.report.labels import split_labels
from kpatch_ci.report.schema import ArchDoc, ComparisonDoc, ResidencyDoc
from kpatch_ci.report.view import (
    UNPAIRED,
    cases,
    change,
    counters,
    figure,
    mean,
    migration_rates,
    pair_changes,
    percent,
    primaries,
)

MOST_PERCENT = 100.0
"""Where an axis of changes ends at the latest: a counter near 0 may change by thousands of percent."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a plot."""

    label: str
    strip: Markup
    value: str
    verdict: str = ""
    primary: bool = False


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows that share an axis."""

    rows: tuple[Row, ...]
    axis: Markup


@dataclass(frozen=True, slots=True)
class Panel:
    """One case's samples by seed."""

    label: str
    picture: Markup


@dataclass(frozen=True, slots=True)
class Bars:
    """One case and policy: a bar an arm. ``shares``: frequency, baseline, patched, as the table has them."""

    label: str
    arms: tuple[tuple[str, Markup], ...]
    shares: tuple[tuple[str, str, str], ...]


def intervals(arch: ArchDoc, comparisons: Sequence[ComparisonDoc], threshold: float | None) -> Rows:
    """Changes with their intervals, one row a comparison of ``arch``."""
    values = [v for c in comparisons for v in (*(c.ci_percent or ()), c.change_percent) if v is not None]
    scale = scale_of(values, least=(threshold or 0) * 1.2, most=MOST_PERCENT)
    labels = {name: _labels(arch, name)[1] for name in {c.workload for c in comparisons}}
    rows = [
        Row(
            labels[c.workload][c.case],
            plots.interval_strip(c, scale, threshold),
            change(c),
            str(c.verdict),
            c.primary,
        )
        for c in comparisons
    ]
    return Rows(tuple(rows), plots.percent_axis(scale))


def shared_settings(arch: ArchDoc, workload: str) -> str:
    """Settings that all cases of a workload have, which its plots say once; empty where there are none, or one case only."""
    return _labels(arch, workload)[0]


def _labels(arch: ArchDoc, workload: str) -> tuple[str, dict[str, str]]:
    """``shared_settings``, and by case what its plots call it: what else its label says."""
    found = [c for c in arch.comparisons if c.workload == workload]
    every = list(dict.fromkeys(c.case for c in found if not c.primary))
    shared, own = split_labels(every) if len(every) > 1 else ("", every)
    labels = {case: label or case for case, label in zip(every, own, strict=True)}
    return shared, {c.case: labels.get(c.case, c.case) for c in found}


def counter_groups(arch: ArchDoc, workload: str) -> list[tuple[str, list[ComparisonDoc]]]:
    """Counters by name, migrations first."""
    found: dict[str, list[ComparisonDoc]] = {m.name: [] for m in (MIGRATIONS, *COUNTERS)}
    for c in counters(arch, workload):
        found.setdefault(c.metric, []).append(c)
    return [(name, group) for name, group in found.items() if group]


def rates(arch: ArchDoc, workload: str) -> Rows | None:
    """Migrations per 1000 context switches, baseline to patched."""
    found = migration_rates(arch, workload)
    if not found:
        return None
    labels = _labels(arch, workload)[1]
    scale = scale_of(v for _, before, after in found for v in (before, after))
    rows = [
        Row(
            labels[case],
            plots.change_strip(before, after, scale, f"{case}: {_to(before, after)}"),
            _to(before, after),
        )
        for case, before, after in found
    ]
    return Rows(tuple(rows), plots.plain_axis(scale))


def _to(before: float, after: float) -> str:
    return f"{figure(before)} \N{RIGHTWARDS ARROW} {figure(after)}"


def panels(arch: ArchDoc, workload: str) -> list[Panel]:
    """The workload's own figures by seed: each pair's change, or both arms' samples where they make no pairs."""
    own = [*primaries(arch, workload), *cases(arch, workload)]
    labels = _labels(arch, workload)[1]
    paired = [c for c in own if is_paired(c)]
    changes = [pair_changes(c) for c in paired]
    scale = scale_of((v for each in changes for v in each if v is not None), least=0.1)
    found = [
        Panel(labels[c.case], plots.seed_panel(each, c.seeds, scale, _said(c, each)))
        for c, each in zip(paired, changes, strict=True)
    ]
    return found + [_samples(c, labels[c.case]) for c in own if not is_paired(c)]


def is_paired(c: ComparisonDoc) -> bool:
    """Whether the arms' values belong together one by one."""
    return c.mode not in UNPAIRED and len(c.baseline) == len(c.patched) == len(c.seeds)


def _said(c: ComparisonDoc, changes: Sequence[float | None]) -> str:
    there = [v for v in changes if v is not None]
    if not there:
        return f"{c.workload} {c.metric} ({c.case}): no pairs"
    better = sum(v > 0 for v in there)
    ends = f"{percent(min(there))} to {percent(max(there))} %"
    return f"{c.workload} {c.metric} ({c.case}): {len(there)} pairs, {better} of them better, {ends}"


def _samples(c: ComparisonDoc, label: str) -> Panel:
    baseline, patched = ([v for v in values if v is not None] for values in (c.baseline, c.patched))
    means = f"{figure(mean(c.baseline))} against {figure(mean(c.patched))} {c.unit}"
    said = f"{c.workload} {c.metric} ({c.case}): {len(baseline)} and {len(patched)} samples, means {means}"
    scale = scale_of([*baseline, *patched])
    return Panel(label, plots.sample_panel(baseline, patched, scale, said))


def pair_rows(arch: ArchDoc, workload: str) -> Iterator[tuple[str, str, str, str, str]]:
    """Case, seed, baseline, patched and change of each sample: the table behind ``panels``."""
    for c in (*primaries(arch, workload), *cases(arch, workload)):
        if is_paired(c):
            changes = pair_changes(c)
            for seed, b, p, v in zip(c.seeds, c.baseline, c.patched, changes, strict=True):
                yield c.case, seed, figure(b), figure(p), percent(v)
        else:
            for i in range(max(len(c.baseline), len(c.patched))):
                before, after = (figure(arm[i]) if i < len(arm) else "-" for arm in (c.baseline, c.patched))
                yield c.case, "-", before, after, "-"


def frequency_bars(arch: ArchDoc, workload: str) -> list[Bars]:
    """Frequency residency by case and policy."""
    policies, order = policy_cpus(arch), _order(arch, workload)
    labels = _labels(arch, workload)[1]
    mine = [r for r in arch.residencies if r.workload == workload]
    return [_bars(r, labels.get(r.case, r.case), policies.get(r.policy, ""), order) for r in mine]


def legend(arch: ArchDoc, workload: str) -> list[tuple[str, Markup]]:
    """Frequencies with their keys."""
    order = _order(arch, workload)
    return [(megahertz(khz), plots.swatch(i, len(order))) for i, khz in enumerate(order)]


def _bars(r: ResidencyDoc, case: str, cpus: str, order: Sequence[str]) -> Bars:
    label = f"{case}, {cpus_named(cpus) if cpus else r.policy}"
    arms = []
    for name, times in (("baseline", r.baseline), ("patched", r.patched)):
        shares = ", ".join(f"{megahertz(k)} {_share(times.shares.get(k))}" for k in order if times.shares.get(k))
        said = f"{label}, {name}: {shares or 'no time'} of {times.seconds:g} s"
        arms.append((name, plots.stacked_bar(times.shares, order, said)))
    own = [k for k in order if k in r.baseline.shares or k in r.patched.shares]
    table = [(megahertz(k), _share(r.baseline.shares.get(k)), _share(r.patched.shares.get(k))) for k in own]
    table.append(("time", f"{r.baseline.seconds:.2f} s", f"{r.patched.seconds:.2f} s"))
    return Bars(label, tuple(arms), tuple(table))


def _order(arch: ArchDoc, workload: str) -> list[str]:
    mine = [r for r in arch.residencies if r.workload == workload]
    return sorted({k for r in mine for k in (*r.baseline.shares, *r.patched.shares)}, key=khz_of)


def _share(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"
