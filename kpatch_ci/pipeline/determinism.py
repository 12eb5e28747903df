# SPDX-License-Identifier: GPL-2.0-or-later
"""Did repeats of one thing run alike? Pure: what each repeat said is taken apart into named fields and compared.

A field is a sample, one value of the result channel (an output's line, a counter, a hash), or a line of the console, in the
order in which the guest said it; samples come first. So the first field that differs is the earliest sign.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kpatch_ci.model.status import Mode, Status

ABSENT = "(absent)"
TEXT, CONSOLE = "result channel", "console"


@dataclass(frozen=True, slots=True)
class Observation:
    """One repeat. ``source`` is the boot that it was resumed from; ``text`` and ``console`` are whole."""

    status: Status
    text: str = ""
    console: str = ""
    samples: Mapping[str, float] = field(default_factory=dict)
    source: str = ""
    reason: str = ""
    log_tail: str = ""
    seconds: float = 0.0
    """Wall time on the host."""

    @property
    def said(self) -> tuple[Status, str, str]:
        """What must be the same in every repeat: all of it, byte for byte."""
        return self.status, self.text, self.console


@dataclass(frozen=True, slots=True)
class Difference:
    """One field of one repeat, beside the value that most repeats have."""

    field: str
    usual: str
    value: str

    def __str__(self) -> str:
        return f"{self.field}: {_short(self.value)}, usually {_short(self.usual)}"


@dataclass(frozen=True, slots=True)
class Odd:
    """A repeat that is not like most. ``repeat`` counts from 1."""

    repeat: int
    source: str
    differences: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """Of ``repeats`` repeats ``alike`` said the same, to the byte; ``odd`` are the others, in their order."""

    repeats: int
    alike: int
    odd: tuple[Odd, ...] = ()
    failed: str = ""
    """Why one repeat gave no figure; empty when all did."""
    unlike: bool = False
    """Two repeats that passed are not the same. One that failed may have met a time limit of the host, which proves nothing."""

    @property
    def identical(self) -> bool:
        """All repeats gave figures, and the same ones."""
        return self.alike == self.repeats and not self.failed

    @property
    def mode(self) -> Mode | None:
        """What the samples are worth; None where nothing was measured that could tell."""
        if self.unlike:
            return Mode.VIRTUAL_TIME
        return None if self.failed else Mode.DETERMINISTIC

    @property
    def first(self) -> str:
        """The first difference in words: which repeat, which field, both values; or why there is no figure."""
        if self.failed or not self.odd:
            return self.failed
        odd = self.odd[0]
        more = f" (and {len(odd.differences) - 1} more fields)" if len(odd.differences) > 1 else ""
        boot = f" ({odd.source})" if odd.source else ""
        return f"repeat {odd.repeat}{boot}: {odd.differences[0]}{more}"


def compare(repeats: Sequence[Observation]) -> Finding:
    """Compare all repeats with what most of them said (of equally many: what came first). Skipped ones say nothing."""
    measured = [(number, one) for number, one in enumerate(repeats, 1) if one.status is not Status.SKIPPED]
    bad = next(((n, r) for n, r in enumerate(repeats, 1) if r.status is not Status.PASSED), None)
    failed = f"repeat {bad[0]} {bad[1].status}: {bad[1].reason}" if bad else ""
    if not measured:
        return Finding(len(repeats), 0, failed=failed)
    usual, alike = Counter(one.said for _, one in measured).most_common(1)[0]
    model = next(one for _, one in measured if one.said == usual)
    odd = tuple(Odd(n, one.source, differences(model, one)) for n, one in measured if one.said != usual)
    unlike = len({one.said for one in repeats if one.status is Status.PASSED}) > 1
    return Finding(len(repeats), alike, odd, failed, unlike)


def differences(usual: Observation, other: Observation) -> tuple[Difference, ...]:
    """Every field in which two observations differ, in order; at least one when what they said differs at all."""
    ours, theirs = fields(usual), fields(other)
    names = [*ours, *(name for name in theirs if name not in ours)]
    found = [
        Difference(name, ours.get(name, ABSENT), theirs.get(name, ABSENT))
        for name in names
        if ours.get(name) != theirs.get(name)
    ]
    if not found and usual.said != other.said:  # spaces, line ends: nothing that has a name
        name, a, b = (
            (TEXT, usual.text, other.text) if usual.text != other.text else (CONSOLE, usual.console, other.console)
        )
        found = [Difference(name, *_around(a, b))]
    return tuple(found)


def fields(one: Observation) -> dict[str, str]:
    """Name -> value, in order: status, samples, the result channel, the console."""
    found = {"status": str(one.status)}
    found |= {f"sample {name}": repr(value) for name, value in one.samples.items()}
    seen: Counter[str] = Counter()
    for number, line in enumerate(one.text.splitlines(), 1):
        event = _event(line)
        if event is None:
            found[f"{TEXT} line {number}"] = line
            continue
        name = str(event["event"])
        seen[name] += 1
        prefix = name if seen[name] == 1 else f"{name}[{seen[name]}]"
        found |= {f"{prefix}{key}": value for key, value in _leaves(event) if key != ".event"}
    found |= {f"{CONSOLE} line {n}": line for n, line in enumerate(one.console.splitlines(), 1)}
    return found


def _event(line: str) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) and "event" in value else None


def _leaves(value: Any) -> Iterator[tuple[str, str]]:
    """Paths to the single values below ``value``; a text of several lines has a path for each."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield from ((f".{key}{path}", leaf) for path, leaf in _leaves(below))
    elif isinstance(value, list):
        for index, below in enumerate(value):
            yield from ((f"[{index}]{path}", leaf) for path, leaf in _leaves(below))
    elif isinstance(value, str) and "\n" in value:
        yield from ((f" line {number}", line) for number, line in enumerate(value.splitlines(), 1))
    else:
        yield "", value if isinstance(value, str) else json.dumps(value)


def _around(a: str, b: str) -> tuple[str, str]:
    """Both texts from their first unequal character on."""
    at = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    return repr(a[at : at + 40]), repr(b[at : at + 40])


def _short(value: str, limit: int = 60) -> str:
    return value if len(value) <= limit else value[: limit - 3] + "..."
