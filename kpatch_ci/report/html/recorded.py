# SPDX-License-Identifier: GPL-2.0-or-later
"""What guests recorded while workloads ran, as the page's figures: which CPUs ran the tasks, and frequency over time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from kpatch_ci.report.html import stretch
from kpatch_ci.report.html.figures import Panel
from kpatch_ci.report.html.guest import cpu_ranges, cpus_named, khz_of, megahertz, policy_cpus
from kpatch_ci.report.recorded import FrequencyLineDoc, PlacementTimesDoc, RunningTimesDoc, TimelineDoc
from kpatch_ci.report.schema import ArchDoc
from kpatch_ci.report.view import figure

MOST_POINTS = 60
"""Changes of one line in the table; result.json has the others."""
_TO = "\N{RIGHTWARDS ARROW}"


def placement_panels(arch: ArchDoc, workload: str) -> list[tuple[Panel, str]]:
    """For each case a bar a CPU and arm: ms of a replicate, on average; and each cluster's share of the whole, in words."""
    found = []
    for one in arch.placement_times:
        if one.workload == workload:
            cpus = sorted({*one.baseline.cpus, *one.patched.cpus}, key=khz_of)
            clusters = _clusters(arch, cpus)
            cpus = [c for _, own in clusters for c in own] or cpus
            times = [[_ms(arm, c) for c in cpus] for arm in (one.baseline, one.patched)]
            sizes = [(name, len(own)) for name, own in clusters]
            picture = stretch.cpu_bars(cpus, (times[0], times[1]), sizes, _placement_said(one, cpus))
            found.append((Panel(one.case, picture), _cluster_words(one)))
    return found


def _clusters(arch: ArchDoc, cpus: list[str]) -> list[tuple[str, list[str]]]:
    """Clusters in the order of their first CPUs; none where they are not exactly these CPUs."""
    own = sorted(((name, [str(c) for c in sorted(numbers)]) for name, numbers in arch.clusters.items()), key=_first)
    return own if sorted(chain.from_iterable(c for _, c in own)) == sorted(cpus) else []


def _first(cluster: tuple[str, list[str]]) -> int:
    return khz_of(cluster[1][0]) if cluster[1] else 0


def _placement_said(one: PlacementTimesDoc, cpus: list[str]) -> str:
    arms = (("baseline", one.baseline), ("patched", one.patched))
    words = [
        f"{n} {', '.join(f'CPU {c} {figure(_ms(arm, c))} ms' for c in cpus if arm.cpus.get(c))}" for n, arm in arms
    ]
    return f"{one.workload} ({one.case}), running time: {'; '.join(words)}"


def _cluster_words(one: PlacementTimesDoc) -> str:
    """``big 39.95 -> 39.55 ms (21.1 % -> 32.9 %)`` for each cluster; empty where there is one."""
    arms = (one.baseline, one.patched)
    words = []
    for name in dict.fromkeys([*arms[0].clusters, *arms[1].clusters]):
        shares = [arm.clusters.get(name) for arm in arms]
        ms = [figure(1000 * arm.each(share)) for arm, share in zip(arms, shares, strict=True)]
        words.append(f"{name} {ms[0]} {_TO} {ms[1]} ms ({_share(shares[0])} {_TO} {_share(shares[1])})")
    return ", ".join(words)


def placement_rows(arch: ArchDoc, workload: str) -> Iterator[tuple[str, str, str, str, str, str]]:
    """Case, what of it, ms of a replicate in baseline and patched, shares in both: the table behind ``placement_panels``."""
    for one in arch.placement_times:
        if one.workload != workload:
            continue
        arms: tuple[RunningTimesDoc, RunningTimesDoc] = (one.baseline, one.patched)
        for cpu in sorted({*arms[0].cpus, *arms[1].cpus}, key=khz_of):
            yield _placement_row(one.case, f"CPU {cpu}", arms, tuple(arm.cpus.get(cpu) for arm in arms))
        for name in dict.fromkeys([*arms[0].clusters, *arms[1].clusters]):
            yield _placement_row(one.case, name, arms, tuple(arm.clusters.get(name) for arm in arms))
        yield _placement_row(one.case, "all", arms, (1.0, 1.0))
        waited = [figure(1000 * arm.wait_seconds / arm.replicates if arm.replicates else None) for arm in arms]
        yield one.case, "waited for a CPU", waited[0], waited[1], "", ""


