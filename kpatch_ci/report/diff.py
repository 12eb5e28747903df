# SPDX-License-Identifier: GPL-2.0-or-later
"""Two result documents beside each other (``kpatch-ci compare``): what was measured under what, and which figures differ."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from kpatch_ci.model.errors import UserError
from kpatch_ci.model.status import Mode
from kpatch_ci.report.clean import one_line
from kpatch_ci.report.schema import ComparisonDoc, Document
from kpatch_ci.report.view import UNPAIRED, every_arch, figure, mean, percent, sentence

Key = tuple[str, str, str, str, str]
ABSENT = "(absent)"
PATCHED = ".build.patched."
HOST = "host."
"""Keys of the machine that measured: deterministic samples do not depend on it."""
RENAMED = {"host_cpu": "host.cpu", "host_kernel": "host.kernel"}
"""Keys of old results -> what they are called now."""
GROUPS = ("arches", "workloads", "series")
"""Keys of the fingerprint that have a mapping by name: what only one run has got is no difference."""
LONG = 160
"""Characters of both values together from which on only their differing words are shown."""
NO_OBSTACLE = ("kpatch_ci", "series.")
"""Beginnings of the fingerprint's keys that do not speak against comparing: our own version, and what the series are."""
NIGHTLY = "nightly."
"""Which night and item a run belongs to: names, on which no figure depends."""
_SEEDS = re.compile(r"(-seed |kpci\.boot_seed=)\d+")


@dataclass(frozen=True, slots=True)
class InputDifference:
    """Something that figures depend on and that the two runs do not share. ``key`` is flattened: ``qemu.version``."""

    key: str
    a: str
    b: str
    expected: bool = False
    """No obstacle: the patched kernel (that one differs is often the point of comparing), thresholds, and the host of exact samples."""

    @property
    def unlike(self) -> bool:
        """Whether figures must not be set beside each other for it. What an old result does not record cannot be said to differ."""
        return not self.expected and ABSENT not in (self.a, self.b)


@dataclass(frozen=True, slots=True)
class RowDifference:
    """One metric of one case in both documents; None where one has not got it.

    ``*_percent``: b against a, raw (positive is more).
    """

    series: str
    arch: str
    workload: str
    case: str
    metric: str
    identical: bool
    """The very same samples under the same seeds, and the same verdict."""
    a: ComparisonDoc | None
    b: ComparisonDoc | None

    @property
    def baseline_percent(self) -> float | None:
        """Difference of the baseline means."""
        return _change(self.a.baseline, self.b.baseline) if self.a and self.b else None

    @property
    def patched_percent(self) -> float | None:
        """Difference of the patched means."""
        return _change(self.a.patched, self.b.patched) if self.a and self.b else None

    @property
    def verdicts(self) -> tuple[str, str]:
        """What each document says."""
        return (str(self.a.verdict) if self.a else ABSENT, str(self.b.verdict) if self.b else ABSENT)


@dataclass(frozen=True, slots=True)
class DocumentDiff:
    """All that compare_documents() found."""

    inputs: tuple[InputDifference, ...]
    rows: tuple[RowDifference, ...]
    statuses: tuple[InputDifference, ...]
    """Series and architectures (``series.arch``) that ended differently or are in one document only."""

    @property
    def comparable(self) -> bool:
        """Whether figures may be set beside each other."""
        return not self.unlike

    @property
    def unlike(self) -> tuple[InputDifference, ...]:
        """What speaks against it."""
        return tuple(i for i in self.inputs if i.unlike)

    @property
    def identical(self) -> bool:
        """Whether both hold the same figures under the same inputs."""
        return not self.inputs and not self.statuses and all(r.identical for r in self.rows)


