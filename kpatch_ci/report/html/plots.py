# SPDX-License-Identifier: GPL-2.0-or-later
"""Plots as inline SVG: pure functions. Across they use percent, down they use pixels, so text keeps its size on a phone.

Colours are classes and ``currentColor`` (base.css knows light and dark). Each picture has a text in its stead (``title``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from markupsafe import Markup

from kpatch_ci.report.clean import visible
from kpatch_ci.report.html.scale import Scale
from kpatch_ci.report.schema import ComparisonDoc
from kpatch_ci.report.view import percent, sentence

STRIP = 20
"""Height of a row's strip, in pixels."""
PANEL = 96
LEFT, RIGHT = 15.0, 97.0
"""Where a panel's points begin and end; left of them are the axis's labels."""
NEAR_END = 5.0
"""Less than this from an axis's end there is no room for half a label on a phone; in percent of its width."""
MAX_BOOT_LABELS = 8
"""Numbers below a panel: of more boots every second is named, or every third: on a phone there is no room for them all."""
_PALEST = 0.14

_LINE = Markup('<line class="{}" x1="{}%" x2="{}%" y1="{}" y2="{}"/>')
_RECT = Markup('<rect class="{}" x="{}%" width="{}%" y="{}" height="{}"/>')
_DOT = Markup('<circle class="{}" cx="{}%" cy="{}" r="{}"/>')
_TEXT = Markup('<text class="{}" x="{}%" y="{}">{}</text>')
_SWATCH = Markup(
    '<svg class="swatch" width="12" height="12" aria-hidden="true">'
    '<rect class="share" width="12" height="12" fill-opacity="{}"/></svg>'
)
_ARROW = Markup('<svg x="{}%" y="{}" overflow="visible"><path class="end" d="M0 -4L{} 0L0 4"/></svg>')


def interval_strip(c: ComparisonDoc, scale: Scale, threshold: float | None) -> Markup:
    """A case's change as a dot on its interval; the threshold is a band, no change a line. An arrow: it goes on outside."""
    middle = STRIP // 2
    parts = [_band(scale, threshold, STRIP), _line("zero", scale.at(0), scale.at(0), 0, STRIP)]
    if c.ci_percent:
        low, high = c.ci_percent
        parts.append(_line("whisker", scale.at(low), scale.at(high), middle, middle))
        parts += [_end(scale, value, middle) for value in (low, high)]
    if c.change_percent is not None and not scale.outside(c.change_percent):
        parts.append(_DOT.format("dot", _round(scale.at(c.change_percent)), middle, 5 if c.primary else 4))
    return _svg(f"strip {verdict_class(c.verdict)}", STRIP, sentence(c), parts)


def percent_axis(scale: Scale) -> Markup:
    """The axis below strips. The strips' own texts say the same, so a screen reader passes it by."""
    return _axis([(scale.at(t), f"{t:+g} %" if t else "0") for t in scale.ticks()])


def change_strip(before: float, after: float, scale: Scale, said: str) -> Markup:
    """Two values of one thing: a ring for baseline, a dot for patched."""
    middle, a, b = STRIP // 2, scale.at(before), scale.at(after)
    parts = [_line("zero", scale.at(0), scale.at(0), 0, STRIP), _line("whisker", a, b, middle, middle)]
    parts += [_DOT.format("ring", _round(a), middle, 4), _DOT.format("dot", _round(b), middle, 4)]
    return _svg("strip plain", STRIP, said, parts)


def plain_axis(scale: Scale) -> Markup:
    """The axis below ``change_strip``."""
    return _axis([(scale.at(t), f"{t:g}") for t in scale.ticks() if t >= 0])


def seed_panel(changes: Sequence[float | None], seeds: Sequence[str], scale: Scale, said: str) -> Markup:
    """Each pair's change over the seeds in order, by boot: every other has a ground. ``scale`` is the upright axis."""
    width = (RIGHT - LEFT) / max(1, len(seeds))
    parts = _boots(seeds, width)
    for tick in scale.ticks():
        y = _down(scale, tick)
        parts.append(_line("grid" if tick else "zero", LEFT, RIGHT, y, y))
        parts.append(_TEXT.format("tick left", 0, round(y + 3.5, 1), f"{tick:+g}" if tick else "0 %"))
    for i, (seed, change) in enumerate(zip(seeds, changes, strict=True)):
        if change is not None:
            dot = Markup('<circle class="pair {}" cx="{}%" cy="{}" r="3"><title>{}</title></circle>')
            sign = "good" if change > 0 else "bad" if change < 0 else "even"
            x, title = _round(LEFT + width * (i + 0.5)), f"seed {seed}: {percent(change)} %"
            parts.append(dot.format(sign, x, round(_down(scale, change), 1), visible(title)))
    return _svg("panel", PANEL + 16, said, parts)


