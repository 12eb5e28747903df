# SPDX-License-Identifier: GPL-2.0-or-later
"""Trends as inline SVG. A thousand nights are three paths, so a page stays small; text is laid out beside them and keeps its size.

The paths live in a box of 1000 x 100 units that is stretched to the plot; strokes do not stretch with it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from markupsafe import Markup

from kpatch_ci.report.clean import visible
from kpatch_ci.report.html.scale import Scale, scale_of
from kpatch_ci.report.site.data import Event, Point, Trend
from kpatch_ci.report.view import figure, percent

WIDE, HIGH = 1000, 100
PLOT = 130
"""Height of a plot, in pixels; the axis below it needs AXIS more."""
AXIS = 34
LEFT = 9.0
"""Where plots begin, in percent of the width: left of them are the axis's labels."""
SPARK_NIGHTS = 60
MOST_PERCENT = 100.0
LABELS_APART = 14.0
"""Percent of the width that two labels below a plot keep between them."""

_SVG = Markup('<svg class="{}" width="100%" height="{}" role="img"><title>{}</title>{}</svg>')
_BOX = Markup('<svg x="{}%" width="{}%" height="{}" viewBox="0 0 1000 100" preserveAspectRatio="none">{}</svg>')
_PATH = Markup('<path class="{}" d="{}"/>')
_LINE = Markup('<line class="{}" x1="{}%" x2="{}%" y1="{}" y2="{}"/>')
_TEXT = Markup('<text class="{}" x="{}%" y="{}">{}</text>')
_NUMBER = Markup('<text class="tick right number" x="{}%" dx="-4" y="9">{}</text>')
"""Of a change point: beside its line, which would hide it."""
_MARK = Markup('<a href="#{}" aria-label="{}">{}{}</a>')


def spark(points: Sequence[Point]) -> Markup:
    """The last nights' changes as a small line on the index; the words beside it say the same."""
    there = points[-SPARK_NIGHTS:]
    scale = scale_of((p.change for p in there if p.change is not None), least=0.5, most=MOST_PERCENT)
    zero = _y(scale, 0)
    paths = _PATH.format("zero", f"M0 {zero}h1000") + _PATH.format("line", _line([p.change for p in there], scale))
    last = _dots([None] * (len(there) - 1) + [there[-1].change] if there else [], scale)
    box = '<svg class="spark" width="90" height="22" viewBox="0 0 1000 100" preserveAspectRatio="none" aria-hidden="true">{}</svg>'
    return Markup(box).format(paths + _PATH.format("dots", last))  # noqa: S704 (a text of ours)


def changes(
    trend: Trend, events: Sequence[tuple[int, Event]], kernels: Mapping[str, str], threshold: float | None
) -> Markup:
    """Patched against baseline, each night with its interval. ``events``: number and event; ``kernels``: run -> release."""
    points = trend.points
    values = [v for p in points for v in (p.change, p.low, p.high) if v is not None]
    scale = scale_of(values, least=threshold or 0.5, most=MOST_PERCENT)
    paths = [
        _PATH.format("whiskers", _whiskers(points, scale)),
        _PATH.format("dots", _dots([p.change for p in points], scale)),
    ]
    said = f"{trend.workload} {trend.metric}: change by the patch over {len(points)} nights{_last(points)}"
    ticks = [(t, f"{t:+g} %" if t else "0") for t in scale.ticks()]
    return _plot(said, scale, ticks, paths, _below(points, events, kernels))


def levels(trend: Trend, events: Sequence[tuple[int, Event]], kernels: Mapping[str, str]) -> Markup:
    """Both arms' means over the nights, in the metric's unit."""
    points = trend.points
    arms = (("base", [p.baseline for p in points]), ("line", [p.patched for p in points]))
    scale = _tight(v for _, values in arms for v in values if v is not None)
    paths = [_PATH.format(kind, _line(values, scale)) for kind, values in arms]
    paths += [_PATH.format(f"dots {kind}", _dots(values, scale)) for kind, values in arms]
    said = f"{trend.workload} {trend.metric} in {trend.unit}: baseline and patched over {len(points)} nights"
    ticks = [(t, figure(t)) for t in scale.ticks()]
    return _plot(said, scale, ticks, paths, _below(points, events, kernels))