def compare_documents(a: Document, b: Document) -> DocumentDiff:
    """Every (series, arch, workload, case, metric) of either document, and every input in which they differ. Pure.

    Raises UserError where both have figures of one architecture that were measured by unlike accelerators.
    """
    rows_a, rows_b = _rows(a), _rows(b)
    _refuse_unlike_accelerators(rows_a, rows_b)
    keys = dict.fromkeys((*rows_a, *rows_b))
    rows = tuple(
        RowDifference(*k, _identical(rows_a.get(k), rows_b.get(k)), rows_a.get(k), rows_b.get(k)) for k in keys
    )
    exact = str(a.mode) == str(b.mode) == Mode.DETERMINISTIC
    harmless = (*NO_OBSTACLE, HOST) if exact else NO_OBSTACLE
    of_run = [
        replace(d, expected=d.key.startswith(harmless))
        for d in _differences(_run_inputs(a), _run_inputs(b))
        if not _only_in_one(d, a, b)
    ]
    thresholds = [replace(d, expected=True) for d in _differences(_thresholds(a), _thresholds(b))]
    builds = [replace(d, expected=PATCHED in d.key) for d in _differences(_builds(a), _builds(b))]
    inputs = (*of_run, *(d for d in (*thresholds, *builds) if ABSENT not in (d.a, d.b)))
    return DocumentDiff(inputs, rows, _differences(_statuses(a), _statuses(b)))


def _only_in_one(difference: InputDifference, a: Document, b: Document) -> bool:
    """Whether it is of an architecture or a workload that the other run has not got at all."""
    group, _, rest = difference.key.partition(".")
    name = rest.partition(".")[0]
    return group in GROUPS and any(name not in (d.fingerprint.get(group) or {}) for d in (a, b))


def diff_json(diff: DocumentDiff, *, refused: bool = False) -> dict[str, Any]:
    """For programs. Where it is ``refused`` there are no rows: nobody shall take their figures for comparable."""
    return {
        "comparable": diff.comparable,
        "refused": refused,
        "identical": diff.identical and not refused,
        "inputs": [asdict(i) | {"unlike": i.unlike} for i in diff.inputs],
        "statuses": [{"key": s.key, "a": s.a, "b": s.b} for s in diff.statuses],
        "rows": [] if refused else [_row_json(row) for row in diff.rows],
    }


def _row_json(row: RowDifference) -> dict[str, object]:
    names = "series arch workload case metric identical verdicts baseline_percent patched_percent"
    sides = {side: None if c is None else c.model_dump(mode="json") for side, c in (("a", row.a), ("b", row.b))}
    return {**{name: getattr(row, name) for name in names.split()}, **sides}


