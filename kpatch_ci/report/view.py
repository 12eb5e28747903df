# SPDX-License-Identifier: GPL-2.0-or-later
"""What several reports show in the same way: which comparisons are which, and how figures are spelled."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from statistics import median

from kpatch_ci.model.status import REAL_TIME, Mode, Status, Verdict
from kpatch_ci.model.workload import CONTEXT_SWITCHES, COUNTERS, MIGRATIONS
from kpatch_ci.report.clean import one_line
from kpatch_ci.report.conflict import conflict
from kpatch_ci.report.schema import ApplyDoc, ArchDoc, ComparisonDoc, Document

MODE_NOTES = {
    Mode.DETERMINISTIC: (
        "Deterministic virtual time: the guest's clock counts the instructions that its vCPUs retire, plus idle waits, so the same"
        " inputs and seed give the same samples, byte for byte. It has no cache, TLB or branch model, and all vCPUs share one"
        " instruction stream: costs of memory, of locality and of true parallelism are not in these figures."
    ),
    Mode.VIRTUAL_TIME: (
        "Virtual time: the guest's clock counts retired instructions, but runs are not reproduced byte for byte. It has no cache,"
        " TLB or branch model, and all vCPUs share one instruction stream."
    ),
    Mode.TCG: (
        "Emulated CPUs (TCG) in the host's real time: figures depend on this host, on its load, and on how fast it emulates which"
        " instruction; there is no cache, TLB or branch model, and x86_64's CPUs take turns in one thread. Each run is a boot of its"
        " own; the arms are compared unpaired."
    ),
    Mode.KVM: (
        "The host's own CPUs (KVM) in real time: figures depend on this host, its load and its frequency scaling. Each run is a boot"
        " of its own; the arms are compared unpaired."
    ),
    Mode.HARDWARE: (
        "A board's own hardware in real time: figures depend on that board, its firmware, its temperature and its frequencies (what"
        " was set and seen is beside each run). Each run is a boot of its own; the arms are compared unpaired."
    ),
}
"""What a mode's figures are worth; printed beside them."""

UNPAIRED = REAL_TIME
"""Modes in which samples are the host's real time."""

SIGN_NOTE = "A positive change means that patched is better, whatever the metric's direction."
MDE_NOTE = (
    "MDE: minimum detectable effect, the smallest true change that as many runs as these find in four of five cases."
)
BAD = (Status.FAILED, Status.ERROR)
_COUNTER_NAMES = frozenset(m.name for m in COUNTERS)


def table_note(document: Document) -> str:
    """What the columns of a table of verdicts mean."""
    known = any(c.mde_percent is not None for _, arch in every_arch(document) for c in arch.comparisons)
    return f"{SIGN_NOTE} {MDE_NOTE}" if known else SIGN_NOTE


def mode_notes(document: Document) -> list[str]:
    """What the figures are worth, one text a mode: architectures may have been measured in several."""
    modes = dict.fromkeys([document.mode, *(c.mode for _, arch in every_arch(document) for c in arch.comparisons)])
    notes = [MODE_NOTES[Mode(mode)] for mode in modes]
    return notes if len(notes) == 1 else [f"{mode}: {note}" for mode, note in zip(modes, notes, strict=True)]


def sample_count(comparison: ComparisonDoc) -> str:
    """How much was compared: ``12 pairs`` (of 6 boots, where that is not one each), or by arm where there are none."""
    if Mode(comparison.mode) not in UNPAIRED:
        pairs, boots = len(comparison.seeds), comparison.units
        return f"{pairs} pairs" + (f" of {boots} boot{'s' * (boots != 1)}" if boots not in (None, pairs) else "")
    baseline, patched = (sum(v is not None for v in values) for values in (comparison.baseline, comparison.patched))
    return f"{baseline} and {patched} runs"


def workloads(arches: Iterable[ArchDoc]) -> list[str]:
    """Names of the workloads that were compared, in the order in which they first come up."""
    return list(dict.fromkeys(c.workload for a in arches for c in a.comparisons))


def every_arch(document: Document) -> Iterator[tuple[str, ArchDoc]]:
    """Each series' name with each of its architectures."""
    for series in document.series:
        for arch in series.arches:
            yield series.name, arch


def primaries(arch: ArchDoc, workload: str | None = None) -> list[ComparisonDoc]:
    """The figures that carry the verdict (of one workload)."""
    return [c for c in arch.comparisons if c.primary and workload in (None, c.workload)]


def measured(arch: ArchDoc) -> list[ComparisonDoc]:
    """Its primary figures; none where all were skipped, for then something stopped it before."""
    found = primaries(arch)
    return found if any(c.verdict is not Verdict.SKIPPED for c in found) else []


def cases(arch: ArchDoc, workload: str | None = None) -> list[ComparisonDoc]:
    """The workloads' own figures case by case: what the primary figure is the mean of."""
    return [c for c in arch.comparisons if workload in (None, c.workload) and not c.primary and _own(arch, c)]


def counters(arch: ArchDoc, workload: str | None = None) -> list[ComparisonDoc]:
    """What explains a workload's figures."""
    return [c for c in arch.comparisons if workload in (None, c.workload) and not c.primary and not _own(arch, c)]


def migration_rates(arch: ArchDoc, workload: str) -> list[tuple[str, float, float]]:
    """Case, then migrations per 1000 context switches in baseline and patched: means over the pairs. Shown, not tested."""
    found = {(c.case, c.metric): c for c in counters(arch, workload)}
    rates = []
    for case in dict.fromkeys(case for case, _ in found):
        moved, switched = (found.get((case, m.name)) for m in (MIGRATIONS, CONTEXT_SWITCHES))
        if moved and switched and moved.seeds == switched.seeds:
            pair = [
                mean(1000 * m / s for m, s in zip(ms, ss, strict=True) if m is not None and s)
                for ms, ss in ((moved.baseline, switched.baseline), (moved.patched, switched.patched))
            ]
            if pair[0] is not None and pair[1] is not None:
                rates.append((case, pair[0], pair[1]))
    return rates


