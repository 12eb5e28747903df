# SPDX-License-Identifier: GPL-2.0-or-later
"""How long a full report set takes: python -m tests.bench.reports [DIRECTORY]

4 series, 2 architectures, 3 workloads of 10 cases each with 3 counters, 30 seeds, a console an arm, every export too. Target: under 5 s.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from kpatch_ci.model.comparison import Comparison
from kpatch_ci.model.result import ArchResult, RunResult, SeriesResult
from kpatch_ci.model.status import Mode, Status
from kpatch_ci.model.workload import COUNTERS, Replicate, Seed
from kpatch_ci.report.document import as_document, load_document
from kpatch_ci.report.formats import EXPORTS, FORMATS
from kpatch_ci.report.write import render, write_reports
from tests.fakes.results import arch_result, arm_result, boot, comparison, run_result

SEEDS = tuple(Seed(boot, run) for boot in range(1, 7) for run in range(1, 6))
CASES = [f"clients={n},fs=xfs" for n in range(1, 11)]
WORKLOADS = ("dd", "hackbench", "dbench")


def made(workload: str, case: str, metric: str, unit: str) -> Comparison:
    """A comparison of noise."""
    dice = random.Random(f"{workload}{case}{metric}")  # noqa: S311
    baseline = tuple(dice.gauss(100, 3) for _ in SEEDS)
    patched = tuple(dice.gauss(98, 3) for _ in SEEDS)
    one = comparison(workload, case=case, metric=metric, unit=unit, seeds=SEEDS)
    change = dice.gauss(0, 4)
    ends = (change - 2, change + 2)
    return replace(
        one, baseline=baseline, patched=patched, primary=case == "all", change_percent=change, ci_percent=ends
    )


def arch(name: str, place: Path) -> ArchResult:
    """An architecture with all cases, residencies, frequencies over time, running times and consoles."""
    found = [made(w, "all", "time", "s") for w in WORKLOADS]
    found += [made(w, case, "time", "s") for w in WORKLOADS for case in CASES]
    found += [made(w, case, m.name, m.unit) for w in WORKLOADS for case in CASES for m in COUNTERS]
    ran = {f"cpu{n}": {"run_ns": 10_000_000 * (n + 1), "wait_ns": n} for n in range(8)}
    lines = {
        f"policy{p}": {"khz": 500_000, "changes": [[n * 10_000_000, 500_000 + n % 5] for n in range(50)]}
        for p in (0, 6)
    }
    frequency = {"span_ns": 500_000_000, "lost": 0, "known_from_ns": 0, "policies": lines}
    states = {f"policy{p}": {str(k): k // 100_000 for k in range(500_000, 2_000_000, 300_000)} for p in (0, 6)}
    extra = {"time_in_state": states, "cpu_times": ran, "frequency": frequency}
    runs = tuple(
        Replicate(w, case, seed, Status.PASSED, Mode.DETERMINISTIC, extra=extra)
        for w in WORKLOADS
        for case in CASES
        for seed in SEEDS
    )
    arms = []
    for arm in ("baseline", "patched"):
        console = place / f"{name}-{arm}"
        console.write_text(
            "".join(f"[{i:12.6f}] a line of a console, as long as such lines are\n" for i in range(2000))
        )
        arms.append(arm_result(arm, name, boots=(boot(1, arm, name, console=console),), replicates=runs))
    clusters = {"little": tuple(range(6)), "big": (6, 7)}
    return arch_result(name, clusters=clusters, baseline=arms[0], patched=arms[1], comparisons=tuple(found))


def result(place: Path) -> RunResult:
    """The run."""
    arches = tuple(arch(name, place) for name in ("arm64", "x86_64"))
    return replace(run_result(), series=tuple(SeriesResult(f"series-{n}", "", "", arches) for n in range(4)))


@contextmanager
def timed(what: str, notes: list[str]) -> Iterator[None]:
    """Print wall and processor time of what is done inside: on a busy machine they differ."""
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(", ".join([f"{what}: {wall:.2f} s ({cpu:.2f} s of processor time)", *notes]))


def main() -> None:
    """Print the time of each report and of the set."""
    with tempfile.TemporaryDirectory() as scratch:
        run, output = result(Path(scratch)), Path(sys.argv[1] if len(sys.argv) > 1 else f"{scratch}/out")
        with timed("all of it", []):
            write_reports(run, output, EXPORTS)
        with timed("the document", []):
            document = as_document(run)
        with timed("result.json read back", []):
            load_document(output / "result.json")
        for name in FORMATS.values():
            notes: list[str] = []
            with timed(name, notes):
                notes.append(f"{len(render(name, document, output)) / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