def flatten(value: Any, prefix: str = "") -> dict[str, str]:
    """Leaves of nested mappings and sequences under dotted keys, as text."""
    if isinstance(value, Mapping):
        pairs = [(str(k), v) for k, v in sorted(value.items(), key=lambda item: str(item[0]))]
    elif isinstance(value, list | tuple) and any(isinstance(v, Mapping | list | tuple) for v in value):
        pairs = [(str(n), v) for n, v in enumerate(value)]
    else:
        return {prefix: " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)}
    return {k: v for key, child in pairs for k, v in flatten(child, f"{prefix}.{key}" if prefix else key).items()}


def diff_text(diff: DocumentDiff, name_a: str = "A", name_b: str = "B", *, every: bool = False) -> str:
    """``diff`` for a person: unlike inputs first, then what differs, then (``every``) what does not, and its count."""
    lines: list[str] = []
    for head, inputs in (
        ("These runs differ in what they measured with:", diff.unlike),
        ("These differ too, and are no obstacle:", [i for i in diff.inputs if i.expected]),
        ("One of them does not record these:", [i for i in diff.inputs if not (i.unlike or i.expected)]),
    ):
        lines += [head, *(f"  {input_text(i, name_a, name_b)}" for i in inputs)] if inputs else []
    lines += [f"{one_line(s.key)}: {name_a} {s.a}, {name_b} {s.b}" for s in diff.statuses]
    changed = [r for r in diff.rows if not r.identical]
    for row in changed:
        lines += _row_text(row, name_a, name_b)
    lines += [_same_text(r.series, r.arch, r.a) for r in diff.rows if every and r.identical and r.a]
    same = len(diff.rows) - len(changed)
    return "\n".join([*lines, f"{same} of {len(diff.rows)} comparisons are identical, sample by sample."]) + "\n"


def _same_text(series: str, arch: str, c: ComparisonDoc) -> str:
    return one_line(f"{series} {arch} {sentence(c.model_copy(update={'reason': ''}))}, the same in both")


def input_text(difference: InputDifference, name_a: str, name_b: str) -> str:
    """One difference on one line; of long lists of words only the words that differ."""
    a, b = difference.a, difference.b
    if len(a) + len(b) > LONG and ABSENT not in (a, b):
        words_a, words_b = a.split(" "), b.split(" ")
        more_a, more_b = ([w for w in x if w not in y] for x, y in ((words_a, words_b), (words_b, words_a)))
        none = "(nothing more)" if more_a or more_b else "(the same words, otherwise placed)"
        a, b = (" ".join(more) or none for more in (more_a, more_b))
    return one_line(f"{difference.key}: {name_a} {a}, {name_b} {b}")


def _row_text(row: RowDifference, name_a: str, name_b: str) -> list[str]:
    head = one_line(f"{row.series} {row.arch} {row.workload} {row.case} {row.metric}")
    if row.a is None or row.b is None:
        return [f"{head}: only in {name_b if row.a is None else name_a}"]
    (old, new), unit = row.verdicts, row.a.unit
    verdict = f"verdict {old}" if old == new else f"verdict {old} -> {new}"
    lines = [f"{head}: {verdict}"]
    for arm, a, b, change in (
        ("baseline", row.a.baseline, row.b.baseline, row.baseline_percent),
        ("patched", row.a.patched, row.b.patched, row.patched_percent),
    ):
        told = "same samples" if a == b else f"{figure(mean(a))} -> {figure(mean(b))} {unit} ({percent(change)} %)"
        lines.append(f"  {arm}: {told}")
    return lines


def _rows(document: Document) -> dict[Key, ComparisonDoc]:
    pairs = ((name, arch, c) for name, arch in every_arch(document) for c in arch.comparisons)
    return {(name, arch.arch, c.workload, c.case, c.metric): c for name, arch, c in pairs}


def _refuse_unlike_accelerators(a: Mapping[Key, ComparisonDoc], b: Mapping[Key, ComparisonDoc]) -> None:
    """Instructions counted, instructions emulated and a real CPU's seconds are three things."""
    for key in a.keys() & b.keys():
        modes = {Mode(a[key].mode), Mode(b[key].mode)}
        if len(modes) > 1 and modes & UNPAIRED:
            what = (
                f"{key[1]} was measured by unlike accelerators: {a[key].mode} in the first, {b[key].mode} in the second"
            )
            raise UserError(what, expected="two results of one accelerator: other figures say nothing of each other")


def _identical(a: ComparisonDoc | None, b: ComparisonDoc | None) -> bool:
    if a is None or b is None:
        return False
    return (a.seeds, a.baseline, a.patched, a.verdict) == (b.seeds, b.baseline, b.patched, b.verdict)


def _run_inputs(document: Document) -> dict[str, str]:
    told = {k: v for k, v in flatten(document.fingerprint).items() if v and not k.startswith(NIGHTLY)}
    found = {RENAMED.get(k, k): _SEEDS.sub(r"\1*", v) for k, v in told.items()}
    found["mode"] = str(document.mode)
    if document.tree.get("tree_id"):
        found["tree.tree_id"] = document.tree["tree_id"]
    return found


def _thresholds(document: Document) -> dict[str, str]:
    """What verdicts depend on, and samples do not."""
    return {f"thresholds.{k}": str(v) for k, v in document.thresholds.items()}


def _builds(document: Document) -> dict[str, str]:
    """What only some figures depend on: of no concern where one document has not got the series or the architecture."""
    found: dict[str, str] = {}
    for series, arch in every_arch(document):
        for arm, build in (("baseline", arch.build.baseline), ("patched", arch.build.patched)):
            for name in ("image_digest", "config_digest"):
                if getattr(build, name):
                    found[f"{series}.{arch.arch}.build.{arm}.{name}"] = getattr(build, name)
    return found


def _statuses(document: Document) -> dict[str, str]:
    return {f"{name}.{arch.arch}": str(arch.status) for name, arch in every_arch(document)}


def _differences(a: Mapping[str, str], b: Mapping[str, str]) -> tuple[InputDifference, ...]:
    keys = [k for k in dict.fromkeys((*a, *b)) if a.get(k) != b.get(k)]
    return tuple(InputDifference(k, a.get(k, ABSENT), b.get(k, ABSENT)) for k in keys)


def _change(a: list[float | None], b: list[float | None]) -> float | None:
    old, new = mean(a), mean(b)
    return None if old is None or new is None or old == 0 else (new / old - 1) * 100