def _own(arch: ArchDoc, comparison: ComparisonDoc) -> bool:
    heads = {c.metric for c in primaries(arch, comparison.workload)}
    return comparison.metric in heads if heads else comparison.metric not in _COUNTER_NAMES


def pair_changes(comparison: ComparisonDoc) -> list[float | None]:
    """Each pair's change in percent, positive where patched is better; None where a value is missing.

    Of the baseline's value, or, where any value is 0, of the larger arm, as the tests have it (docs/statistics.md).
    """
    sign = 1 if comparison.better == "higher" else -1
    pairs = list(zip(comparison.baseline, comparison.patched, strict=True))
    whole = [v for pair in pairs for v in pair if v is not None]
    arms = ([v for v in values if v is not None] for values in (comparison.baseline, comparison.patched))
    larger = max(map(_typical, arms)) or max(whole, default=0.0) or 1.0
    ratios = bool(whole) and min(whole) > 0
    return [None if b is None or p is None else sign * 100 * (p - b) / (b if ratios else larger) for b, p in pairs]


def _typical(values: Sequence[float]) -> float:
    """The median of all averages of two: what differences are in percent of."""
    averages = [(a + b) / 2 for i, a in enumerate(values) for b in values[: i + 1]]
    return median(averages) if averages else 0.0


def threshold(document: Document, workload: str) -> float | None:
    """The workload's practical threshold in percent; None where the document has none."""
    return document.thresholds.get(f"threshold_percent.{workload}")


def mean(values: Iterable[float | None]) -> float | None:
    """Arithmetic mean of the values that are there; None where none is."""
    there = [v for v in values if v is not None]
    return math.fsum(there) / len(there) if there else None


def figure(value: float | None) -> str:
    """Four significant digits in at most 9 characters; ``-`` for None."""
    if value is None:
        return "-"
    size = abs(value)
    if size >= 1e8 or 0 < size < 1e-3:
        return f"{value:.2e}"
    decimals = 0 if size == 0 else max(0, 3 - math.floor(math.log10(size)))
    return f"{value:.{min(decimals, 6)}f}"


def percent(value: float | None) -> str:
    """Signed, three significant digits in at most 5 characters, without the percent sign; ``-`` for None."""
    if value is None:
        return "-"
    if abs(value) >= 9999.5:
        return f"{value:+.0e}".replace("e+0", "e").replace("e+", "e")
    decimals = next(d for d, limit in ((2, 9.995), (1, 99.95), (0, math.inf)) if abs(value) < limit)
    return f"{value:+.{decimals}f}"


def magnitude(value: float | None) -> str:
    """A percentage that has no direction, as percent() spells it; empty for None: what is not known is not shown."""
    return "" if value is None else percent(abs(value)).removeprefix("+")


def interval(ci: tuple[float, float] | None) -> str:
    """``low..high`` in percent; ``-`` for None."""
    return "-" if ci is None else f"{percent(ci[0])}..{percent(ci[1])}"


def probability(value: float | None) -> str:
    """A p-value in at most 6 characters; ``-`` for None."""
    if value is None:
        return "-"
    return "<.0001" if value < 0.0001 else f"{value:.4f}"


def change(comparison: ComparisonDoc) -> str:
    """The change with its percent sign; ``no figure`` where there is none."""
    value = comparison.change_percent
    return "no figure" if value is None else f"{percent(value)} %"


def sentence(comparison: ComparisonDoc) -> str:
    """A comparison on one line: figures, interval, p, verdict."""
    c = comparison
    parts = [f"{c.workload} {c.metric} ({c.case}): {change(c)}"]
    if c.ci_percent:
        parts.append(f"interval {interval(c.ci_percent)} %")
    if c.p_adjusted is not None:
        parts.append(f"adjusted p {probability(c.p_adjusted)}")
    reason = f" ({one_line(c.reason)})" if c.reason else ""
    return f"{', '.join(parts)}: {c.verdict}{reason}"


def applied(apply: ApplyDoc) -> str:
    """How a series went on, on one line."""
    if apply.status is not Status.PASSED:
        return f"{apply.status}: {one_line(apply.reason) or 'no reason given'}"
    moved = sum(bool(p.offsets) for p in apply.patches)
    offsets = f"; hunks moved in {moved} of {len(apply.patches)} patches" if moved else ""
    odd = "".join(f"; {one_line(text)}" for text in oddities(apply))
    return f"{apply.method or 'applied'}, {len(apply.changed_paths)} files changed{offsets}{odd}"


def oddities(apply: ApplyDoc) -> list[str]:
    """What a reader must know before believing figures: each hunk that lost context or went elsewhere, and git's warnings."""
    found = []
    for patch in apply.patches:
        for p in patch.placements:
            fuzz = (
                f"FUZZ {p.fuzz} at line {p.line} (offset {p.offset})" if p.fuzz else f"line {p.line}" * bool(p.warning)
            )
            words = ": ".join(filter(None, (fuzz, p.warning)))
            if words:
                found.append(f"{p.path} hunk {p.hunk}: {words}")
        found += patch.notes
    return found


def hunks(apply: ApplyDoc) -> str:
    """The hunks that found no place, each with what it wanted and what is there; empty unless the series failed to apply."""
    if apply.status is Status.PASSED:
        return ""
    failures = [f for p in apply.patches if p.status is Status.FAILED for f in p.failures]
    lines = [line for failure in failures for line in conflict(failure)]
    return "\n".join(lines)
