# SPDX-License-Identifier: GPL-2.0-or-later
"""Modes of real time: a night's figure has noise, so a change is a shift of its level that lasts.

1. One figure a night: the mean of its samples. Runs of one night share what was special about it, so they are no units.
2. Single odd nights are taken back to their neighbours' median (Hampel filter). A step passes such a filter unchanged.
3. PELT (R. Killick, P. Fearnhead, I. A. Eckley, J. Amer. Statist. Assoc. 107 (2012) 1590-1598; the library ruptures, C. Truong et
   al., Signal Processing 167 (2020) 107299) proposes shifts of the mean.
4. Each must pass a permutation test and cross its limit; the weakest that does not is dropped, and the rest is judged anew.

The test is of the largest rank-sum statistic over all splits of the nights around the shift (A. N. Pettitt, Appl. Statist. 28
(1979) 126-135), its null distribution found by permuting those nights: that the place was picked because it looked best is part of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from kpatch_ci.model.history import Change, Limit, Line, Night
from kpatch_ci.stats.attribution import causes
from kpatch_ci.stats.changepoint_exact import better_percent, standing

Floats = NDArray[np.float64]

METHOD = "PELT, permutation of the largest rank sum"
ALPHA = 0.001
"""Of one shift, at most."""
FAMILY = 0.05
"""Of one shift, times the figures that are looked at (Bonferroni)."""
SHORTEST = 4
"""Nights that a level must last."""
PERMUTATIONS = 4999
PENALTY = 3.0
"""Times the variance of a night and ln(nights): below, PELT proposes too little; above, the test has more to refuse."""
WINDOW = 3
"""Nights on either side that the filter looks at."""
ODD = 3.0
"""Robust standard deviations beyond which a night is odd."""
_SEED = 0x6B706369
_MAD = 1.4826


@dataclass(frozen=True, slots=True)
class _Shift:
    """A proposed change before night ``at``, with the levels (medians) on either side."""

    at: int
    before: float
    after: float
    p: float
    alpha: float
    """At which it was tested."""


def noisy_changes(
    line: Line, nights: Sequence[Night], limit: Limit, tests: int = 1, *, alert: bool = True
) -> list[Change]:
    """Every shift that is certain and crosses its limit, oldest first. Fewer than twice SHORTEST nights: none.

    ``tests``: figures that are looked at together. ``alert``: whether a shift of this one is an alert.
    """
    if len(nights) < 2 * SHORTEST:
        return []
    means = np.array([np.mean(list(night.values.values())) for night in nights])
    alpha = min(ALPHA, FAMILY / tests)
    shifts = _shifts(means, limit, alpha)
    found = [_change(line, nights, shifts, index, limit, alert=alert) for index in range(len(shifts))]
    if not alert:
        return found  # nobody is told of it alone
    told = {nights[shift.at].run: nights[_first_told(means, shift.at, limit, alpha)].run for shift in shifts}
    return [replace(change, told=told[change.run], closed_told=told.get(change.closed_by, "")) for change in found]


def _shifts(means: Floats, limit: Limit, alpha: float) -> list[_Shift]:
    values = despiked(means)
    return _confirmed(values, proposals(values), limit, alpha)


def _first_told(means: Floats, at: int, limit: Limit, alpha: float) -> int:
    """The night with which a shift was first certain, as far as so many figures go; its place may have been another by a few."""
    for end in range(max(at + SHORTEST, 2 * SHORTEST), len(means)):
        if any(abs(shift.at - at) < SHORTEST for shift in _shifts(means[:end], limit, alpha)):
            return end - 1
    return len(means) - 1


def despiked(values: Floats) -> Floats:
    """Odd nights as the median of their neighbours (Hampel filter); their own spread is that of all nights' residuals."""
    padded = np.pad(values, WINDOW, mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * WINDOW + 1)
    medians: Floats = np.median(windows, axis=1)
    spread = _MAD * float(np.median(np.abs(values - medians)))
    odd = np.abs(values - medians) > ODD * spread
    odd[-SHORTEST + 1 :] = False  # whether the newest nights are odd or a new level, later ones will tell
    return np.where(odd, medians, values)