def _placement_row(
    case: str, what: str, arms: tuple[RunningTimesDoc, RunningTimesDoc], shares: tuple[float | None, ...]
) -> tuple[str, str, str, str, str, str]:
    ms = [figure(None if share is None else 1000 * arm.each(share)) for arm, share in zip(arms, shares, strict=True)]
    return case, what, ms[0], ms[1], _share(shares[0]), _share(shares[1])


def timeline_panels(arch: ArchDoc, workload: str) -> list[Panel]:
    """Frequency over time by case and policy, both arms on the same axes; without those that never changed."""
    found = []
    for one in _timelines(arch, workload):
        if not _steady(one):
            arms = [(f"{name}: {_summary(line)}", line) for name, line in _arms(one)]
            said = f"{one.workload} ({_label(arch, one)}): {'; '.join(words for words, _ in arms)}"
            found.append(Panel(_label(arch, one), stretch.steps(arms, said)))
    return found


def steady_lines(arch: ArchDoc, workload: str) -> list[str]:
    """Case by case the policies whose frequency was the same throughout, in both arms."""
    found: dict[tuple[str, str, str], list[str]] = {}
    policies = policy_cpus(arch)
    for one in _timelines(arch, workload):
        if _steady(one):
            before, after = (megahertz(str(line.khz)) if line.span_ns else "-" for _, line in _arms(one))
            found.setdefault((one.case, before, after), []).append(policies.get(one.policy, one.policy))
    return [
        f"{case}: {cpus_named(_joined(cpus))} at {before}{'' if before == after else f' (baseline) and {after} (patched)'}"
        for (case, before, after), cpus in found.items()
    ]


def timeline_rows(arch: ArchDoc, workload: str) -> Iterator[tuple[str, str, str]]:
    """Case and CPUs, arm, and its line in words: the table behind ``timeline_panels``. A row a change would be most of the page."""
    for one in _timelines(arch, workload):
        for name, line in _arms(one):
            if line.span_ns:
                yield _label(arch, one), name, _points(line)


def _points(line: FrequencyLineDoc) -> str:
    """``1400 from 0, 1100 from 11.359, ...``: MHz and ms."""
    points = [(line.known_from_ns, line.khz), *line.changes]
    words = [f"{khz / 1000:g} from {round(ns / 1e6, 3):g}" for ns, khz in points[:MOST_POINTS]]
    more = len(points) - MOST_POINTS
    return ", ".join([*words, f"and {more} more in result.json"] if more > 0 else words)


def timeline_seed(arch: ArchDoc, workload: str) -> str:
    """The seed whose frequencies are shown."""
    return ", ".join(dict.fromkeys(one.seed for one in _timelines(arch, workload)))


def _timelines(arch: ArchDoc, workload: str) -> list[TimelineDoc]:
    return [one for one in arch.timelines if one.workload == workload]


def _arms(one: TimelineDoc) -> tuple[tuple[str, FrequencyLineDoc], tuple[str, FrequencyLineDoc]]:
    return ("baseline", one.baseline), ("patched", one.patched)


def _steady(one: TimelineDoc) -> bool:
    return not any(line.total or line.lost for _, line in _arms(one))


def _label(arch: ArchDoc, one: TimelineDoc) -> str:
    cpus = policy_cpus(arch).get(one.policy, "")
    return f"{one.case}, {cpus_named(cpus) if cpus else one.policy}"


def _summary(line: FrequencyLineDoc) -> str:
    if not line.span_ns:
        return "nothing recorded"
    changes = "1 change" if line.total == 1 else f"{line.total} changes"
    drawn = f" ({len(line.changes)} drawn)" if line.total > len(line.changes) else ""
    lost = f", {line.lost} lost" if line.lost else ""
    return f"{changes}{drawn} in {line.span_ns / 1e6:.1f} ms{lost}"


def _joined(cpus: list[str]) -> str:
    words = " ".join(cpus)
    return cpu_ranges(words) if all(word.isdecimal() for word in words.split()) else ", ".join(cpus)


def _ms(arm: RunningTimesDoc, cpu: str) -> float:
    """Running time of a CPU in a replicate; no less than 0 and at most a year, whatever a result.json says."""
    return min(3e10, max(0.0, 1000 * arm.each(arm.cpus.get(cpu))))


def _share(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"
