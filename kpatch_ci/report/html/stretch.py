# SPDX-License-Identifier: GPL-2.0-or-later
"""Pictures whose shapes are paths. A path knows no percent, so it lies in a picture of its own that is stretched across."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from kpatch_ci.report.clean import visible
from kpatch_ci.report.html.scale import Scale
from kpatch_ci.report.recorded import FrequencyLineDoc

WIDE = 1000
"""What a stretched picture is wide, whatever that is in pixels."""
LEFT, RIGHT = 11.0, 97.0
"""Percent where the plots begin and end; left of them are the labels of the upright axis."""
BARS = 90
STEPS = 46
HEAD = 18
"""Pixels: a panel of bars, one arm's steps, and the line of text above these."""
HEADROOM = 1.06
"""Of an axis above its highest bar."""
MOST_NUMBERS = 16
"""CPUs that get their number written below; of more, the grounds of the clusters must do."""

_STRETCHED = Markup(
    '<svg x="{}%" y="{}" width="{}%" height="{}" viewBox="0 0 {} {}" preserveAspectRatio="none">{}</svg>'
)
_PATH = Markup('<path class="{}" d="{}" vector-effect="non-scaling-stroke"/>')
_PICTURE = Markup('<svg class="panel plain" width="100%" height="{}" role="img"><title>{}</title>{}</svg>')
_TEXT = Markup('<text class="{}" x="{}%" y="{}">{}</text>')
_LINE = Markup('<line class="{}" x1="{}%" x2="{}%" y1="{}" y2="{}"/>')
_RECT = Markup('<rect class="ground" x="{}%" width="{}%" y="0" height="{}"/>')


def cpu_bars(
    cpus: Sequence[str], values: tuple[Sequence[float], Sequence[float]], clusters: Sequence[tuple[str, int]], said: str
) -> Markup:
    """Two bars a CPU, baseline hollow beside patched solid. ``values``: of both arms in the order of ``cpus``, none below 0.

    ``clusters``: name and number of CPUs, in the same order; every other has a ground. ``said``: the picture in words.
    """
    top = HEADROOM * max([*values[0], *values[1]], default=0.0) or 1.0
    scale = Scale(0.0, top)
    parts = [] if len(clusters) < 2 else _grounds(clusters)
    for tick in scale.ticks():
        y = round(BARS * (1 - scale.at(tick) / 100), 1)
        parts.append(_LINE.format("grid" if tick else "zero", LEFT, RIGHT, y, y))
        parts.append(_text("tick left", 0, round(y + 3.5, 1), f"{tick:g}"))
    step = WIDE / max(1, len(cpus))
    for kind, arm, offset in (("hollow", values[0], 0.14), ("solid", values[1], 0.52)):
        bars = [_bar(step * (i + offset), step * 0.32, value / top * BARS) for i, value in enumerate(arm) if value]
        parts.append(_stretched(0, BARS, _PATH.format(kind, "".join(bars))))
    if len(cpus) <= MOST_NUMBERS:
        each = (RIGHT - LEFT) / max(1, len(cpus))
        parts += [_text("tick", LEFT + each * (i + 0.5), BARS + 13, c) for i, c in enumerate(cpus)]
    return _picture(BARS + (30 if len(clusters) > 1 else 16), said, parts)


def _text(kind: str, x: float, y: float, text: str) -> Markup:
    return _TEXT.format(kind, round(x, 2), y, visible(text))


def _picture(height: int, said: str, parts: Sequence[Markup]) -> Markup:
    return _PICTURE.format(height, visible(said), Markup("").join(parts))


def _grounds(clusters: Sequence[tuple[str, int]]) -> list[Markup]:
    each = (RIGHT - LEFT) / max(1, sum(size for _, size in clusters))
    parts, x = [], LEFT
    for n, (name, size) in enumerate(clusters):
        if n % 2 == 0:
            parts.append(_RECT.format(round(x, 2), round(each * size, 2), BARS))
        parts.append(_text("tick", x + each * size / 2, BARS + 27, name))
        x += each * size
    return parts


def _bar(x: float, width: float, height: float) -> str:
    return f"M{x:.0f} {BARS}v{-height:.1f}h{width:.0f}v{height:.1f}z"


def steps(lines: Sequence[tuple[str, FrequencyLineDoc]], said: str) -> Markup:
    """Frequency over time, an arm below the other on the same axes: MHz from 0 upwards, ms since the workload's start."""
    seen = sorted({khz for _, line in lines for khz in (line.khz, *(khz for _, khz in line.changes)) if line.span_ns})
    top = max([*seen, 1])
    scale = Scale(0.0, max([line.span_ns / 1e6 for _, line in lines] + [0.001]))
    parts, y = [], 0
    for name, line in lines:
        parts.append(_text("tick left", LEFT, y + 11, name))
        y += HEAD
        parts += _marks(seen, top, y)
        if line.span_ns:
            parts.append(_stretched(y, STEPS, _step_path(line, scale, top)))
        y += STEPS + 6
    for tick in scale.ticks():
        x = round(LEFT + (RIGHT - LEFT) * scale.at(tick) / 100, 2)
        parts += [_LINE.format("tick", x, x, y - 6, y - 2), _text("tick", x, y + 9, f"{tick:g}")]
    return _picture(y + 12, said, parts)


def _marks(seen: Sequence[int], top: int, y: int) -> list[Markup]:
    """0, and the lowest and the highest frequency that either arm had, labelled where there is room."""
    parts = [_LINE.format("zero", LEFT, RIGHT, y + STEPS, y + STEPS)]
    last = STEPS
    for khz in dict.fromkeys([*seen[-1:], *seen[:1]]):
        down = round(STEPS * (1 - khz / top), 1)
        parts.append(_LINE.format("grid", LEFT, RIGHT, y + down, y + down))
        if khz == top or down - last >= 12:
            parts.append(_text("tick left", 0, round(y + down + 3.5, 1), f"{khz / 1000:g}"))
        last = int(down)
    return parts


def _step_path(line: FrequencyLineDoc, scale: Scale, top: int) -> Markup:
    def x(ns: int) -> str:
        return f"{scale.at(ns / 1e6) * WIDE / 100:.1f}".removesuffix(".0")

    def y(khz: int) -> str:
        return f"{STEPS * (1 - khz / top):.1f}".removesuffix(".0")

    first, end = x(line.known_from_ns), x(line.span_ns)
    run = "".join(f"H{x(ns)}V{y(khz)}" for ns, khz in line.changes)
    path = f"{first} {y(line.khz)}{run}H{end}"
    area = f"M{first} {STEPS}V{y(line.khz)}{run}H{end}V{STEPS}z"
    return _PATH.format("area", area) + _PATH.format("step", f"M{path}")


def _stretched(y: int, height: int, inner: Markup) -> Markup:
    return _STRETCHED.format(LEFT, y, round(RIGHT - LEFT, 2), height, WIDE, height, inner)
