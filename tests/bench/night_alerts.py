# SPDX-License-Identifier: GPL-2.0-or-later
"""How often noise makes an alert of a night, and how often a real change is one: the rule of before and the present one.

`python -m tests.bench.night_alerts pairs 1000` (or `planted`, its rows with a change): one night against the last, a tree that moved.
`python -m tests.bench.night_alerts histories 10 deterministic` (or `kvm`): 60 nights, looked at each night, all alerts counted once
(`both`, for kvm: the rule of before too, two minutes a history).

An item of four series on two architectures with all of pipeline.yaml's workloads: 40 primary figures, 680 cases and counters.
Another kernel takes other paths, so each night draws every boot anew, with the spreads that calibration measured.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import t as student

from kpatch_ci.model.history import Change, Line, Night
from kpatch_ci.stats import signedrank
from kpatch_ci.stats.changepoint import find_changes
from kpatch_ci.stats.changepoint_noisy import noisy_changes
from kpatch_ci.stats.limits import LIMITS, limit_for

BOOTS = (3, 4, 6, 8, 12)
NIGHTS = 60
ARCHES = ("arm64", "x86_64")
ARMS = ("baseline", "s1", "s2", "s3", "s4")
SPREADS: Mapping[str, Mapping[str, tuple[float, ...]]] = {
    "dd": {"arm64": (0.13, 0.7, 0.02, 0.02), "x86_64": (0.01,) * 4},
    "dd-dsync": {"arm64": (1.1, 0.5), "x86_64": (0.02, 0.01)},
    "hackbench": {"arm64": (2.7, 3.6, 4.6, 5.5, 6.4), "x86_64": (1.9, 2.4, 2.9, 3.4, 3.9)},
    "dbench": {"arm64": (1.5, 2.4, 3.4, 4.3, 5.3, 6.2), "x86_64": (1.5, 2.4, 3.4, 4.3, 5.3, 6.2)},
}
"""Workload -> architecture -> spread of each case's own figure over boots, in percent. dbench's is arm64's on both."""
SWITCHES = {"dd": 1.0, "dd-dsync": 1.5, "hackbench": 15.0, "dbench": 1.5}
"""Of context switches, and of wakeups; hackbench's go with its time (correlation 0.9)."""
MIGRATIONS = {"dd": 60.0, "dd-dsync": 60.0, "hackbench": 9.0, "dbench": 60.0}
COUNT = 200.0
"""Level of every counter; of a time or throughput 1."""
WILD = 0.05
"""Share of boots that are ten times as wild, in that noise."""
Values = dict[Line, "np.ndarray"]


def whole(arch: str, arm: str, workload: str, mode: str) -> Line:
    """A primary figure; a throughput is a time here, which changes nothing but the sign."""
    kind = "baseline" if arm == "baseline" else "patched"
    return Line("main", arm, arch, workload, "all", "time", kind, mode)


@dataclass(frozen=True)
class Noise:
    """Draws nights. ``wild``: with boots that are ten times as wild."""

    random: np.random.Generator
    wild: bool = False
    mode: str = "deterministic"
    arms: tuple[str, ...] = ARMS
    arches: tuple[str, ...] = ARCHES

    def draw(self, boots: int) -> np.ndarray:
        """Standard normal, or wilder."""
        drawn = self.random.normal(size=boots)
        return drawn * np.where(self.random.random(boots) < WILD, 10.0, 1.0) if self.wild else drawn

    def night(self, boots: int) -> Values:
        """Every line's samples of one night."""
        found: Values = {}
        for arch in self.arches:
            for arm in self.arms:
                for workload, of_arch in SPREADS.items():
                    primary = whole(arch, arm, workload, self.mode)
                    found |= self._workload(primary, of_arch[arch], boots)
        return found

    def _workload(self, primary: Line, spreads: tuple[float, ...], boots: int) -> Values:
        found: Values = {}
        logs = []
        workload = primary.workload
        together = 0.9 if workload == "hackbench" else 0.0
        sizes = {
            "context_switches": SWITCHES[workload],
            "wakeups": SWITCHES[workload],
            "migrations": MIGRATIONS[workload],
        }
        for number, spread in enumerate(spreads):
            common = self.draw(boots)
            logs.append(common * spread / 100)
            case = replace(primary, case=f"case={number}")
            found[case] = np.exp(logs[-1])
            for metric, size in sizes.items():
                own = together * common + math.sqrt(1 - together**2) * self.draw(boots)
                found[replace(case, metric=metric)] = COUNT * np.exp(own * size / 100)
        found[primary] = np.exp(np.mean(logs, axis=0))
        return found


def slowed(values: Values, percent: float, arms: tuple[str, ...], arches: tuple[str, ...]) -> Values:
    """Hackbench takes longer there, in all its cases."""
    factor = 1 + percent / 100
    return {one: samples * factor if is_slowed(one, arms, arches) else samples for one, samples in values.items()}


def is_slowed(one: Line, arms: tuple[str, ...], arches: tuple[str, ...]) -> bool:
    """Whether it is a time of hackbench there."""
    return (one.workload, one.metric) == ("hackbench", "time") and one.series in arms and one.arch in arches


def as_nights(number: int, samples: np.ndarray) -> Night:
    """One boot a sample."""
    values = {f"{boot}.1": float(value) for boot, value in enumerate(samples, 1)}
    return Night(f"n{number:03d}", f"n{number:03d}", values, {"kernel source": str(number)})


