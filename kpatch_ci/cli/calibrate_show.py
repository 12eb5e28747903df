# SPDX-License-Identifier: GPL-2.0-or-later
"""What `calibrate` found, as tables and as a JSON document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from kpatch_ci.cli.output import tables
from kpatch_ci.config.load import Config
from kpatch_ci.config.schema import DEFAULT_PROFILE
from kpatch_ci.model.comparison import Comparison
from kpatch_ci.model.status import Status
from kpatch_ci.pipeline.session import Session
from kpatch_ci.pipeline.trust import Level, Trust
from kpatch_ci.stats.calibration import FalsePositives, Noise, Power, Rate
from kpatch_ci.stats.pairs import Replicates

SCHEMA = "kpatch-ci/calibration/1"
CAVEAT = (
    "Trials of one pool share its boots: their rates are less certain than the intervals say, which take trials for independent\n"
    "(docs/calibration.md). `in truth` and `whole pool` are of all boots."
)


def document(
    found: Sequence[Trust], config: Config, session: Session, *, run_id: str, command: str, took: Mapping[str, float]
) -> dict[str, Any]:
    """All of it, the samples of every pool included."""
    tree = session.tree
    return {
        "schema": SCHEMA,
        "run_id": run_id,
        "command": command,
        "profile": config.profile or DEFAULT_PROFILE,
        "tree": {"label": tree.label, "release": tree.release, "tree_id": tree.tree_id},
        "tools": session.tools.fingerprint,
        "seconds": dict(took),
        "met": all(target.met for one in found for target in one.targets),
        "machines": [_machine(one) for one in found],
    }


def _machine(one: Trust) -> dict[str, Any]:
    pools = one.pools
    slowed = {f"{name}: {s.steps} steps": s.arm for name, some in pools.slowed.items() for s in some}
    return {
        "arch": pools.machine.arch,
        "machine": pools.machine.name,
        "seeds": one.seeds,
        "trials": one.trials,
        "targets": [asdict(target) for target in one.targets],
        "noise": [asdict(row) for row in one.noise],
        "layout_effect": [_comparison(c) for c in one.whole],
        "false_positives": {
            "layout": [_false(row) for row in one.layout],
            "split": [_false(row) for row in one.split],
        },
        "probe_percent": dict(pools.probe),
        "levels": [_level(level) for level in one.levels],
        "samples": {name: _samples(arm) for name, arm in {"A": pools.plain, "A'": pools.layout, **slowed}.items()},
    }


def _rate(rate: Rate) -> dict[str, Any]:
    return {**asdict(rate), "share": rate.share, "interval": list(rate.interval())}


def _false(row: FalsePositives) -> dict[str, Any]:
    return {**asdict(row), "significant": _rate(row.significant), "verdicts": _rate(row.verdicts)}


def _comparison(c: Comparison) -> dict[str, Any]:
    kept = ("workload", "metric", "change_percent", "ci_percent", "ci_method", "p_value")
    return {
        **{key: getattr(c, key) for key in kept},
        "seeds": len(c.seeds),
        "verdict": str(c.verdict),
        "reason": c.reason,
    }


def _level(level: Level) -> dict[str, Any]:
    rows = [{**asdict(p), "significant": _rate(p.significant), "regressed": _rate(p.regressed)} for p in level.power]
    head = {"workload": level.workload, "level_percent": level.level_percent, "steps": level.steps}
    return {**head, "effect": _comparison(level.whole), "power": rows}


def _samples(arm: Replicates) -> dict[str, Any]:
    """Workload -> case -> seed -> samples; why, where there are none."""
    found: dict[str, Any] = {}
    for (workload, case, seed), one in arm.items():
        passed = one.status is Status.PASSED
        value = dict(one.samples) if passed else {"status": str(one.status), "reason": one.reason}
        found.setdefault(workload, {}).setdefault(case, {})[str(seed)] = value
    return found


def show(found: Sequence[Trust], took: Mapping[str, float], file: Path) -> None:
    """Tables on stdout."""
    out = tables()
    for one in found:
        _show(one, out)
    out.print(Text(CAVEAT))
    out.print(Text("Targets", style="bold"))
    rows = [(t.machine, t.what, t.reached, "met" if t.met else "MISSED") for one in found for t in one.targets]
    out.print(_table(("machine", "target", "reached", ""), rows, left=4))
    out.print(Text(f"measured in {took['measured']:.0f} s, trials drawn and judged in {took['drawn']:.1f} s; {file}"))


def _show(one: Trust, out: Console) -> None:
    machine = one.pools.machine
    pool = len({seed for _, _, seed in one.pools.plain})
    head = f"{machine.arch} ({machine.name}): {one.trials} trials of {one.seeds} seeds, drawn from pools of {pool}"
    out.print(Text(head, style="bold"))
    heads = (
        "workload",
        "case",
        "metric",
        "n",
        "mean of A",
        "CV %",
        "spread of A'/A %",
        f"found with {one.seeds} seeds %",
    )
    out.print(Text("Noise: A against A', whose addresses differ"))
    out.print(_table(heads, [_noise_row(row) for row in one.noise], left=3))
    out.print(Text("A against A', whole pool: the effect of layout"))
    out.print(_table(("workload", "metric", "change %", "interval %", "verdict"), map(_whole_row, one.whole), left=2))
    counted = ("between", "workload", "of", "alpha", "significant", "%", "interval %", "with a verdict", "%")
    rows = [_false_row("A and A'", row) for row in one.layout] + [_false_row("A and A", row) for row in one.split]
    out.print(Text("False positives"))
    out.print(_table(counted, rows, left=3))
    if one.levels:
        out.print(Text("Slow-downs of known size"))
        levels = ("workload", "level %", "steps", "in truth %", "interval %", "seeds", "found %", "interval %")
        rows = [_level_row(level, p) for level in one.levels for p in level.power]
        out.print(_table((*levels, "regressed %", "expected %"), rows, left=1))


def _table(heads: Sequence[str], rows: Any, left: int) -> Table:
    table = Table(box=None, pad_edge=False)
    for index, heading in enumerate(heads):
        table.add_column(heading, justify="left" if index < left else "right")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _noise_row(row: Noise) -> Sequence[str]:
    figures = (f"{row.cv_percent:.2f}", f"{row.spread_percent:.2f}", f"{row.detectable_percent:.2f}")
    return (row.workload, row.case, row.metric, str(row.n), f"{row.mean:.5g}", *figures)


def _span(ci: tuple[float, float] | None) -> str:
    return f"{ci[0]:+.2f} to {ci[1]:+.2f}" if ci else "-"


def _whole_row(c: Comparison) -> Sequence[str]:
    change = f"{c.change_percent:+.2f}" if c.change_percent is not None else "-"
    return (c.workload, c.metric, change, _span(c.ci_percent), str(c.verdict))


def _share(rate: Rate) -> tuple[str, str]:
    low, high = rate.interval()
    return f"{100 * rate.share:.1f}", f"{100 * low:.1f} to {100 * high:.1f}"


def _false_row(between: str, row: FalsePositives) -> Sequence[str]:
    some, verdicts = row.significant, row.verdicts
    counted = (f"{some.hits} of {some.trials}", *_share(some), f"{verdicts.hits}", _share(verdicts)[0])
    return (between, row.workload, row.kind, f"{row.alpha:g}", *counted)


def _level_row(level: Level, p: Power) -> Sequence[str]:
    whole = level.whole
    truth = f"{whole.change_percent:+.2f}" if whole.change_percent is not None else "-"
    head = (level.workload, f"{level.level_percent:g}", str(level.steps), truth, _span(whole.ci_percent))
    return (*head, str(p.seeds), *_share(p.significant), _share(p.regressed)[0], f"{100 * p.expected:.1f}")
