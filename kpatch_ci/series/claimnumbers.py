# SPDX-License-Identifier: GPL-2.0-or-later
"""Numbers as mails write them: units, which direction is better, and what rounding lets two figures say in percent."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from kpatch_ci.model.claim import Figure

DIGITS = r"[0-9]{1,15}(?:\.[0-9]{1,15})?(?![0-9])"
"""So many that their value is a number: 400 digits are infinite to a computer."""
NUMBER = rf"(?:[0-9]{{1,3}}(?:,[0-9]{{3}}){{1,4}}(?:\.[0-9]{{1,15}})?(?![0-9])|{DIGITS})"

_RATE = {
    **{f"{p}{u}/s": f for u in ("B", "b") for p, f in (("", 1.0), ("k", 1e3), ("K", 1e3), ("M", 1e6), ("G", 1e9))},
    **{f"{p}iB/s": f for p, f in (("K", 1024.0), ("M", 1024.0**2), ("G", 1024.0**3))},
    **{f"{p}B/sec": f for p, f in (("K", 1e3), ("k", 1e3), ("M", 1e6), ("G", 1e9))},
    **{f"{p}b{u}": f for u in ("ps", "it/s", "its/s") for p, f in (("k", 1e3), ("K", 1e3), ("M", 1e6), ("G", 1e9))},
    **{f"{p}{u}": f for u in ("iops", "IOPS", "pps") for p, f in (("", 1.0), ("k", 1e3), ("K", 1e3), ("M", 1e6))},
    **dict.fromkeys(
        (
            "ops/s",
            "ops/sec",
            "op/s",
            "req/s",
            "reqs/s",
            "requests/s",
            "requests/sec",
            "tps",
            "qps",
            "TPS",
            "QPS",
            "fps",
        ),
        1.0,
    ),
    "FPS": 1.0,
}
_TIME = {
    **dict.fromkeys(("ns", "nsec", "nsecs", "nanosecond", "nanoseconds"), 1e-9),
    **dict.fromkeys(("us", "usec", "usecs", "µs", "μs", "microsecond", "microseconds"), 1e-6),
    **dict.fromkeys(("ms", "msec", "msecs", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), 60.0),
}
_OTHER = {**dict.fromkeys(("cycles", "cycle"), 1.0), **dict.fromkeys(("%", "percent"), 1.0)}
RATE, TIME, CYCLES, SHARE = "rate", "time", "cycles", "share"
_FAMILIES: Mapping[str, tuple[str, float]] = {
    **{unit: (RATE, factor) for unit, factor in _RATE.items()},
    **{unit: (TIME, factor) for unit, factor in _TIME.items()},
    **{unit: (SHARE if unit in ("%", "percent") else CYCLES, factor) for unit, factor in _OTHER.items()},
}
UNIT = "|".join(re.escape(unit) for unit in sorted(_FAMILIES, key=len, reverse=True))
BETTER: Mapping[str, str] = {RATE: "higher", TIME: "lower", CYCLES: "lower"}
"""Family of units -> which direction is better; a share may be either."""


def figure(text: str, unit: str = "") -> Figure:
    """A figure from its digits (thousands may be set off by commas) and unit as written."""
    return Figure(text, float(text.replace(",", "")), unit)


def family(unit: str) -> str:
    """``rate``, ``time``, ``cycles``, ``share``; empty for no unit."""
    return _FAMILIES.get(unit, ("", 1.0))[0]


def scaled(one: Figure) -> float:
    """The value in its family's basic unit, so that 1.2 s and 900 ms compare."""
    return one.value * _FAMILIES.get(one.unit, ("", 1.0))[1]


def change(baseline: float, patched: float, better: str) -> float | None:
    """Percent of the baseline, positive where patched is better (mmtests' convention); None where the baseline is 0."""
    if not baseline or not better:
        return None
    sign = 1 if better == "higher" else -1
    found = sign * 100 * (patched - baseline) / baseline
    return found if math.isfinite(found) else None


def half_step(text: str) -> float:
    """Half a unit of the last digit: what rounding may have taken."""
    digits = text.lstrip("~+-").replace(",", "").partition(".")[2]
    return 0.5 * 10.0 ** -len(digits)


def follows(percent: str, baseline: Figure, patched: Figure, better: str, *, signed: bool = True) -> bool:
    """Whether a percentage as printed can be what two figures as printed give, each rounded at its last digit.

    With ``~`` a whole step of its last digit is allowed. Not ``signed``: the text says by how much, not which way.
    """
    low, high = span(baseline, patched, better)
    allowed = half_step(percent) * (2 if percent.startswith("~") else 1) + 1e-9
    stated = float(percent.lstrip("~").replace(",", ""))
    ways = (stated,) if signed else (stated, -stated)
    return any(low - allowed <= way <= high + allowed for way in ways)


def span(baseline: Figure, patched: Figure, better: str) -> tuple[float, float]:
    """The changes that two figures allow, given that each was rounded."""
    factor = scaled(baseline) / baseline.value if baseline.value else 1.0
    ends = []
    for b in (-1, 1):
        for p in (-1, 1):
            before = scaled(baseline) + b * half_step(baseline.text) * factor
            after = scaled(patched) + p * half_step(patched.text) * (
                scaled(patched) / patched.value if patched.value else factor
            )
            found = change(before, after, better) if before > 0 else None
            ends.append(math.inf if found is None else found)
    if math.inf in ends:
        return -math.inf, math.inf
    return min(ends), max(ends)