def sample_panel(baseline: Sequence[float], patched: Sequence[float], scale: Scale, said: str) -> Markup:
    """The samples of two arms that make no pairs, a row each; rings are the baseline's."""
    parts = [_line("grid", scale.at(t), scale.at(t), 0, 40) for t in scale.ticks() if t >= 0]
    parts += [_TEXT.format("tick", _round(scale.at(t)), 54, f"{t:g}") for t in scale.ticks() if t >= 0]
    for kind, y, values in (("ring", 10, baseline), ("dot", 30, patched)):
        parts += [_DOT.format(kind, _round(scale.at(v)), y, 3) for v in values]
    return _svg("panel plain", 58, said, parts)


def stacked_bar(shares: Mapping[str, float], order: Sequence[str], said: str) -> Markup:
    """Shares (0..1) side by side in ``order``, the later the darker."""
    parts: list[Markup] = []
    x = 0.0
    for i, key in enumerate(order):
        share = 100 * shares.get(key, 0.0)
        if share > 0:
            bar = Markup('<rect class="share" x="{}%" width="{}%" y="1" height="{}" fill-opacity="{}"/>')
            parts.append(bar.format(_round(x), _round(share), STRIP - 6, shade(i, len(order))))
        x += share
    return _svg("bar", STRIP - 4, said, parts)


def swatch(index: int, count: int) -> Markup:
    """A legend's key for ``stacked_bar``."""
    return _SWATCH.format(shade(index, count))


def shade(index: int, count: int) -> float:
    """Opacity of the ``index``-th of ``count`` shares."""
    return round(_PALEST + (1 - _PALEST) * index / max(1, count - 1), 2)


def verdict_class(verdict: str) -> str:
    """A verdict or status as a class: ``no change`` -> ``no-change``."""
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in str(verdict))


def _svg(kind: str, height: int, said: str, parts: Sequence[Markup]) -> Markup:
    text = visible(said)
    head = Markup('<svg class="{}" width="100%" height="{}" role="img"><title>{}</title>').format(kind, height, text)
    return head + Markup("").join(parts) + Markup("</svg>")


def _axis(ticks: Sequence[tuple[float, str]]) -> Markup:
    parts = [_line("tick", x, x, 0, 4) + _TEXT.format(_tick_class(x), _round(x), 16, text) for x, text in ticks]
    return Markup('<svg class="axis" width="100%" height="20" aria-hidden="true">{}</svg>').format(
        Markup("").join(parts)
    )


def _tick_class(x: float) -> str:
    """A label near an end is aligned to its tick: on a phone half of it would be outside the window."""
    return "tick first" if x < NEAR_END else "tick last" if x > 100 - NEAR_END else "tick"


def _band(scale: Scale, threshold: float | None, height: int) -> Markup:
    if not threshold:
        return Markup("")
    low, high = scale.at(-threshold), scale.at(threshold)
    return _RECT.format("band", _round(low), _round(high - low), 0, height)


def _end(scale: Scale, value: float, y: int) -> Markup:
    side, x = scale.outside(value), scale.at(value)
    return _ARROW.format(_round(x - 1.2 * side), y, 6 * side) if side else _line("whisker", x, x, y - 4, y + 4)


def _boots(seeds: Sequence[str], width: float) -> list[Markup]:
    """Grounds and boot seeds; a boot's seeds stand side by side."""
    boots = [seed.partition(".")[0] for seed in seeds]
    firsts = [i for i, boot in enumerate(boots) if i == 0 or boots[i - 1] != boot]
    step = -(-len(firsts) // MAX_BOOT_LABELS)
    parts = []
    for n, (first, end) in enumerate(pairwise([*firsts, len(boots)])):
        x, size = LEFT + width * first, width * (end - first)
        if n % 2 == 0:
            parts.append(_RECT.format("ground", _round(x), _round(size), 0, PANEL))
        if n % step == 0:
            parts.append(_TEXT.format("tick", _round(x + size / 2), PANEL + 12, visible(boots[first][:4])))
    return parts


def _down(scale: Scale, value: float) -> float:
    return PANEL * (1 - scale.at(value) / 100)


def _line(kind: str, x1: float, x2: float, y1: float, y2: float) -> Markup:
    return _LINE.format(kind, _round(x1), _round(x2), round(y1, 1), round(y2, 1))


def _round(x: float) -> float:
    return round(x, 2)