def proposals(values: Floats) -> list[int]:
    """First nights of new levels, as PELT sees them."""
    import ruptures  # noqa: PLC0415 (half a second, and only these modes need it)

    steps = np.diff(values)
    variance = (_MAD * float(np.median(np.abs(steps - np.median(steps))))) ** 2 / 2
    smallest = 1e-12 * max(float(np.var(values)), 1e-300)
    scale = float(np.sqrt(max(variance, smallest)))
    search = ruptures.KernelCPD(kernel="linear", min_size=SHORTEST).fit((values - values.mean()).reshape(-1, 1) / scale)
    return [int(at) for at in search.predict(pen=PENALTY * np.log(len(values)))[:-1]]


def _confirmed(values: Floats, places: list[int], limit: Limit, alpha: float) -> list[_Shift]:
    """Backward elimination: the least certain that fails goes first, then the smallest."""
    while places:
        ends = [0, *places, len(values)]
        shifts = [_judged(values[a:c], b - a, a, alpha) for a, b, c in zip(ends, ends[1:], ends[2:], strict=False)]
        doubtful = max(shifts, key=lambda shift: shift.p)
        small = [shift for shift in shifts if not limit.crossed(shift.before, shift.after)]
        if doubtful.p > alpha:
            places = [at for at in places if at != doubtful.at]
        elif small:
            least = min(small, key=lambda shift: abs(shift.after - shift.before))
            places = [at for at in places if at != least.at]
        else:
            return shifts
    return []


def _judged(window: Floats, at: int, offset: int, alpha: float) -> _Shift:
    p = permutation_p(window, max(PERMUTATIONS, math.ceil(2 / alpha)))
    return _Shift(offset + at, float(np.median(window[:at])), float(np.median(window[at:])), p, alpha)


def permutation_p(window: Floats, permutations: int = PERMUTATIONS) -> float:
    """p that the nights of ``window`` are in no particular order, against one shift of level somewhere in it."""
    ranks = stats.rankdata(window)
    observed = _largest(ranks[np.newaxis, :])[0]
    drawn = np.random.default_rng(_SEED).permuted(np.tile(ranks, (permutations, 1)), axis=1)
    return float(1 + np.count_nonzero(_largest(drawn) >= observed * (1 - 1e-9))) / (1 + permutations)


def _largest(rows: Floats) -> Floats:
    """Of each row: the largest squared and standardised rank sum over the splits that leave SHORTEST on both sides."""
    n = rows.shape[1]
    left = np.arange(SHORTEST, n - SHORTEST + 1)
    centred = np.cumsum(rows - (n + 1) / 2, axis=1)[:, left - 1]
    largest: Floats = (centred**2 / (left * (n - left))).max(axis=1)
    return largest


def _change(
    line: Line,
    nights: Sequence[Night],
    shifts: Sequence[_Shift],
    index: int,
    limit: Limit,
    *,
    alert: bool,
) -> Change:
    shift = shifts[index]
    first, last = nights[shift.at], nights[shift.at - 1]
    worse = (shift.after > shift.before) == (line.better == "lower")
    later = shifts[index + 1 :] if worse and alert else ()
    back = next((s for s in later if _is_back(shift.before, s.after, line, limit)), None)
    return Change(
        line=line,
        run=first.run,
        started=first.started,
        before_run=last.run,
        before=shift.before,
        after=shift.after,
        change_percent=better_percent(shift.before, shift.after, line.better),
        causes=causes(last.conditions, first.conditions, of_host=True),
        method=METHOD,
        p_value=shift.p,
        threshold=limit.words,
        alert=alert,
        standing=standing(worse=worse, held=not alert, closed=back is not None),
        reason=f"crosses {limit.words}; p = {shift.p:.2g} (at most {shift.alpha:.2g})",
        closed_by=nights[back.at].run if back else "",
    )


def _is_back(before: float, later: float, line: Line, limit: Limit) -> bool:
    return not limit.crossed(before, later) or (later < before) == (line.better == "lower")


def distinct(nights: Sequence[Night]) -> list[Night]:
    """Nights whose samples are others than those of the night before, over the newest night's seeds.

    In deterministic mode a night with the conditions of the last one is the same measurement again: to count it would make any
    difference between two kernels look certain, if only each was measured often enough.
    """
    if not nights:
        return []
    seeds = nights[-1].values.keys()
    found: list[Night] = []
    for night in nights:
        if seeds <= night.values.keys():
            values = {seed: night.values[seed] for seed in sorted(seeds)}
            if not found or values != found[-1].values:
                found.append(replace(night, values=values))
    return found