def _last(points: Sequence[Point]) -> str:
    return f"; the last is {percent(points[-1].change)} %, {points[-1].verdict}" if points else ""


def _plot(
    said: str,
    scale: Scale,
    ticks: Sequence[tuple[float, str]],
    paths: Sequence[Markup],
    below: Sequence[Markup],
) -> Markup:
    parts = []
    for at, text in ticks:
        y = round(PLOT * (1 - scale.at(at) / 100), 1)
        parts.append(_LINE.format("zero" if text == "0" else "grid", LEFT, 100, y, y))
        parts.append(_TEXT.format("tick left", 0, round(y + 3.5, 1), text))
    parts.append(_BOX.format(LEFT, 100 - LEFT, PLOT, Markup("").join(paths)))
    return _SVG.format("trend", PLOT + AXIS, visible(said), Markup("").join([*parts, *below]))


def _below(points: Sequence[Point], events: Sequence[tuple[int, Event]], kernels: Mapping[str, str]) -> list[Markup]:
    """Nights and kernels under the plot, and a mark where a change point lies."""
    places = {point.run: _x(index, len(points)) for index, point in enumerate(points)}
    parts = []
    at = -LABELS_APART
    for index, (release, run) in enumerate(_new_kernels(points, kernels)):
        x = round(places[run], 2)
        parts.append(_LINE.format("kernel", x, x, PLOT - 6, PLOT))
        if x - at >= LABELS_APART and x < 100 - LABELS_APART / 2:
            parts.append(_TEXT.format("tick left" if index == 0 else "tick", x, PLOT + 12, visible(release[:16])))
            at = x
    if points:
        parts.append(_TEXT.format("tick left", LEFT, PLOT + 28, visible(points[0].run[:8])))
    if len(points) > 1:
        parts.append(_TEXT.format("tick right", 100, PLOT + 28, visible(points[-1].run[:8])))
    marked: dict[float, None] = {}
    for number, event in events:
        if event.run in places:
            x = round(places[event.run], 2)
            mark = _LINE.format("event good" if event.better else "event bad", x, x, 0, PLOT)
            label = _NUMBER.format(x, number) if x not in marked else Markup("")
            parts.append(_MARK.format(f"e{number}", f"change {number}: {visible(event.words)}", mark, label))
            marked[x] = None
    return parts


def _new_kernels(points: Sequence[Point], kernels: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    last = None
    for point in points:
        release = kernels.get(point.run, "")
        if release != last:
            yield release, point.run
        last = release


def _x(index: int, count: int) -> float:
    return LEFT + (100 - LEFT) * (index + 0.5) / max(1, count)


def _across(index: int, count: int) -> int:
    return round(WIDE * (index + 0.5) / max(1, count))


def _y(scale: Scale, value: float) -> float:
    return round(HIGH - scale.at(value), 1)


def _line(values: Sequence[float | None], scale: Scale) -> str:
    """A path through those that are there; a gap where a night has none."""
    parts, drawing = [], False
    for index, value in enumerate(values):
        if value is not None:
            parts.append(f"{'L' if drawing else 'M'}{_across(index, len(values))} {_y(scale, value):g}")
        drawing = value is not None
    return "".join(parts)


def _dots(values: Sequence[float | None], scale: Scale) -> str:
    """Strokes without length, whose round ends are dots."""
    there = ((i, v) for i, v in enumerate(values) if v is not None)
    return "".join(f"M{_across(i, len(values))} {_y(scale, v):g}h0" for i, v in there)


def _whiskers(points: Sequence[Point], scale: Scale) -> str:
    there = ((i, p.low, p.high) for i, p in enumerate(points))
    return "".join(
        f"M{_across(i, len(points))} {_y(scale, low):g}V{_y(scale, high):g}"
        for i, low, high in there
        if low is not None and high is not None
    )


def _tight(values: Iterable[float]) -> Scale:
    """An axis around the values, without 0: what is followed is their change."""
    there = [v for v in values if math.isfinite(v)] or [0.0]
    low, high = min(there), max(there)
    room = max((high - low) * 0.15, abs(high) * 0.005) or 1.0
    return Scale(low - room, high + room)