def before(first: Values, second: Values) -> list[Line]:
    """The old rule: each line by itself, signed ranks at 0.05 from six boots on, Student's t at 0.01 of fewer."""
    found = []
    for one, old in first.items():
        new = second[one]
        if not limit_for(LIMITS, one.workload, one.metric).crossed(float(old.mean()), float(new.mean())):
            continue
        effects = np.log(new / old)
        n = len(effects)
        if n >= 6:
            p, alpha = signedrank.p_value(effects), 0.05
        else:
            t = abs(effects.mean()) * math.sqrt(n) / effects.std(ddof=1)
            p, alpha = float(2 * student.sf(t, n - 1)), 0.01
        if p < alpha:
            found.append(one)
    return found


def now(first: Values, second: Values) -> list[Line]:
    """The present rule."""
    lines = {one: [as_nights(0, first[one]), as_nights(1, second[one])] for one in first}
    return [change.line for change in find_changes(lines).changes]


@dataclass(frozen=True)
class Setting:
    """A row: an item's size, what is planted where, the noise."""

    item: tuple[int, int]
    """Series, architectures."""
    percent: float = 0.0
    everywhere: bool = True
    wild: bool = False

    def __str__(self) -> str:
        planted = (
            f"{self.percent:g} % in {'all kernels' if self.everywhere else 'one kernel'}"
            if self.percent
            else "no change"
        )
        return f"{self.item[0]} series, {self.item[1]} architectures, {planted}{', wild' if self.wild else ''}"


SETTINGS = [
    Setting(item, percent, everywhere, wild)
    for item in ((4, 2), (1, 1))
    for percent, everywhere, wild in (
        (0.0, True, False), (0.0, True, True), (5.0, True, False), (12.0, True, False), (5.0, False, False), (12.0, False, False),
    )
]  # fmt: skip


def pairs(count: int, *, planted: bool = False) -> None:
    """The table of docs/nightly.md; a quarter as many nights where something is planted (``planted``: those alone)."""
    for setting in SETTINGS if not planted else [one for one in SETTINGS if one.percent]:
        for boots in BOOTS:
            one_row(setting, boots, max(1, count // 4) if setting.percent else count)


def one_row(setting: Setting, boots: int, nights: int) -> None:
    """Of each rule: share of nights with a real alert, with a false one, false ones a night."""
    arms, arches = ARMS[: setting.item[0] + 1], ARCHES[: setting.item[1]]
    noise = Noise(np.random.default_rng(boots), setting.wild, arms=arms, arches=arches)
    hit = (arms, arches) if setting.everywhere else (arms[1:2], arches[:1])
    tally = {"before": [0, 0, 0], "now": [0, 0, 0]}
    for _ in range(nights):
        first, second = noise.night(boots), slowed(noise.night(boots), setting.percent, *hit)
        for name, alerts in (("before", before(first, second)), ("now", now(first, second))):
            real = [one for one in alerts if setting.percent and is_slowed(one, *hit)]
            false = len(alerts) - len(real)
            for index, value in enumerate((bool(real), bool(false), false)):
                tally[name][index] += value
    said = "; ".join(
        f"{name}: found {f / nights:.3f}, false {e / nights:.3f} ({n / nights:.2f} a night)"
        for name, (f, e, n) in tally.items()
    )
    print(f"{setting}, {boots} boots, {nights} nights: {said}", flush=True)


def looks(values: list[Values], *, both: bool) -> Iterator[tuple[str, list[Change]]]:
    """Each night from the eighth on: the rule and its alerts so far. ``both``: also the rule of before, shifts of every line."""
    lines = {one: [as_nights(i, night[one]) for i, night in enumerate(values)] for one in values[0]}
    for end in range(8, len(values) + 1):
        yield "now", find_changes({one: nights[:end] for one, nights in lines.items()}).changes
        if both:
            limits = {one: limit_for(LIMITS, one.workload, one.metric) for one in lines}
            yield "before", [c for one, nights in lines.items() for c in noisy_changes(one, nights[:end], limits[one])]


def histories(count: int, mode: str, *, both: bool = False) -> None:
    """How many nights brought an alert that no night before had shown (the same line within four nights is the same)."""
    counts = {"before": 0, "now": 0} if both else {"now": 0}
    for seed in range(count):
        noise = Noise(np.random.default_rng(seed), mode=mode)
        values = [noise.night(12) for _ in range(NIGHTS)]
        known: dict[str, list[tuple[Line, int]]] = {"before": [], "now": []}
        for name, alerts in looks(values, both=both):
            seen = known[name]
            fresh = [(a.line, int(a.run[1:])) for a in alerts]
            fresh = [(one, at) for one, at in fresh if all(one != other or abs(at - to) > 4 for other, to in seen)]
            counts[name] += bool(fresh)
            seen += fresh
        held = (seed + 1) * (NIGHTS - 7)
        print(f"{mode}: of {held} quiet nights, with a new alert: {counts}", flush=True)


if __name__ == "__main__":
    if sys.argv[1] in ("pairs", "planted"):
        pairs(int(sys.argv[2]), planted=sys.argv[1] == "planted")
    else:
        histories(int(sys.argv[2]), sys.argv[3], both="both" in sys.argv)
